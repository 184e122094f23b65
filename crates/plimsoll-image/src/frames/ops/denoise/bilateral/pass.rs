//! The pass that takes the mean of pixels that are near and alike.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use crate::frames::graph::{Pass, Rows, RowsMut, twin};
use crate::frames::ops::edges::{Padded, rows_around};
use crate::frames::ops::exp2::{self, power_of_two};
use crate::frames::ops::taps;
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "bilateral",
    wgsl: concat!(exp2::wgsl!(), include_str!("bilateral.wgsl")),
    entry: "bilateral",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<BilateralPass>(),
    twin: twin::<BilateralPass>,
};

/// Samples computed at once: their sums stay in registers while all taps go by.
const BLOCK: usize = 32;

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct BilateralPass {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) taps: u32,
    pub(super) tone: f32,
    pub(super) reach_across: u32,
    pub(super) reach_down: u32,
    pub(super) padding: [u32; 2],
}

impl Pass for BilateralPass {
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
            means(&taps::seen(table, &padded, y), self.tone, inputs[0].row(y), outputs[0].row(y));
        }
    }
}

#[autoversion(v4, v3)]
fn means(taps: &[(f32, &[f32])], tone: f32, row: &[f32], out: &mut [f32]) {
    let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
    for (at, means) in blocks.iter_mut().enumerate() {
        *means = means_of_block(taps, tone, row, at * BLOCK);
    }
    for (at, mean) in rest.iter_mut().enumerate() {
        [*mean] = means_of_block(taps, tone, row, blocks.len() * BLOCK + at);
    }
}

/// The means from sample `x` on.
#[inline(always)]
fn means_of_block<const N: usize>(taps: &[(f32, &[f32])], tone: f32, row: &[f32], x: usize) -> [f32; N] {
    let own: &[f32; N] = row[x..].first_chunk().expect("a sample for each mean");
    let (mut sums, mut weights) = ([0.0; N], [0.0; N]);
    for (near, seen) in taps {
        let seen: &[f32; N] = seen[x..].first_chunk().expect("a sample for each mean");
        for at in 0..N {
            let apart = seen[at] - own[at];
            let weight = power_of_two(near + tone * (apart * apart));
            sums[at] += weight * apart;
            weights[at] += weight;
        }
    }
    for at in 0..N {
        sums[at] = own[at] + sums[at] / weights[at];
    }
    sums
}
