//! `unsharp`: what a blur takes away, added again. Luma only, unless all planes are asked for: chroma is coarser than
//! luma in most video, so it has no edges to sharpen, only fringes to make.

mod pass;

use self::pass::UnsharpPass;
use super::blur::{Gaussian, parse_sigma};
use super::planes::Planes;
use crate::frames::chain::Args;
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About = About {
    name: "unsharp",
    usage: "unsharp=SIGMA[:AMOUNT[:THRESHOLD]][:planes=luma|all]",
    what: "sharper by AMOUNT (1) times what a blur by SIGMA changes, less THRESHOLD (0, of a range of 1)",
    parse,
};

#[derive(Debug)]
struct Unsharp {
    sigma: f64,
    amount: f32,
    threshold: f32,
    planes: Planes,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let sigma = parse_sigma(args)?;
    let amount = args.number("amount", -10.0..=10.0, 1.0)?;
    let threshold = args.number("threshold", 0.0..=1.0, 0.0)?;
    Ok(Box::new(Unsharp { sigma, amount, threshold, planes: Planes::parse(args)? }))
}

impl Operation for Unsharp {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let whole = picture.clone();
        let format = picture.format;
        Ok(picture.each(graph, format, |graph, plane, input| {
            if !self.planes.include(&whole, plane) {
                return input;
            }
            let blurred = Gaussian::of(&whole, plane, self.sigma).blurred(graph, input);
            let Size { width, height } = graph.size_of(input);
            let pass = UnsharpPass { width, height, amount: self.amount, threshold: self.threshold };
            graph.pass_with(pass, Vec::new(), &[input, blurred])[0]
        }))
    }
}
