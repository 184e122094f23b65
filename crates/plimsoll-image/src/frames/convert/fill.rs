//! The pass that makes two planes of one number: the chroma of a picture that has luma only.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "fill",
    wgsl: include_str!("fill.wgsl"),
    entry: "fill",
    bindings: &[Access::Write, Access::Write],
    params: size_of::<FillPass>(),
    twin: twin::<FillPass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct FillPass {
    width: u32,
    height: u32,
    value: f32,
    padding: u32,
}

impl FillPass {
    pub(super) fn new(size: Size, value: f64) -> Self {
        Self { width: size.width, height: size.height, value: value as f32, padding: 0 }
    }
}

impl Pass for FillPass {
    const INPUTS: usize = 0;
    const OUTPUTS: usize = 2;

    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn reach(&self, _: &[f32], _: Range<u32>) -> Range<u32> {
        0..0
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, _: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for y in rows {
            outputs.iter_mut().for_each(|output| output.row(y).fill(self.value));
        }
    }
}
