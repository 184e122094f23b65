//! `crop`: a part of the picture.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::geometry::{Area, Position, in_planes};
use crate::frames::chain::Args;
use crate::frames::graph::{Graph, Move, OnCodes, Pass, Rows, RowsMut, twin};
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About = About {
    name: "crop",
    usage: "crop=WxH[+X+Y]|W:H[:X:Y]",
    what: "a part of the picture; from its middle, if no position is given; W to Y may be sums, as iw/2",
    parse,
};

static KERNEL: Kernel = Kernel {
    name: "crop",
    wgsl: include_str!("crop.wgsl"),
    entry: "crop",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<CropPass>(),
    twin: twin::<CropPass>,
};

#[derive(Debug)]
struct Crop(Area);

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    Ok(Box::new(Crop(Area::take(args)?)))
}

impl Operation for Crop {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let size = self.0.size(picture.size())?;
        let position = self.0.position(&picture, size)?;
        cropped(graph, picture, size, position)
    }
}

/// A part of a picture.
pub(super) fn cropped(
    graph: &mut Graph,
    picture: Picture,
    size: Size,
    position: Position,
) -> Result<Picture, OperationError> {
    let (left, top) = position.within(picture.size(), size)?;
    let format = picture.format.with_size(size).map_err(OperationError::because)?;
    let places = in_planes(&picture, left, top)?;
    let sizes = format.plane_sizes();
    Ok(picture.each(graph, format, |graph, plane, input| {
        let ((left, top), output, input_size) = (places[plane], sizes[plane], graph.size_of(input));
        let pass = CropPass {
            input_width: input_size.width,
            input_height: input_size.height,
            width: output.width,
            height: output.height,
            left,
            top,
            padding: [0; 2],
        };
        graph.pass(pass, input)
    }))
}

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
struct CropPass {
    input_width: u32,
    input_height: u32,
    width: u32,
    height: u32,
    left: u32,
    top: u32,
    padding: [u32; 2],
}

impl Pass for CropPass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn input(&self) -> Size {
        Size { width: self.input_width, height: self.input_height }
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn reach(&self, _: &[f32], rows: Range<u32>) -> Range<u32> {
        rows.start + self.top..rows.end + self.top
    }

    fn on_codes<'a>(&self, _: &'a [f32]) -> Option<OnCodes<'a>> {
        let how = Move::Window { from: (self.left, self.top), to: (0, 0), size: self.output() };
        Some(OnCodes::Move { how, fill: 0.0 })
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for y in rows {
            let row = &inputs[0].row(y + self.top)[self.left as usize..][..self.width as usize];
            outputs[0].row(y).copy_from_slice(row);
        }
    }
}
