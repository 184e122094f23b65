//! Scales columns: each output row is a weighted sum of input rows, computed many columns at a time.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};
use smallvec::SmallVec;

use super::windows::window;
use crate::frames::graph::{OnCodes, Pass, Rows, RowsMut, Windows, twin};
use crate::image::Size;

/// Columns summed at once: their sums stay in registers while the rows pass by. 32 took 1.1 times as long.
const COLUMNS: usize = 64;
/// Columns of which all rows of a band are computed before the next: every input row is needed for several output rows,
/// and so much of all of them stays in the nearest cache.
const BLOCK: usize = 4 * COLUMNS;

static KERNEL: Kernel = Kernel {
    name: "scale_down",
    wgsl: include_str!("down.wgsl"),
    entry: "scale_down",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<DownPass>(),
    twin: twin::<DownPass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct DownPass {
    pub(super) input_width: u32,
    pub(super) input_height: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) taps: u32,
    pub(super) padding: [u32; 3],
}

impl Pass for DownPass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn input(&self) -> Size {
        Size { width: self.input_width, height: self.input_height }
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn reach(&self, table: &[f32], rows: Range<u32>) -> Range<u32> {
        let start = |y| window(table, self.height, self.taps, y).0;
        start(rows.start)..start(rows.end - 1) + self.taps
    }

    fn on_codes<'a>(&self, table: &'a [f32]) -> Option<OnCodes<'a>> {
        Some(OnCodes::Windows(Windows { down: true, taps: self.taps, table }))
    }

    fn rows(&self, table: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let reach = self.reach(table, rows.clone());
        let from: SmallVec<[&[f32]; 64]> = reach.clone().map(|y| inputs[0].row(y)).collect();
        for first in (0..self.width as usize).step_by(BLOCK) {
            let end = (self.width as usize).min(first + BLOCK);
            for y in rows.clone() {
                let (start, weights) = window(table, self.height, self.taps, y);
                let taps = &from[(start - reach.start) as usize..][..self.taps as usize];
                weigh(weights, taps, first, &mut outputs[0].row(y)[first..end]);
            }
        }
    }
}

/// The columns of `out`, the first of which is the `first` of the rows.
#[autoversion(v4, v3)]
fn weigh(weights: &[f32], rows: &[&[f32]], first: usize, out: &mut [f32]) {
    let (many, rest) = out.as_chunks_mut::<COLUMNS>();
    let done = first + many.len() * COLUMNS;
    for (at, out) in many.iter_mut().enumerate() {
        *out = sums(weights, rows, first + at * COLUMNS);
    }
    for (at, out) in rest.iter_mut().enumerate() {
        [*out] = sums(weights, rows, done + at);
    }
}

/// The same operations, in the same order, as the shader's for a pixel.
#[inline(always)]
fn sums<const COUNT: usize>(weights: &[f32], rows: &[&[f32]], first: usize) -> [f32; COUNT] {
    let mut sums = [0.0; COUNT];
    for (weight, row) in weights.iter().zip(rows) {
        for (sum, sample) in sums.iter_mut().zip(&row[first..first + COUNT]) {
            *sum += weight * sample;
        }
    }
    sums
}
