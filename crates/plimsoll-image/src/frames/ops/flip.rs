//! `flip`: the picture as in a mirror. `rotate=180` is the same in both directions.
//! Luma is mirrored sample by sample; chroma stays under its luma, wherever it lies.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::chain::{Args, one_of};
use crate::frames::convert::{Orientation, oriented};
use crate::frames::format::Colour;
use crate::frames::graph::{Graph, Move, OnCodes, Pass, Plane, Rows, RowsMut, twin};
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About = About {
    name: "flip",
    usage: "flip=h|v",
    what: "the picture with left and right exchanged, or top and bottom",
    parse,
};

static KERNEL: Kernel = Kernel {
    name: "flip",
    wgsl: include_str!("flip.wgsl"),
    entry: "flip",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<FlipPass>(),
    twin: twin::<FlipPass>,
};

#[derive(Copy, Clone, Debug)]
enum Flip {
    LeftRight,
    TopBottom,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let words = [("h", Flip::LeftRight), ("v", Flip::TopBottom)];
    Ok(Box::new(one_of("direction", args.require("direction")?, &words)?))
}

impl Operation for Flip {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let (across, down) = (matches!(self, Self::LeftRight), matches!(self, Self::TopBottom));
        Ok(flipped(graph, picture, across, down))
    }
}

/// Mirrors a picture: left and right exchanged, top and bottom, or both.
pub(super) fn flipped(graph: &mut Graph, picture: Picture, across: bool, down: bool) -> Picture {
    let (format, luma) = (picture.format, picture.size());
    let orientation = Orientation { mirrors_across: across, mirrors_down: down, exchanges: false };
    picture.each(graph, format, |graph, plane, input| match format.colour() {
        Colour::Yuv(yuv) if plane > 0 => {
            oriented(graph, input, (yuv, luma), orientation, |graph, input| flip(graph, input, across, down))
        }
        _ => flip(graph, input, across, down),
    })
}

fn flip(graph: &mut Graph, input: Plane, across: bool, down: bool) -> Plane {
    let Size { width, height } = graph.size_of(input);
    graph.pass(FlipPass { width, height, across: across.into(), down: down.into() }, input)
}

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
struct FlipPass {
    width: u32,
    height: u32,
    across: u32,
    down: u32,
}

impl FlipPass {
    fn is_down(&self) -> bool {
        self.down == 1
    }
}

impl Pass for FlipPass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn reach(&self, _: &[f32], rows: Range<u32>) -> Range<u32> {
        if self.is_down() { self.height - rows.end..self.height - rows.start } else { rows }
    }

    fn on_codes<'a>(&self, _: &'a [f32]) -> Option<OnCodes<'a>> {
        let how = Move::Mirror { across: self.across == 1, down: self.is_down() };
        Some(OnCodes::Move { how, fill: 0.0 })
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for y in rows {
            let from = inputs[0].row(if self.is_down() { self.height - 1 - y } else { y });
            let to = outputs[0].row(y);
            match self.across {
                0 => to.copy_from_slice(from),
                _ => to.iter_mut().zip(from.iter().rev()).for_each(|(to, from)| *to = *from),
            }
        }
    }
}
