//! `sobel`: how steep the picture is, as a grey picture (YUV) or each channel by itself (RGB). A step from black to
//! white along a row or a column gives white, a flat picture black.

mod gradient;

use self::gradient::GradientPass;
use crate::frames::chain::Args;
use crate::frames::convert::{Coding, grey};
use crate::frames::format::{Colour, Format};
use crate::frames::graph::{Graph, Plane};
use crate::frames::operation::{About, Operation, OperationError};
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

fn parse(_: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    Ok(Box::new(Sobel))
}

impl Operation for Sobel {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let format = picture.format;
        match format.colour() {
            Colour::Rgb => Ok(picture.each(graph, format, |graph, _, plane| steepness(graph, format, plane))),
            Colour::Yuv(_) | Colour::Mono(_) => {
                let luma = steepness(graph, format, picture.planes[0]);
                Ok(grey(graph, format, luma))
            }
        }
    }
}

fn steepness(graph: &mut Graph, format: Format, plane: Plane) -> Plane {
    let Size { width, height } = graph.size_of(plane);
    let Coding { gain, offset: black } = Coding::of(format, 0);
    graph.pass(GradientPass { width, height, black: black as f32, white: (black + gain) as f32 }, plane)
}
