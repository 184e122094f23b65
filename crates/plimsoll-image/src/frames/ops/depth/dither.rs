//! The pass that rounds to codes, up or down as a pattern says: Bayer's ordered dither of 8 x 8. What is a code already
//! stays, so that a second time changes nothing.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "dither",
    wgsl: include_str!("dither.wgsl"),
    entry: "dither",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<DitherPass>(),
    twin: twin::<DitherPass>,
};

/// Rows and columns after which the pattern comes again.
const SIDE: usize = 8;

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct DitherPass {
    width: u32,
    height: u32,
    highest: f32,
    padding: u32,
}

impl DitherPass {
    pub(super) fn new(size: Size, code_max: u16) -> Self {
        Self { width: size.width, height: size.height, highest: code_max.into(), padding: 0 }
    }
}

impl Pass for DitherPass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn rows(&self, _: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        for y in rows {
            let thresholds = std::array::from_fn(|x| (rank(x as u32, y % SIDE as u32) as f32 + 0.5) / 64.0);
            round(&thresholds, self.highest, inputs[0].row(y), outputs[0].row(y));
        }
    }
}

/// Bayer's matrix: the bits of x ^ y and y, interleaved from the lowest to the highest.
fn rank(x: u32, y: u32) -> u32 {
    let d = x ^ y;
    (d & 1) << 5 | (y & 1) << 4 | (d & 2) << 2 | (y & 2) << 1 | (d & 4) >> 1 | (y & 4) >> 2
}

#[autoversion(v3)]
fn round(thresholds: &[f32; SIDE], highest: f32, input: &[f32], out: &mut [f32]) {
    for (out, input) in out.chunks_mut(SIDE).zip(input.chunks(SIDE)) {
        for ((out, input), threshold) in out.iter_mut().zip(input).zip(thresholds) {
            *out = (input * highest + threshold).floor() / highest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_threshold_comes_once() {
        let mut ranks: Vec<u32> = (0..8).flat_map(|y| (0..8).map(move |x| rank(x, y))).collect();
        assert_eq!((rank(0, 0), rank(1, 0), rank(1, 1), rank(0, 1)), (0, 32, 16, 48));
        ranks.sort_unstable();
        assert_eq!(ranks, (0..64).collect::<Vec<_>>());
    }
}
