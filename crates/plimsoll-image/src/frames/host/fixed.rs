//! Planes of 8-bit codes scaled in whole numbers of 16 bits: what ordinary video asks for most.
//!
//! Codes have six more bits while they are summed, and weights fifteen. Each product is rounded to a 64th of a code, each
//! weight by at most 2^-16; with at most [`TAPS_MAX`] taps a sum is off by at most `16 * (1/128 + 255 * 2^-16)`, 0.19 of
//! a code, and both directions, the second making at most 1.3 of what the first left, by less than half of one. Weights
//! above one, which enlarging has at edges, are halved and their sums doubled: then half as many taps lose as much. So a
//! code is at most one away from the passes' own, and mostly the same.
//! Invariant: the sums are of whole numbers, so every version of the code gives the same.

use archmage::prelude::*;

use super::lanes::{LANES, lanes_to_words, words_to_lanes};
use crate::frames::graph::Windows;
use crate::image::Size;

/// The longest windows: what is off grows with each tap.
const TAPS_MAX: u32 = 16;
/// Bits below a code while it is summed.
const BELOW: u32 = 6;
/// Columns of sums that are turned back into rows at a time.
const BLOCK: usize = 64;

/// A plane's way to another size, and the memory for it.
pub(super) struct Scaler {
    input: Size,
    output: Size,
    down: Option<Weights>,
    across: Option<Weights>,
    down_first: bool,
    /// Input rows as they are summed, scaled across already where that comes first: as many as a band needs.
    ring: Vec<i16>,
    ring_width: usize,
    /// Sixteen rows as they come from either direction.
    band: Vec<i16>,
    scaled: Vec<i16>,
    lanes: Vec<[i16; LANES]>,
}

/// The windows of one direction.
struct Weights {
    taps: usize,
    starts: Vec<u32>,
    /// Each weight twice in a word: a vector is filled from words at no cost.
    pairs: Vec<u32>,
    /// How often sums are doubled: the weights are halved as often.
    doubled: i32,
}

impl Weights {
    fn new(windows: &Windows<'_>) -> Option<Self> {
        let taps = windows.taps as usize;
        let (starts, weights) = windows.table.split_at(windows.table.len() / (taps + 1));
        let largest = weights.iter().fold(0.0, |largest: f32, weight| largest.max(weight.abs()));
        let doubled = i32::from(largest > 1.0);
        (windows.taps <= TAPS_MAX >> doubled && largest <= 2.0).then(|| Self {
            taps,
            starts: starts.iter().map(|start| start.to_bits()).collect(),
            pairs: weights.iter().map(|weight| pair(*weight / (1 << doubled) as f32)).collect(),
            doubled,
        })
    }

    /// The rows that some output rows are made of.
    fn reach(&self, rows: std::ops::Range<usize>) -> std::ops::Range<usize> {
        self.starts[rows.start] as usize..self.starts[rows.end - 1] as usize + self.taps
    }

    fn window(&self, at: usize) -> (usize, &[u32]) {
        (self.starts[at] as usize, &self.pairs[at * self.taps..][..self.taps])
    }
}

/// A weight from -1 to 1 with 15 bits below one, twice. One itself is a 32768th too small, which rounding makes up for.
fn pair(weight: f32) -> u32 {
    let weight = (f64::from(weight) * 32768.0).round().min(32767.0) as i16 as u16;
    u32::from(weight) << 16 | u32::from(weight)
}

