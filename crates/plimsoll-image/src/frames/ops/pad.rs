//! `pad`: the picture in a larger one of one colour.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::colour_value::ColourValue;
use super::geometry::{Area, Position, in_planes};
use crate::frames::carry::Carried;
use crate::frames::chain::Args;
use crate::frames::format::Format;
use crate::frames::graph::{Graph, Move, OnCodes, Pass, Rows, RowsMut, twin};
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About = About {
    name: "pad",
    usage: "pad=WxH[+X+Y]|W:H:X:Y[:black|grey|white|RRGGBB]",
    what: "the picture in a larger one of one colour; in its middle, if no position is given; W to Y may be sums, as ih*2",
    parse,
};

static KERNEL: Kernel = Kernel {
    name: "pad",
    wgsl: include_str!("pad.wgsl"),
    entry: "pad",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<PadPass>(),
    twin: twin::<PadPass>,
};

#[derive(Debug)]
struct Pad {
    area: Area,
    colour: ColourValue,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let area = Area::take(args)?;
    if area.is_side_by_side && !area.has_position() {
        return Err(OperationError::because(
            "say where: W:H:0:0 is at the top left, as ffmpeg has it, and WxH in the middle",
        ));
    }
    let colour = args.take_named("color").or_else(|| args.take("colour"));
    Ok(Box::new(Pad { area, colour: colour.map_or(Ok(ColourValue::BLACK), ColourValue::parse)? }))
}

impl Operation for Pad {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let size = self.area.size(picture.size())?;
        let position = self.area.position(&picture, size)?;
        padded(graph, picture, size, position, self.colour)
    }

    fn carry(&self, stream: &mut Carried, before: Format) -> Result<(), OperationError> {
        if !self.colour.is_grey() {
            stream.uses_coding(before);
        }
        Ok(())
    }
}

/// A picture in a larger one.
pub(super) fn padded(
    graph: &mut Graph,
    picture: Picture,
    size: Size,
    position: Position,
    colour: ColourValue,
) -> Result<Picture, OperationError> {
    let (left, top) = position.within(size, picture.size())?;
    let format = picture.format.with_size(size).map_err(OperationError::because)?;
    let places = in_planes(&picture, left, top)?;
    let (sizes, values) = (format.plane_sizes(), colour.planes(format));
    Ok(picture.each(graph, format, |graph, plane, input| {
        let ((left, top), output, input_size) = (places[plane], sizes[plane], graph.size_of(input));
        let pass = PadPass {
            input_width: input_size.width,
            input_height: input_size.height,
            width: output.width,
            height: output.height,
            left,
            top,
            value: values[plane],
            padding: 0,
        };
        graph.pass(pass, input)
    }))
}

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
struct PadPass {
    input_width: u32,
    input_height: u32,
    width: u32,
    height: u32,
    left: u32,
    top: u32,
    value: f32,
    padding: u32,
}

impl Pass for PadPass {
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
        let inside = |y: u32| y.saturating_sub(self.top).min(self.input_height);
        inside(rows.start)..inside(rows.end)
    }

    fn on_codes<'a>(&self, _: &'a [f32]) -> Option<OnCodes<'a>> {
        let how = Move::Window { from: (0, 0), to: (self.left, self.top), size: self.input() };
        Some(OnCodes::Move { how, fill: self.value })
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let inside = self.top..self.top + self.input_height;
        for y in rows {
            let row = outputs[0].row(y);
            if !inside.contains(&y) {
                row.fill(self.value);
                continue;
            }
            let (before, rest) = row.split_at_mut(self.left as usize);
            let (picture, after) = rest.split_at_mut(self.input_width as usize);
            before.fill(self.value);
            picture.copy_from_slice(inputs[0].row(y - self.top));
            after.fill(self.value);
        }
    }
}
