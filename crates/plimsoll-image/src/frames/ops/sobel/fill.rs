//! A plane of one number: the chroma of a grey picture.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "fill",
    wgsl: include_str!("fill.wgsl"),
    entry: "fill",
    bindings: &[Access::Write],
    params: size_of::<FillPass>(),
    twin: twin::<FillPass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct FillPass {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) value: f32,
    pub(super) padding: u32,
}

impl Pass for FillPass {
    const INPUTS: usize = 0;

    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn input(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn output(&self) -> Size {
        self.input()
    }

    fn reach(&self, _: &[f32], _: Range<u32>) -> Range<u32> {
        0..0
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, _: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        rows.for_each(|y| outputs[0].row(y).fill(self.value));
    }
}
