//! `lut`: red, green and blue looked up in a table from a `.cube` file, of one dimension or three.
//!
//! The table is looked up by codes from 0 (black) to 1 (white); pictures with chroma become red, green and blue and go
//! back. Between the points of a table of three dimensions it is interpolated in tetrahedra, which keeps greys grey, or in
//! all three directions (trilinear); in one dimension, along straight lines.

mod cube;
mod pass;

use std::path::Path;

use self::cube::{Cube, Dimensions};
use self::pass::{LinePass, SolidPass};
use crate::frames::carry::Carried;
use crate::frames::chain::{Args, one_of, unescaped};
use crate::frames::convert::{to_colour, to_rgb};
use crate::frames::format::Format;
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;

pub(super) const ABOUT: About = About {
    name: "lut",
    usage: "lut=FILE[:tetrahedral|trilinear]",
    what: "colours from a .cube file of one or three dimensions; tetrahedral, if nothing is said",
    parse,
};

/// How it is interpolated between points of three dimensions. The numbers are the kernel's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Between {
    Tetrahedral = 0,
    Trilinear = 1,
}

const WAYS: [(&str, Between); 2] = [("tetrahedral", Between::Tetrahedral), ("trilinear", Between::Trilinear)];

#[derive(Debug)]
struct Lut {
    cube: Cube,
    between: Between,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let file = unescaped(args.require("file")?);
    let between = args.take_named("interp").or_else(|| args.take("between"));
    let between = between.map_or(Ok(Between::Tetrahedral), |text| one_of("the way between points", text, &WAYS))?;
    Ok(Box::new(Lut { cube: Cube::read(Path::new(&file))?, between }))
}

impl Operation for Lut {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let before = picture.format.colour();
        let picture = to_rgb(graph, picture);
        let planes = match self.cube.dimensions {
            Dimensions::One => {
                let pass = LinePass::new(picture.size(), &self.cube);
                graph.pass_with(pass, self.cube.table.clone(), &picture.planes)
            }
            Dimensions::Three => {
                let pass = SolidPass::new(picture.size(), &self.cube, self.between);
                graph.pass_with(pass, self.cube.table.clone(), &picture.planes)
            }
        };
        Ok(to_colour(graph, Picture { planes, ..picture }, before))
    }

    fn carry(&self, stream: &mut Carried, before: Format) -> Result<(), OperationError> {
        stream.uses_coding(before);
        Ok(())
    }
}
