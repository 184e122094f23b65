//! The pass that sums weighted pixels.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::frames::ops::edges::{Padded, rows_around};
use crate::frames::ops::taps;
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "convolve",
    wgsl: include_str!("convolve.wgsl"),
    entry: "convolve",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<ConvolvePass>(),
    twin: twin::<ConvolvePass>,
};

/// Samples summed at once: their sums stay in registers while all taps go by.
const BLOCK: usize = 64;

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct ConvolvePass {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) taps: u32,
    pub(super) bias: f32,
    pub(super) reach_across: u32,
    pub(super) reach_down: u32,
    pub(super) padding: [u32; 2],
}

impl Pass for ConvolvePass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn reach(&self, _: &[f32], rows: Range<u32>) -> Range<u32> {
        rows_around(rows, self.reach_down, self.height)
    }

    fn rows(&self, table: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let reach = (self.reach_across, self.reach_down);
        let padded = Padded::new(&inputs[0], self.input(), rows.clone(), reach);
        for y in rows {
            sum_taps(&taps::seen(table, &padded, y), self.bias, outputs[0].row(y));
        }
    }
}

#[autoversion(v4, v3)]
fn sum_taps(taps: &[(f32, &[f32])], bias: f32, out: &mut [f32]) {
    let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
    for (at, sums) in blocks.iter_mut().enumerate() {
        *sums = sum_block(taps, bias, at * BLOCK);
    }
    for (at, sum) in rest.iter_mut().enumerate() {
        [*sum] = sum_block(taps, bias, blocks.len() * BLOCK + at);
    }
}

/// The sums from sample `x` on, added in the order of the taps.
#[inline(always)]
fn sum_block<const N: usize>(taps: &[(f32, &[f32])], bias: f32, x: usize) -> [f32; N] {
    let mut sums = [bias; N];
    for (weight, seen) in taps {
        let seen: &[f32; N] = seen[x..].first_chunk().expect("a sample for each sum");
        for at in 0..N {
            sums[at] += weight * seen[at];
        }
    }
    sums.map(|sum| sum.clamp(0.0, 1.0))
}
