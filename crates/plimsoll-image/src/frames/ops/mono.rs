//! `mono`: luma only.

use crate::frames::chain::Args;
use crate::frames::convert::to_mono;
use crate::frames::format::{Colour, Range};
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, Refused};
use crate::frames::picture::Picture;

pub(super) const ABOUT: About = About {
    name: "mono",
    usage: "mono",
    what: "luma only, in the range it has; from red, green and blue that of BT.709, all codes used",
    parse,
};

#[derive(Debug)]
struct ToMono;

fn parse(_: &mut Args<'_>) -> Result<Box<dyn Operation>, Refused> {
    Ok(Box::new(ToMono))
}

impl Operation for ToMono {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, Refused> {
        let range = match picture.format.colour() {
            Colour::Rgb => Range::Full,
            Colour::Mono(range) => range,
            Colour::Yuv(yuv) => yuv.range,
        };
        Ok(to_mono(graph, picture, range))
    }
}
