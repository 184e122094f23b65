//! `sobel`: how steep the picture is, as a grey picture (YUV) or each channel by itself (RGB). A step from black to
//! white along a row or a column gives white, a flat picture black.

mod fill;
mod gradient;

use self::fill::FillPass;
use self::gradient::GradientPass;
use super::planes::{black_and_white, chroma_middle, is_chroma};
use crate::frames::chain::Args;
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, Refused};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About = About {
    name: "sobel",
    usage: "sobel",
    what: "edges: how steep the picture is; a step from black to white is white",
    parse,
};

#[derive(Debug)]
struct Sobel;

fn parse(_: &mut Args<'_>) -> Result<Box<dyn Operation>, Refused> {
    Ok(Box::new(Sobel))
}

impl Operation for Sobel {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, Refused> {
        let format = picture.format;
        let (black, white) = black_and_white(format);
        Ok(picture.each(graph, format, |graph, plane, input| {
            let Size { width, height } = graph.size_of(input);
            if is_chroma(format, plane) {
                let pass = FillPass { width, height, value: chroma_middle(format), padding: 0 };
                return graph.pass_with(pass, Vec::new(), &[])[0];
            }
            graph.pass(GradientPass { width, height, black, white }, input)
        }))
    }
}
