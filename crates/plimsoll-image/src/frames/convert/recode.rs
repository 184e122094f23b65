//! The pass that takes a plane from one range of codes to another.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::coding::Coding;
use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "recode",
    wgsl: include_str!("recode.wgsl"),
    entry: "recode",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<RecodePass>(),
    twin: twin::<RecodePass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct RecodePass {
    width: u32,
    height: u32,
    gain: f32,
    offset: f32,
}

impl RecodePass {
    pub(super) fn new(size: Size, change: Coding) -> Self {
        Self { width: size.width, height: size.height, gain: change.gain as f32, offset: change.offset as f32 }
    }
}

impl Pass for RecodePass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        rows.for_each(|y| recode(self.gain, self.offset, inputs[0].row(y), outputs[0].row(y)));
    }
}

#[autoversion(v3)]
fn recode(gain: f32, offset: f32, input: &[f32], out: &mut [f32]) {
    for (out, input) in out.iter_mut().zip(input) {
        *out = input * gain + offset;
    }
}
