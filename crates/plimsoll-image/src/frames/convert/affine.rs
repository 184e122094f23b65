//! The pass that mixes three planes into three: between red, green, blue and luma, chroma.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::coding::Affine;
use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "affine",
    wgsl: include_str!("affine.wgsl"),
    entry: "affine",
    bindings: &[Access::Read, Access::Read, Access::Read, Access::Write, Access::Write, Access::Write],
    params: size_of::<AffinePass>(),
    twin: twin::<AffinePass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct AffinePass {
    width: u32,
    height: u32,
    padding: [u32; 2],
    rows: [[f32; 4]; 3],
}

impl AffinePass {
    pub(super) fn new(size: Size, affine: &Affine) -> Self {
        Self { width: size.width, height: size.height, padding: [0; 2], rows: affine.coefficients() }
    }
}

impl Pass for AffinePass {
    const INPUTS: usize = 3;
    const OUTPUTS: usize = 3;

    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for y in rows {
            let [first, second, third] = [0, 1, 2].map(|plane| inputs[plane].row(y));
            for (row, output) in self.rows.iter().zip(&mut *outputs) {
                mix(row, first, second, third, output.row(y));
            }
        }
    }
}

#[autoversion(v4, v3)]
pub(super) fn mix(row: &[f32; 4], first: &[f32], second: &[f32], third: &[f32], out: &mut [f32]) {
    let [of_first, of_second, of_third, constant] = *row;
    for (((out, first), second), third) in out.iter_mut().zip(first).zip(second).zip(third) {
        *out = first * of_first + second * of_second + third * of_third + constant;
    }
}
