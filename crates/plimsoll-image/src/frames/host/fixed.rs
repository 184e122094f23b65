//! Planes of codes of 8 to 10 bits scaled in whole numbers: what ordinary video asks for most. How windows are summed, and
//! how far that is from the passes' own sums, is said in `sums.rs`; a code is at most one away, and mostly the same.
//! Invariant: the sums are of whole numbers, so every version of the code gives the same.

use archmage::autoversion;

use super::lanes::{LANES, lanes_to_words, words_to_lanes};
use super::sums::{TAPS_MAX, Weights};
use crate::frames::graph::Windows;
use crate::image::Size;

/// Codes that are scaled here: deeper ones would have too few bits below them.
const DEPTHS: std::ops::RangeInclusive<u8> = 8..=10;
/// Bits of a code while it is summed, with those below it. Sums may be almost twice the highest code.
const SUMMED_BITS: u32 = 14;
/// Columns of sums that are turned back into rows at a time.
const BLOCK: usize = 64;

/// A plane's way to another size, and the memory for it.
pub(super) struct Scaler {
    input: Size,
    output: Size,
    /// Bits of a code.
    depth: u8,
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

impl Scaler {
    /// For codes of this depth, and windows along one direction or along both, in the order in which the passes stand.
    /// `None` if the codes are deeper, or the windows longer, than is exact enough here.
    pub(super) fn new(depth: u8, input: Size, output: Size, passes: &[Windows<'_>]) -> Option<Self> {
        if !DEPTHS.contains(&depth) {
            return None;
        }
        let of = |down: bool| passes.iter().find(|windows| windows.down == down);
        let twice = passes.len() == 2 && passes[0].down == passes[1].down;
        if passes.is_empty() || passes.len() > 2 || twice {
            return None;
        }
        let down = of(true).map(|windows| Weights::new(windows, depth));
        let across = of(false).map(|windows| Weights::new(windows, depth));
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
            depth,
            down_first,
            ring: vec![0; held * ring_width],
            ring_width,
            band: vec![0; LANES * input.width.max(output.width) as usize],
            scaled: vec![0; LANES * output.width as usize],
            lanes: vec![[0; LANES]; across.as_ref().map_or(0, columns_seen) + 1],
            down,
            across,
        })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let words = self.ring.len() + self.band.len() + self.scaled.len() + self.lanes.len() * LANES;
        let weights = [&self.down, &self.across].into_iter().flatten();
        let tables: usize = weights.map(Weights::bytes).sum();
        (words * 2 + tables) as u64
    }

    /// Bytes of a code.
    fn sample_bytes(&self) -> usize {
        usize::from(self.depth).div_ceil(8)
    }

    /// Scales a plane. No code is above the highest.
    pub(super) fn run(&mut self, from: &[u8], to: &mut [u8]) {
        let (height, width) = (self.output.height as usize, self.output.width as usize);
        let row_bytes = width * self.sample_bytes();
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
            let out = to[first * row_bytes..].chunks_exact_mut(row_bytes);
            for (row, out) in done.chunks_exact(width).zip(out).take(rows.len()) {
                narrow(self.depth, row, out);
            }
        }
    }

    /// Makes input rows ready to be summed, up to `end`, and some more where they come in groups. Says how many there are.
    fn take_in(&mut self, from: &[u8], mut there: usize, end: usize) -> usize {
        let (width, height) = (self.input.width as usize, self.input.height as usize);
        let (held, row_bytes, depth) = (self.ring.len() / self.ring_width, width * self.sample_bytes(), self.depth);
        while there < end {
            let count = LANES.min(height - there);
            let codes = (0..count).map(|at| &from[(there + at) * row_bytes..][..row_bytes]);
            let slots = (0..count).map(|at| (there + at) % held * self.ring_width);
            match (&self.across, self.down_first) {
                (Some(across), false) => {
                    codes.zip(self.band.chunks_exact_mut(width)).for_each(|(codes, row)| widen(depth, codes, row));
                    sum_along(across, &self.band, width, &mut self.scaled, &mut self.lanes);
                    for (slot, row) in slots.zip(self.scaled.chunks_exact(self.ring_width)) {
                        self.ring[slot..][..self.ring_width].copy_from_slice(row);
                    }
                }
                _ => codes.zip(slots).for_each(|(codes, slot)| widen(depth, codes, &mut self.ring[slot..][..width])),
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
                    let seen: smallvec::SmallVec<[&[i16]; TAPS_MAX as usize]> =
                        down.reach(y..y + 1).map(row_of).collect();
                    down.sum_rows(y, &seen, out);
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
    let count = across.count();
    let blocks = (0..count).step_by(BLOCK).map(|first| across.reach(first..count.min(first + BLOCK)));
    blocks.map(|reach| reach.len()).max().unwrap_or(0)
}

/// Sixteen rows across.
fn sum_along(across: &Weights, from: &[i16], width: usize, to: &mut [i16], lanes: &mut [[i16; LANES]]) {
    let to_width = across.count();
    let rows: [&[i16]; LANES] = std::array::from_fn(|lane| &from[lane * width..][..width]);
    let mut out = to.chunks_exact_mut(to_width);
    let mut out: [&mut [i16]; LANES] = std::array::from_fn(|_| out.next().expect("a row for each lane"));
    let mut sums = [[0; LANES]; BLOCK];
    for first in (0..to_width).step_by(BLOCK) {
        let block = first..to_width.min(first + BLOCK);
        let reach = across.reach(block.clone());
        let lanes = &mut lanes[..=reach.len()];
        words_to_lanes(&rows, reach.start, &mut lanes[..reach.len()]);
        let sums = &mut sums[..block.len()];
        across.sum_lanes(block, lanes, sums);
        lanes_to_words(sums, first, &mut out);
    }
}

fn widen(depth: u8, codes: &[u8], out: &mut [i16]) {
    match depth {
        8 => widen_bytes(codes, out),
        _ => widen_pairs(SUMMED_BITS - u32::from(depth), codes.as_chunks().0, out),
    }
}

fn narrow(depth: u8, sums: &[i16], codes: &mut [u8]) {
    match depth {
        8 => narrow_bytes(sums, codes),
        _ => narrow_pairs(SUMMED_BITS - u32::from(depth), sums, codes.as_chunks_mut().0),
    }
}

#[autoversion(v4, v3)]
fn widen_bytes(codes: &[u8], out: &mut [i16]) {
    for (out, code) in out.iter_mut().zip(codes) {
        *out = i16::from(*code) << (SUMMED_BITS - 8);
    }
}

#[autoversion(v4, v3)]
fn widen_pairs(below: u32, codes: &[[u8; 2]], out: &mut [i16]) {
    for (out, code) in out.iter_mut().zip(codes) {
        *out = i16::from_le_bytes(*code) << below;
    }
}

#[autoversion(v4, v3)]
fn narrow_bytes(sums: &[i16], codes: &mut [u8]) {
    const BELOW: u32 = SUMMED_BITS - 8;
    for (code, sum) in codes.iter_mut().zip(sums) {
        *code = ((sum + (1 << (BELOW - 1))) >> BELOW).clamp(0, 255) as u8;
    }
}

#[autoversion(v4, v3)]
fn narrow_pairs(below: u32, sums: &[i16], codes: &mut [[u8; 2]]) {
    let (half, most) = (1 << (below - 1), (1 << (SUMMED_BITS - below)) - 1);
    for (code, sum) in codes.iter_mut().zip(sums) {
        *code = (sum.saturating_add(half) >> below).clamp(0, most).to_le_bytes();
    }
}
