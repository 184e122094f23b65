//! `depth`: bits of a sample.

mod dither;

use self::dither::DitherPass;
use crate::frames::chain::{Args, one_of};
use crate::frames::convert::recoded_to;
use crate::frames::format::Format;
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;

pub(super) const ABOUT: About = About {
    name: "depth",
    usage: "depth=8|10|12|14|16[:dither]",
    what: "as many bits a sample; rounded when the frame leaves, or here and dithered, so that slopes show no steps",
    parse,
};

const DEPTHS: [(&str, u8); 5] = [("8", 8), ("10", 10), ("12", 12), ("14", 14), ("16", 16)];

#[derive(Debug)]
struct Depth {
    bits: u8,
    dithers: bool,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let bits = one_of("bits", args.require("bits")?, &DEPTHS)?;
    let dithers = args.one_of("dither", &[("dither", true), ("ordered", true), ("none", false)], false)?;
    Ok(Box::new(Depth { bits, dithers }))
}

impl Operation for Depth {
    /// Numbers are codes over the highest one. In limited range black and white are codes times a power of two, so their
    /// numbers move a little; in full range only the middle of chroma does.
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let format =
            Format::new(picture.size(), self.bits, picture.format.colour()).map_err(OperationError::because)?;
        let picture = recoded_to(graph, picture, format);
        if !self.dithers {
            return Ok(picture);
        }
        Ok(picture.each(graph, format, |graph, _, plane| {
            graph.pass(DitherPass::new(graph.size_of(plane), format.code_max()), plane)
        }))
    }
}
