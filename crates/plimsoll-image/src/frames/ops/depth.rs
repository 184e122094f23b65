//! `depth`: bits of a sample.

use crate::frames::chain::{Args, one_of};
use crate::frames::convert::recoded_to;
use crate::frames::format::Format;
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, Refused};
use crate::frames::picture::Picture;

pub(super) const ABOUT: About = About {
    name: "depth",
    usage: "depth=8|10|12|14|16",
    what: "as many bits a sample; codes are rounded when the frame leaves, not dithered",
    parse,
};

const DEPTHS: [(&str, u8); 5] = [("8", 8), ("10", 10), ("12", 12), ("14", 14), ("16", 16)];

#[derive(Debug)]
struct Depth(u8);

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, Refused> {
    Ok(Box::new(Depth(one_of("bits", args.require("bits")?, &DEPTHS)?)))
}

impl Operation for Depth {
    /// Numbers are codes over the highest one. In limited range black and white are codes times a power of two, so their
    /// numbers move a little; in full range only the middle of chroma does.
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, Refused> {
        let format = Format::new(picture.size(), self.0, picture.format.colour()).map_err(Refused::because)?;
        Ok(recoded_to(graph, picture, format))
    }
}
