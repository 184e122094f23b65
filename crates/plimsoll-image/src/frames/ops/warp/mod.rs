//! `warp`: perspective. Four places in the picture become the corners of what comes out.
//!
//! Places are in pixels of the picture, its own corners being `0:0` and its size. What lies outside the picture is as
//! its edge, unless it is asked to be black. Samples are interpolated where they fall, so a picture that becomes much
//! smaller should be scaled first.

mod pass;
mod quad;

use self::pass::WarpPass;
use self::quad::{Grid, Quad};
use super::colour_value::ColourValue;
use super::geometry::{SIDE_MAX, parse_plain_size};
use crate::frames::chain::{Args, number, one_of};
use crate::frames::format::{Colour, Siting};
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About = About {
    name: "warp",
    usage: "warp=X0:Y0:X1:Y1:X2:Y2:X3:Y3[:bilinear|bicubic][:edge|black][:size=WxH]",
    what: "perspective: these places (top left, top right, bottom right, bottom left) become the corners",
    parse,
};

/// How far from the picture's corner a place may be.
const PLACE_MAX: f64 = SIDE_MAX as f64;

#[derive(Debug)]
struct Warp {
    quad: Quad,
    size: Option<Size>,
    cubic: bool,
    outside: Outside,
}

#[derive(Copy, Clone, Debug)]
enum Outside {
    Edge,
    Black,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let size = args.take_named("size").map(parse_plain_size).transpose()?;
    let mut corners = [[0.0; 2]; 4];
    for (at, name) in ["x0", "y0", "x1", "y1", "x2", "y2", "x3", "y3"].into_iter().enumerate() {
        corners[at / 2][at % 2] = number(name, args.require(name)?, -PLACE_MAX..=PLACE_MAX)?;
    }
    let filters = [("bilinear", false), ("bicubic", true)];
    let outsides = [("edge", Outside::Edge), ("black", Outside::Black)];
    // `black` may be written without a filter before it.
    let (mut cubic, mut outside) = (false, Outside::Edge);
    match args.take("filter") {
        Some(word) if outsides.iter().any(|(name, _)| *name == word) => outside = one_of("outside", word, &outsides)?,
        Some(word) => {
            cubic = one_of("filter", word, &filters)?;
            outside = args.one_of("outside", &outsides, outside)?;
        }
        None => outside = args.one_of("outside", &outsides, outside)?,
    }
    Ok(Box::new(Warp { quad: Quad(corners), size, cubic, outside }))
}

impl Operation for Warp {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let size = self.size.unwrap_or(picture.size());
        let format = picture.format.with_size(size).map_err(OperationError::because)?;
        let map = self.quad.map_from(size)?;
        let grids: Vec<Grid> = (0..picture.planes.len()).map(|plane| grid(&picture, plane)).collect();
        let (sizes, black) = (format.plane_sizes(), ColourValue::BLACK.planes(format));
        Ok(picture.each(graph, format, |graph, plane, input| {
            let fill = match self.outside {
                Outside::Edge => None,
                Outside::Black => Some(black[plane]),
            };
            let pass = WarpPass::new(graph.size_of(input), sizes[plane], self.cubic, fill);
            let table = pass.table(&map.between(grids[plane]));
            graph.pass_with(pass, table, &[input])[0]
        }))
    }
}

/// Where the samples of a plane lie among pixels: luma samples in their middle, chroma samples where their siting says.
fn grid(picture: &Picture, plane: usize) -> Grid {
    let (across, down) = picture.steps(plane);
    let siting = match picture.format.colour() {
        Colour::Yuv(yuv) => yuv.siting,
        Colour::Rgb | Colour::Mono(_) => Siting::Centre,
    };
    let first = |step: u32, on_a_sample: bool| if on_a_sample { 0.5 } else { f64::from(step) / 2.0 };
    Grid {
        first: [first(across, siting != Siting::Centre), first(down, siting == Siting::TopLeft)],
        step: [across.into(), down.into()],
    }
}
