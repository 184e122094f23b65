//! `rotate`: the picture turned clockwise by quarters. Luma is turned sample by sample; chroma stays under its luma,
//! wherever it lies.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};
use smallvec::SmallVec;

use super::flip::flipped;
use crate::frames::carry::Carried;
use crate::frames::chain::{Args, one_of};
use crate::frames::convert::{Orientation, oriented};
use crate::frames::format::{Colour, Format};
use crate::frames::graph::{Graph, Move, OnCodes, Pass, Plane, Rows, RowsMut, twin};
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About =
    About { name: "rotate", usage: "rotate=90|180|270", what: "the picture turned clockwise", parse };

/// Columns written at once: those of input rows whose nearest samples then still lie in the nearest cache.
const COLUMNS: usize = 16;

static KERNEL: Kernel = Kernel {
    name: "turn",
    wgsl: include_str!("turn.wgsl"),
    entry: "turn",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<TurnPass>(),
    twin: twin::<TurnPass>,
};

#[derive(Copy, Clone, Debug)]
enum Rotate {
    Clockwise,
    Half,
    CounterClockwise,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let words = [("90", Rotate::Clockwise), ("180", Rotate::Half), ("270", Rotate::CounterClockwise)];
    Ok(Box::new(one_of("angle", args.require("angle")?, &words)?))
}

impl Operation for Rotate {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        if matches!(self, Self::Half) {
            return Ok(flipped(graph, picture, true, true));
        }
        if (0..picture.planes.len()).map(|plane| picture.steps(plane)).any(|(across, down)| across != down) {
            return Err(OperationError::because(
                "its chroma would have half as many rows instead of columns, which no stream can hold; put yuv=…:444 or \
                 yuv=…:420 before it",
            ));
        }
        let (before, luma) = (picture.format, picture.size());
        let after =
            before.with_size(Size { width: luma.height, height: luma.width }).map_err(OperationError::because)?;
        let clockwise = matches!(self, Self::Clockwise);
        let orientation = Orientation { mirrors_across: !clockwise, mirrors_down: clockwise, exchanges: true };
        Ok(picture.each(graph, after, |graph, plane, input| match before.colour() {
            Colour::Yuv(yuv) if plane > 0 => {
                oriented(graph, input, (yuv, luma), orientation, |graph, input| turn(graph, input, clockwise))
            }
            _ => turn(graph, input, clockwise),
        }))
    }

    fn carry(&self, stream: &mut Carried, _: Format) -> Result<(), OperationError> {
        if !matches!(self, Self::Half) {
            stream.turn();
        }
        Ok(())
    }
}

fn turn(graph: &mut Graph, input: Plane, clockwise: bool) -> Plane {
    let Size { width, height } = graph.size_of(input);
    graph.pass(TurnPass { width, height, clockwise: clockwise.into(), padding: 0 }, input)
}

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
struct TurnPass {
    width: u32,
    height: u32,
    clockwise: u32,
    padding: u32,
}

impl TurnPass {
    /// The row of the input that becomes column `x`.
    fn source_row(&self, x: u32) -> u32 {
        if self.clockwise == 1 { self.height - 1 - x } else { x }
    }

    /// The column of the input that becomes row `y`.
    fn source_column(&self, y: u32) -> usize {
        (if self.clockwise == 1 { y } else { self.width - 1 - y }) as usize
    }
}

impl Pass for TurnPass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn input(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn output(&self) -> Size {
        Size { width: self.height, height: self.width }
    }

    fn reach(&self, _: &[f32], _: Range<u32>) -> Range<u32> {
        0..self.height
    }

    fn on_codes<'a>(&self, _: &'a [f32]) -> Option<OnCodes<'a>> {
        Some(OnCodes::Move { how: Move::Turn { clockwise: self.clockwise == 1 }, fill: 0.0 })
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for first in (0..self.height).step_by(COLUMNS) {
            let columns = first..self.height.min(first + COLUMNS as u32);
            let from: SmallVec<[&[f32]; COLUMNS]> = columns.map(|x| inputs[0].row(self.source_row(x))).collect();
            for y in rows.clone() {
                let (to, column) = (&mut outputs[0].row(y)[first as usize..], self.source_column(y));
                to.iter_mut().zip(&from).for_each(|(to, from)| *to = from[column]);
            }
        }
    }
}
