//! Scales rows: each output column is a weighted sum of input columns, computed for the rows of a band at once.

use std::ops::Range;

use archmage::autoversion;
use bytemuck::{Pod, Zeroable};
use plimsoll_runtime::{Access, Kernel};

use super::lanes::{BLOCK, LANES, Lanes, to_lanes, to_rows};
use crate::frames::graph::{OnCodes, Pass, Rows, RowsMut, Windows, twin};
use crate::image::Size;

static KERNEL: Kernel = Kernel {
    name: "scale_across",
    wgsl: include_str!("across.wgsl"),
    entry: "scale_across",
    bindings: &[Access::Read, Access::Read, Access::Write],
    params: size_of::<AcrossPass>(),
    twin: twin::<AcrossPass>,
};

/// The uniform; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub(super) struct AcrossPass {
    pub(super) input_width: u32,
    pub(super) input_height: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) taps: u32,
    pub(super) padding: [u32; 3],
}

impl Pass for AcrossPass {
    fn kernel() -> &'static Kernel {
        &KERNEL
    }

    fn input(&self) -> Size {
        Size { width: self.input_width, height: self.input_height }
    }

    fn output(&self) -> Size {
        Size { width: self.width, height: self.height }
    }

    fn on_codes<'a>(&self, table: &'a [f32]) -> Option<OnCodes<'a>> {
        Some(OnCodes::Windows(Windows { down: false, taps: self.taps, table }))
    }

    fn rows(&self, table: &[f32], rows: Range<u32>, inputs: &[Rows<'_>], outputs: &mut [RowsMut<'_>]) {
        let mut scratch = Scratch { lanes: Vec::new(), sums: [[0.0; LANES]; BLOCK], rows: [[0.0; BLOCK]; LANES] };
        for first in rows.clone().step_by(LANES) {
            let group = first..rows.end.min(first + LANES as u32);
            self.group(table, group, inputs[0], &mut outputs[0], &mut scratch);
        }
    }
}

/// What lies between input and output, small enough for the nearest cache.
struct Scratch {
    lanes: Vec<Lanes>,
    sums: [Lanes; BLOCK],
    rows: [[f32; BLOCK]; LANES],
}

impl AcrossPass {
    /// As many rows as there are lanes, or fewer: lanes without a row hold the last one and are left over.
    fn group(&self, table: &[f32], rows: Range<u32>, input: Rows<'_>, output: &mut RowsMut<'_>, scratch: &mut Scratch) {
        let (starts, weights) = table.split_at(self.width as usize);
        let taps = self.taps as usize;
        let from: [&[f32]; LANES] = std::array::from_fn(|lane| input.row((rows.start + lane as u32).min(rows.end - 1)));
        let blocks = starts.chunks(BLOCK).zip(weights.chunks(BLOCK * taps));
        for (block, (starts, weights)) in blocks.enumerate() {
            let (first, last) = (starts[0].to_bits() as usize, starts[starts.len() - 1].to_bits() as usize);
            scratch.lanes.resize(last - first + taps, [0.0; LANES]);
            to_lanes(&from, first, &mut scratch.lanes);
            weigh(starts, weights, &scratch.lanes, &mut scratch.sums);
            to_rows(&scratch.sums, &mut scratch.rows);
            for (y, row) in rows.clone().zip(&scratch.rows) {
                output.row(y)[block * BLOCK..][..starts.len()].copy_from_slice(&row[..starts.len()]);
            }
        }
    }
}

/// The sums of a block, for all lanes. Windows of lengths that are met often are unrolled: 0.36 ms instead of 0.43 for
/// 1280 x 720 sums of six.
#[autoversion(v4, v3)]
fn weigh(starts: &[f32], weights: &[f32], lanes: &[Lanes], sums: &mut [Lanes; BLOCK]) {
    match weights.len() / starts.len() {
        1 => weigh_some::<1>(starts, weights, lanes, sums),
        2 => weigh_some::<2>(starts, weights, lanes, sums),
        3 => weigh_some::<3>(starts, weights, lanes, sums),
        4 => weigh_some::<4>(starts, weights, lanes, sums),
        6 => weigh_some::<6>(starts, weights, lanes, sums),
        8 => weigh_some::<8>(starts, weights, lanes, sums),
        taps => weigh_any(starts, weights, taps, lanes, sums),
    }
}

#[inline(always)]
fn weigh_some<const TAPS: usize>(starts: &[f32], weights: &[f32], lanes: &[Lanes], sums: &mut [Lanes; BLOCK]) {
    let first = starts[0].to_bits();
    for ((sum, start), weights) in sums.iter_mut().zip(starts).zip(weights.as_chunks::<TAPS>().0) {
        let start = (start.to_bits() - first) as usize;
        *sum = weighted(weights, &lanes[start..start + TAPS]);
    }
}

#[inline(always)]
fn weigh_any(starts: &[f32], weights: &[f32], taps: usize, lanes: &[Lanes], sums: &mut [Lanes; BLOCK]) {
    let first = starts[0].to_bits();
    for ((sum, start), weights) in sums.iter_mut().zip(starts).zip(weights.chunks_exact(taps)) {
        *sum = weighted(weights, &lanes[(start.to_bits() - first) as usize..]);
    }
}

/// The same operations, in the same order, as the shader's for a pixel.
#[inline(always)]
fn weighted(weights: &[f32], columns: &[Lanes]) -> Lanes {
    let mut sums = [0.0; LANES];
    for (weight, column) in weights.iter().zip(columns) {
        for (sum, sample) in sums.iter_mut().zip(column) {
            *sum += weight * sample;
        }
    }
    sums
}