impl Scaler {
    /// For windows along one direction or along both, in the order in which the passes stand. `None` if the windows are
    /// longer than is exact enough here, or there is no memory to keep within the stated.
    pub(super) fn new(input: Size, output: Size, passes: &[Windows<'_>]) -> Option<Self> {
        let of = |down: bool| passes.iter().find(|windows| windows.down == down);
        let twice = passes.len() == 2 && passes[0].down == passes[1].down;
        if passes.is_empty() || passes.len() > 2 || twice {
            return None;
        }
        let down = of(true).map(Weights::new);
        let across = of(false).map(Weights::new);
        if matches!(down, Some(None)) || matches!(across, Some(None)) {
            return None;
        }
        let (down, across) = (down.flatten(), across.flatten());
        let down_first = passes[0].down;
        let ring_width = if down_first { input.width } else { output.width } as usize;
        let held = rows_held(down.as_ref(), output) + LANES;
        Some(Self {
            input,
            output,
            down_first,
            ring: vec![0; held * ring_width],
            ring_width,
            band: vec![0; LANES * input.width.max(output.width) as usize],
            scaled: vec![0; LANES * output.width as usize],
            lanes: vec![[0; LANES]; across.as_ref().map_or(0, columns_seen)],
            down,
            across,
        })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let words = self.ring.len() + self.band.len() + self.scaled.len() + self.lanes.len() * LANES;
        let weights = [&self.down, &self.across].into_iter().flatten();
        let tables: usize = weights.map(|weights| (weights.starts.len() + weights.pairs.len()) * 4).sum();
        (words * 2 + tables) as u64
    }

    /// Scales a plane.
    pub(super) fn run(&mut self, from: &[u8], to: &mut [u8]) {
        let (height, width) = (self.output.height as usize, self.output.width as usize);
        let mut there = 0;
        for first in (0..height).step_by(LANES) {
            let rows = first..height.min(first + LANES);
            let reach = self.down.as_ref().map_or(rows.clone(), |down| down.reach(rows.clone()));
            there = self.take_in(from, there, reach.end);
            self.sum_down(rows.clone());
            if self.down_first {
                self.sum_across();
            }
            let done = if self.down_first && self.across.is_some() { &self.scaled } else { &self.band };
            for (row, out) in done.chunks_exact(width).zip(to[first * width..].chunks_exact_mut(width)).take(rows.len())
            {
                narrow(row, out);
            }
        }
    }

    /// Makes input rows ready to be summed, up to `end`, and some more where they come in groups. Says how many there are.
    fn take_in(&mut self, from: &[u8], mut there: usize, end: usize) -> usize {
        let (width, height) = (self.input.width as usize, self.input.height as usize);
        let held = self.ring.len() / self.ring_width;
        while there < end {
            let count = LANES.min(height - there);
            let codes = (0..count).map(|at| &from[(there + at) * width..][..width]);
            let slots = (0..count).map(|at| (there + at) % held * self.ring_width);
            match (&self.across, self.down_first) {
                (Some(across), false) => {
                    codes.zip(self.band.chunks_exact_mut(width)).for_each(|(codes, row)| widen(codes, row));
                    sum_along(across, &self.band, width, &mut self.scaled, &mut self.lanes);
                    for (slot, row) in slots.zip(self.scaled.chunks_exact(self.ring_width)) {
                        self.ring[slot..][..self.ring_width].copy_from_slice(row);
                    }
                }
                _ => codes.zip(slots).for_each(|(codes, slot)| widen(codes, &mut self.ring[slot..][..width])),
            }
            there += count;
        }
        there
    }

    /// The rows of a band into `band`.
    fn sum_down(&mut self, rows: std::ops::Range<usize>) {
        let (width, held) = (self.ring_width, self.ring.len() / self.ring_width);
        let row_of = |y: usize| &self.ring[y % held * width..][..width];
        for (y, out) in rows.zip(self.band.chunks_exact_mut(width)) {
            match &self.down {
                None => out.copy_from_slice(row_of(y)),
                Some(down) => {
                    let (start, weights) = down.window(y);
                    let seen: smallvec::SmallVec<[&[i16]; TAPS_MAX as usize]> =
                        (start..start + weights.len()).map(row_of).collect();
                    sum_rows(down.doubled, weights, &seen, out);
                }
            }
        }
    }

    /// The rows of `band` across into `scaled`.
    fn sum_across(&mut self) {
        if let Some(across) = &self.across {
            sum_along(across, &self.band, self.ring_width, &mut self.scaled, &mut self.lanes);
        }
    }
}

/// The most rows between the first that a band needs and the last.
fn rows_held(down: Option<&Weights>, output: Size) -> usize {
    let Some(down) = down else { return LANES };
    let height = output.height as usize;
    let bands = (0..height).step_by(LANES).map(|first| down.reach(first..height.min(first + LANES)));
    bands.map(|reach| reach.len()).max().unwrap_or(0) + LANES
}

/// The most columns that the sums of a block are made of.
fn columns_seen(across: &Weights) -> usize {
    let count = across.starts.len();
    let blocks = (0..count).step_by(BLOCK).map(|first| across.reach(first..count.min(first + BLOCK)));
    blocks.map(|reach| reach.len()).max().unwrap_or(0)
}

/// Sixteen rows across.
fn sum_along(across: &Weights, from: &[i16], width: usize, to: &mut [i16], lanes: &mut [[i16; LANES]]) {
    let to_width = across.starts.len();
    let rows: [&[i16]; LANES] = std::array::from_fn(|lane| &from[lane * width..][..width]);
    let mut out = to.chunks_exact_mut(to_width);
    let mut out: [&mut [i16]; LANES] = std::array::from_fn(|_| out.next().expect("a row for each lane"));
    let mut sums = [[0; LANES]; BLOCK];
    for first in (0..to_width).step_by(BLOCK) {
        let block = first..to_width.min(first + BLOCK);
        let reach = across.reach(block.clone());
        let lanes = &mut lanes[..reach.len()];
        words_to_lanes(&rows, reach.start, lanes);
        let sums = &mut sums[..block.len()];
        let weights = &across.pairs[first * across.taps..][..block.len() * across.taps];
        sum_lanes(across.doubled, &across.starts[block], weights, lanes, sums);
        lanes_to_words(sums, first, &mut out);
    }
}

#[autoversion(v4, v3)]
fn widen(codes: &[u8], out: &mut [i16]) {
    for (out, code) in out.iter_mut().zip(codes) {
        *out = i16::from(*code) << BELOW;
    }
}

#[autoversion(v4, v3)]
fn narrow(sums: &[i16], codes: &mut [u8]) {
    for (code, sum) in codes.iter_mut().zip(sums) {
        *code = ((sum + (1 << (BELOW - 1))) >> BELOW).clamp(0, 255) as u8;
    }
}

/// Weighs rows to one.
fn sum_rows(doubled: i32, weights: &[u32], rows: &[&[i16]], out: &mut [i16]) {
    incant!(sum_rows(doubled, weights, rows, out), [v3, scalar]);
}

/// Weighs lanes to a column each; there are as many weights for each as for any other.
fn sum_lanes(doubled: i32, starts: &[u32], weights: &[u32], lanes: &[[i16; LANES]], sums: &mut [[i16; LANES]]) {
    incant!(sum_lanes(doubled, starts, weights, lanes, sums), [v3, scalar]);
}

/// A product as `vpmulhrsw` has it: rounded to the nearest whole one.
#[inline(always)]
fn times(sample: i16, pair: u32) -> i16 {
    ((i32::from(sample) * i32::from(pair as u16 as i16) + (1 << 14)) >> 15) as i16
}

fn sum_rows_scalar(_: ScalarToken, doubled: i32, weights: &[u32], rows: &[&[i16]], out: &mut [i16]) {
    sum_rows_from(0, doubled, weights, rows, out);
}

fn sum_rows_from(first: usize, doubled: i32, weights: &[u32], rows: &[&[i16]], out: &mut [i16]) {
    for (x, out) in (first..).zip(out) {
        let products = weights.iter().zip(rows).map(|(weight, row)| times(row[x], *weight));
        *out = products.fold(0, i16::wrapping_add) << doubled;
    }
}

#[arcane(import_intrinsics)]
fn sum_rows_v3(_: X64V3Token, doubled: i32, weights: &[u32], rows: &[&[i16]], out: &mut [i16]) {
    const AT_ONCE: usize = 64;
    let (many, rest) = out.as_chunks_mut::<AT_ONCE>();
    let (done, doubled_by) = (many.len() * AT_ONCE, _mm_cvtsi32_si128(doubled));
    for (at, out) in many.iter_mut().enumerate() {
        let mut sums = [_mm256_setzero_si256(); AT_ONCE / 16];
        for (weight, row) in weights.iter().zip(rows) {
            let weight = _mm256_set1_epi32(*weight as i32);
            let row: &[i16; AT_ONCE] = row[at * AT_ONCE..].first_chunk().expect("rows as long as the sums");
            for (sum, part) in sums.iter_mut().zip(row.as_chunks::<16>().0) {
                *sum = _mm256_add_epi16(*sum, _mm256_mulhrs_epi16(_mm256_loadu_si256(part), weight));
            }
        }
        for (out, sum) in out.as_chunks_mut::<16>().0.iter_mut().zip(sums) {
            _mm256_storeu_si256(out, _mm256_sll_epi16(sum, doubled_by));
        }
    }
    sum_rows_from(done, doubled, weights, rows, rest);
}

fn sum_lanes_scalar(
    _: ScalarToken,
    doubled: i32,
    starts: &[u32],
    weights: &[u32],
    lanes: &[[i16; LANES]],
    sums: &mut [[i16; LANES]],
) {
    let taps = weights.len() / starts.len();
    for ((sum, start), weights) in sums.iter_mut().zip(starts).zip(weights.chunks_exact(taps)) {
        let seen = &lanes[(start - starts[0]) as usize..][..taps];
        *sum = std::array::from_fn(|lane| {
            let products = weights.iter().zip(seen).map(|(weight, seen)| times(seen[lane], *weight));
            products.fold(0, i16::wrapping_add) << doubled
        });
    }
}

/// Windows of lengths that are met often are unrolled.
#[arcane(import_intrinsics)]
fn sum_lanes_v3(
    token: X64V3Token,
    doubled: i32,
    starts: &[u32],
    weights: &[u32],
    lanes: &[[i16; LANES]],
    sums: &mut [[i16; LANES]],
) {
    let (taps, doubled) = (weights.len() / starts.len(), _mm_cvtsi32_si128(doubled));
    match taps {
        2 => sum_some::<2>(token, doubled, starts, weights, lanes, sums),
        3 => sum_some::<3>(token, doubled, starts, weights, lanes, sums),
        4 => sum_some::<4>(token, doubled, starts, weights, lanes, sums),
        6 => sum_some::<6>(token, doubled, starts, weights, lanes, sums),
        8 => sum_some::<8>(token, doubled, starts, weights, lanes, sums),
        9 => sum_some::<9>(token, doubled, starts, weights, lanes, sums),
        _ => {
            for ((sum, start), weights) in sums.iter_mut().zip(starts).zip(weights.chunks_exact(taps)) {
                let seen = &lanes[(start - starts[0]) as usize..][..taps];
                _mm256_storeu_si256(sum, _mm256_sll_epi16(weighted(token, weights, seen), doubled));
            }
        }
    }
}

#[rite(import_intrinsics)]
fn sum_some<const TAPS: usize>(
    token: X64V3Token,
    doubled: __m128i,
    starts: &[u32],
    weights: &[u32],
    lanes: &[[i16; LANES]],
    sums: &mut [[i16; LANES]],
) {
    let first = starts[0];
    for ((sum, start), weights) in sums.iter_mut().zip(starts).zip(weights.as_chunks::<TAPS>().0) {
        let start = (start - first) as usize;
        let seen: &[[i16; LANES]] = &lanes[start..start + TAPS];
        _mm256_storeu_si256(sum, _mm256_sll_epi16(weighted(token, weights, seen), doubled));
    }
}

#[rite(import_intrinsics)]
fn weighted(_: X64V3Token, weights: &[u32], seen: &[[i16; LANES]]) -> __m256i {
    let mut sum = _mm256_setzero_si256();
    for (weight, seen) in weights.iter().zip(seen) {
        let product = _mm256_mulhrs_epi16(_mm256_loadu_si256(seen), _mm256_set1_epi32(*weight as i32));
        sum = _mm256_add_epi16(sum, product);
    }
    sum
}
