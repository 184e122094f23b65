//! `convolve`: each pixel the weighted sum of those around it. Values are weighed from black to white (0 to 1), whichever
//! codes stand for them. Luma only, unless all planes are asked for; chroma is then weighed about its middle, so that greys
//! stay grey whatever the weights add up to.

mod matrix;
mod pass;

use self::matrix::Matrix;
use self::pass::ConvolvePass;
use super::planes::{Planes, is_chroma};
use super::taps;
use crate::frames::chain::Args;
use crate::frames::convert::Coding;
use crate::frames::format::Format;
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About = About {
    name: "convolve",
    usage: "convolve=A B C/D E F/G H I[:gain=GAIN][:bias=BIAS][:planes=luma|all]",
    what: "weighted sums of 3x3, 5x5 or 7x7 pixels, times GAIN (one over the sum of the weights), plus BIAS (0)",
    parse,
};

/// What gains may be at most: more would only leave black and white.
const GAIN_MAX: f64 = 1e6;

#[derive(Debug)]
struct Convolve {
    matrix: Matrix,
    gain: f64,
    bias: f64,
    planes: Planes,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let matrix: Matrix = args.require("matrix")?.parse()?;
    let usual = if matrix.sum() == 0.0 { 1.0 } else { 1.0 / matrix.sum() };
    let gain = args.number("gain", -GAIN_MAX..=GAIN_MAX, usual)?;
    let bias = args.number("bias", -1.0..=1.0, 0.0)?;
    Ok(Box::new(Convolve { matrix, gain, bias, planes: Planes::parse(args)? }))
}

impl Convolve {
    /// What is added in this plane: the value of 0 stays where it is, whatever the weights add up to.
    fn bias_of(&self, format: Format, plane: usize) -> f32 {
        let coding = Coding::of(format, plane);
        let bias = if is_chroma(format, plane) { 0.0 } else { self.bias };
        (coding.offset * (1.0 - self.gain * self.matrix.sum()) + bias * coding.gain) as f32
    }
}

impl Operation for Convolve {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let whole = picture.clone();
        let taps = self.matrix.taps(self.gain);
        Ok(picture.each(graph, whole.format, |graph, plane, input| {
            if !self.planes.include(&whole, plane) {
                return input;
            }
            let Size { width, height } = graph.size_of(input);
            let (bias, count) = (self.bias_of(whole.format, plane), taps.len() as u32);
            let (reach_across, reach_down) = taps::reach(&taps);
            let pass = ConvolvePass { width, height, taps: count, bias, reach_across, reach_down, padding: [0; 2] };
            graph.pass_with(pass, taps::table(&taps), &[input])[0]
        }))
    }
}
