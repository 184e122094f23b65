//! The pass that puts a plane and its blur together.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "unsharp",
    wgsl: include_str!("unsharp.wgsl"),
    entry: "unsharp",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<UnsharpPass>(),
    twin: twin::<UnsharpPass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct UnsharpPass {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) amount: f32,
    pub(super) threshold: f32,
}

impl Pass for UnsharpPass {
    const INPUTS: usize = 2;

    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for y in rows {
            sharpen(inputs[0].row(y), inputs[1].row(y), self.amount, self.threshold, outputs[0].row(y));
        }
    }
}

#[autoversion(v4, v3)]
fn sharpen(plane: &[f32], blurred: &[f32], amount: f32, threshold: f32, out: &mut [f32]) {
    for ((out, sample), blurred) in out.iter_mut().zip(plane).zip(blurred) {
        let detail = sample - blurred;
        let counted = detail - detail.clamp(-threshold, threshold);
        *out = (sample + amount * counted).clamp(0.0, 1.0);
    }
}
