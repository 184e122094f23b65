//! The pass that makes luma alone of red, green and blue.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::affine::mix;
use super::coding::Affine;
use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "luma",
    wgsl: include_str!("luma.wgsl"),
    entry: "luma",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write],
    params: size_of::<LumaPass>(),
    twin: twin::<LumaPass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct LumaPass {
    width: u32,
    height: u32,
    padding: [u32; 2],
    row: [f32; 4],
}

impl LumaPass {
    /// The first of the three planes that `affine` gives.
    pub(super) fn new(size: Size, affine: &Affine) -> Self {
        Self { width: size.width, height: size.height, padding: [0; 2], row: affine.coefficients()[0] }
    }
}

impl Pass for LumaPass {
    const INPUTS: usize = 3;

    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for y in rows {
            mix(&self.row, inputs[0].row(y), inputs[1].row(y), inputs[2].row(y), outputs[0].row(y));
        }
    }
}
