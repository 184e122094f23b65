//! Windows of codes summed in whole numbers, along columns or lanes. Samples have 14 bits: a code, and zeros below it.
//!
//! Of 8-bit codes, sixteen sums at a time are of 16 bits. Weights have fifteen bits below one. Each product is rounded to a
//! 64th of a code, each weight by at most 2^-16; with at most [`TAPS_MAX`] taps a sum is off by at most
//! `16 * (1/128 + 255 * 2^-16)`, 0.19 of a code, and both directions, the second making at most 1.3 of what the first left,
//! by less than half of one.
//!
//! A code of 10 bits is a quarter of that, so sums of deeper codes are of 32 bits and rounded once, to a 16th of a code;
//! windows are made to add up to one exactly, so that a weight is off only as far as samples differ from each other. One
//! direction is off by at most `16 * 1023 * 2^-16 + 1/32`, 0.28 of a code, and both by less than 0.7.
//!
//! Weights of one and above, which enlarging has, are halved and their sums doubled: then half as many taps lose as much.
//! Invariant: the sums are of whole numbers, so every version of the code gives the same.

use std::ops::Range;

use archmage::prelude::*;

use super::lanes::LANES;
use crate::frames::graph::Windows;

/// The longest windows: what is off grows with each tap.
pub(super) const TAPS_MAX: u32 = 16;
/// Bits of a weight below one.
const WEIGHT_BITS: i32 = 15;
/// The largest weight of sums of 32 bits that is not halved: what makes a window add up to one is added to it.
const WIDE_MAX: f32 = 0.999;

/// The windows of one direction.
pub(super) struct Weights {
    taps: usize,
    starts: Vec<u32>,
    words: Vec<u32>,
    /// How often sums are doubled: the weights are halved as often.
    doubled: i32,
    width: Width,
}

/// How wide sums are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Width {
    /// 16 bits. Each weight stands twice in a word: a vector is filled from words at no cost.
    Narrow,
    /// 32 bits. Two weights that follow each other are one word; the last is alone where taps are odd, beside a zero.
    Wide,
}

impl Weights {
    /// Weights for codes of this depth; `None` if the windows are longer than is exact enough here.
    pub(super) fn new(windows: &Windows<'_>, depth: u8) -> Option<Self> {
        let (taps, width) = (windows.taps as usize, if depth > 8 { Width::Wide } else { Width::Narrow });
        let (starts, weights) = windows.table.split_at(windows.table.len() / (taps + 1));
        let largest = weights.iter().fold(0.0, |largest: f32, weight| largest.max(weight.abs()));
        let most = if width == Width::Wide { WIDE_MAX } else { 1.0 };
        let doubled = i32::from(largest > most);
        let fits = windows.taps <= TAPS_MAX >> doubled && largest <= 2.0 * most;
        let rounded = weights.iter().map(|weight| rounded(*weight, WEIGHT_BITS - doubled));
        fits.then(|| Self {
            taps,
            starts: starts.iter().map(|start| start.to_bits()).collect(),
            words: match width {
                Width::Narrow => rounded.map(|weight| word([weight; 2])).collect(),
                Width::Wide => adjacent(rounded.collect(), taps, 1 << (WEIGHT_BITS - doubled)),
            },
            doubled,
            width,
        })
    }

    /// How many windows there are.
    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        (self.starts.len() + self.words.len()) * 4
    }

    /// The samples that some windows see.
    pub(super) fn reach(&self, windows: Range<usize>) -> Range<usize> {
        self.starts[windows.start] as usize..self.starts[windows.end - 1] as usize + self.taps
    }

    /// The words of some windows.
    fn words(&self, windows: Range<usize>) -> &[u32] {
        let each = self.words.len() / self.starts.len();
        &self.words[windows.start * each..windows.end * each]
    }

    /// Weighs the rows that a window sees to one.
    pub(super) fn sum_rows(&self, window: usize, rows: &[&[i16]], out: &mut [i16]) {
        let words = self.words(window..window + 1);
        match self.width {
            Width::Narrow => sum_rows(self.doubled, words, rows, out),
            Width::Wide => sum_rows_wide(WEIGHT_BITS - self.doubled, words, rows, out),
        }
    }

    /// Weighs lanes to a column for each of some windows. There is one lane group more than they see, of any value.
    pub(super) fn sum_lanes(&self, windows: Range<usize>, lanes: &[[i16; LANES]], sums: &mut [[i16; LANES]]) {
        let (starts, words) = (&self.starts[windows.clone()], self.words(windows));
        match self.width {
            Width::Narrow => sum_lanes(self.doubled, starts, words, lanes, sums),
            Width::Wide => sum_lanes_wide(WEIGHT_BITS - self.doubled, starts, words, lanes, sums),
        }
    }
}

/// A weight with so many bits below one. One itself may be a little too small, which rounding makes up for.
fn rounded(weight: f32, bits: i32) -> i16 {
    (f64::from(weight) * f64::from(1 << bits)).round().clamp(-32768.0, 32767.0) as i16
}

fn word([low, high]: [i16; 2]) -> u32 {
    u32::from(high as u16) << 16 | u32::from(low as u16)
}

/// Windows that add up to `one`, the largest weight of each making up for what rounding did to all; two weights a word.
fn adjacent(mut weights: Vec<i16>, taps: usize, one: i32) -> Vec<u32> {
    let mut words = Vec::with_capacity(weights.len().div_ceil(taps) * taps.div_ceil(2));
    for window in weights.chunks_exact_mut(taps) {
        let sum: i32 = window.iter().copied().map(i32::from).sum();
        if let Some(largest) = window.iter_mut().max_by_key(|weight| weight.unsigned_abs()) {
            *largest = (i32::from(*largest) + one - sum) as i16;
        }
        words.extend(window.chunks(2).map(|two| word([two[0], two.get(1).copied().unwrap_or(0)])));
    }
    words
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

/// Weighs rows to one, in 32 bits with so many below one.
fn sum_rows_wide(bits: i32, words: &[u32], rows: &[&[i16]], out: &mut [i16]) {
    incant!(sum_rows_wide(bits, words, rows, out), [v3, scalar]);
}

/// As [`sum_lanes`], in 32 bits with so many below one.
fn sum_lanes_wide(bits: i32, starts: &[u32], words: &[u32], lanes: &[[i16; LANES]], sums: &mut [[i16; LANES]]) {
    incant!(sum_lanes_wide(bits, starts, words, lanes, sums), [v3, scalar]);
}

/// Two products added up, as `vpmaddwd` has them.
#[inline(always)]
fn two_products(word: u32, samples: [i16; 2]) -> i32 {
    i32::from(samples[0]) * i32::from(word as u16 as i16)
        + i32::from(samples[1]) * i32::from((word >> 16) as u16 as i16)
}

/// A sum with so many bits below one, rounded, and cut off where 16 bits end.
#[inline(always)]
fn whole(sum: i32, bits: i32) -> i16 {
    ((sum + (1 << (bits - 1))) >> bits).clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
}

/// The rows of one word: where there is one row only, its zero meets that row again.
#[inline(always)]
fn two_rows<'a>(rows: &[&'a [i16]]) -> [&'a [i16]; 2] {
    [rows[0], rows.get(1).unwrap_or(&rows[0])]
}

/// Sixteen at a time, the `at`th `N` samples of a row.
#[inline(always)]
fn part_of<const N: usize>(row: &[i16], at: usize) -> &[[i16; 16]] {
    let part: &[i16; N] = row[at * N..].first_chunk().expect("rows as long as the sums");
    part.as_chunks().0
}

fn sum_rows_wide_scalar(_: ScalarToken, bits: i32, words: &[u32], rows: &[&[i16]], out: &mut [i16]) {
    sum_rows_wide_from(0, bits, words, rows, out);
}

fn sum_rows_wide_from(first: usize, bits: i32, words: &[u32], rows: &[&[i16]], out: &mut [i16]) {
    for (x, out) in (first..).zip(out) {
        let sums = words.iter().zip(rows.chunks(2));
        *out = whole(sums.map(|(word, rows)| two_products(*word, two_rows(rows).map(|row| row[x]))).sum(), bits);
    }
}

#[arcane(import_intrinsics)]
fn sum_rows_wide_v3(token: X64V3Token, bits: i32, words: &[u32], rows: &[&[i16]], out: &mut [i16]) {
    const AT_ONCE: usize = 64;
    let (many, rest) = out.as_chunks_mut::<AT_ONCE>();
    let (done, rounding) = (many.len() * AT_ONCE, Rounding::new(token, bits));
    for (at, out) in many.iter_mut().enumerate() {
        let mut sums = [[rounding.half; 2]; AT_ONCE / 16];
        for (word, rows) in words.iter().zip(rows.chunks(2)) {
            let word = _mm256_set1_epi32(*word as i32);
            // Not by `map`: its closure would be a call of its own, without vectors.
            let [one, other] = two_rows(rows);
            let (one, other) = (part_of::<AT_ONCE>(one, at), part_of::<AT_ONCE>(other, at));
            for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
                *sum = added(token, *sum, word, [_mm256_loadu_si256(one), _mm256_loadu_si256(other)]);
            }
        }
        for (out, sum) in out.as_chunks_mut::<16>().0.iter_mut().zip(sums) {
            _mm256_storeu_si256(out, rounding.words(token, sum));
        }
    }
    sum_rows_wide_from(done, bits, words, rows, rest);
}

fn sum_lanes_wide_scalar(
    _: ScalarToken,
    bits: i32,
    starts: &[u32],
    words: &[u32],
    lanes: &[[i16; LANES]],
    sums: &mut [[i16; LANES]],
) {
    let each = words.len() / starts.len();
    for ((sum, start), words) in sums.iter_mut().zip(starts).zip(words.chunks_exact(each)) {
        let seen = lanes[(start - starts[0]) as usize..].as_chunks::<2>().0;
        *sum = std::array::from_fn(|lane| {
            let sums = words.iter().zip(seen).map(|(word, seen)| two_products(*word, [seen[0][lane], seen[1][lane]]));
            whole(sums.sum(), bits)
        });
    }
}

/// Windows of lengths that are met often are unrolled.
#[arcane(import_intrinsics)]
fn sum_lanes_wide_v3(
    token: X64V3Token,
    bits: i32,
    starts: &[u32],
    words: &[u32],
    lanes: &[[i16; LANES]],
    sums: &mut [[i16; LANES]],
) {
    let (each, rounding) = (words.len() / starts.len(), Rounding::new(token, bits));
    match each {
        1 => sum_some_wide::<1>(token, rounding, starts, words, lanes, sums),
        2 => sum_some_wide::<2>(token, rounding, starts, words, lanes, sums),
        3 => sum_some_wide::<3>(token, rounding, starts, words, lanes, sums),
        4 => sum_some_wide::<4>(token, rounding, starts, words, lanes, sums),
        5 => sum_some_wide::<5>(token, rounding, starts, words, lanes, sums),
        _ => {
            for ((sum, start), words) in sums.iter_mut().zip(starts).zip(words.chunks_exact(each)) {
                let seen = &lanes[(start - starts[0]) as usize..][..2 * each];
                _mm256_storeu_si256(sum, weighted_wide(token, rounding, words, seen));
            }
        }
    }
}

#[rite(import_intrinsics)]
fn sum_some_wide<const EACH: usize>(
    token: X64V3Token,
    rounding: Rounding,
    starts: &[u32],
    words: &[u32],
    lanes: &[[i16; LANES]],
    sums: &mut [[i16; LANES]],
) {
    let first = starts[0];
    for ((sum, start), words) in sums.iter_mut().zip(starts).zip(words.as_chunks::<EACH>().0) {
        let start = (start - first) as usize;
        let seen: &[[i16; LANES]] = &lanes[start..start + 2 * EACH];
        _mm256_storeu_si256(sum, weighted_wide(token, rounding, words, seen));
    }
}

#[rite(import_intrinsics)]
fn weighted_wide(token: X64V3Token, rounding: Rounding, words: &[u32], seen: &[[i16; LANES]]) -> __m256i {
    let mut sum = [rounding.half; 2];
    for (word, seen) in words.iter().zip(seen.as_chunks::<2>().0) {
        let seen = [_mm256_loadu_si256(&seen[0]), _mm256_loadu_si256(&seen[1])];
        sum = added(token, sum, _mm256_set1_epi32(*word as i32), seen);
    }
    rounding.words(token, sum)
}

/// Sums with the products of two vectors of samples added to them, halves of each in turn.
#[rite(import_intrinsics)]
fn added(_: X64V3Token, sums: [__m256i; 2], word: __m256i, [one, other]: [__m256i; 2]) -> [__m256i; 2] {
    [
        _mm256_add_epi32(sums[0], _mm256_madd_epi16(_mm256_unpacklo_epi16(one, other), word)),
        _mm256_add_epi32(sums[1], _mm256_madd_epi16(_mm256_unpackhi_epi16(one, other), word)),
    ]
}

/// What makes whole numbers of sums.
#[derive(Copy, Clone)]
struct Rounding {
    half: __m256i,
    bits: __m128i,
}

impl Rounding {
    #[rite(import_intrinsics)]
    fn new(_: X64V3Token, bits: i32) -> Self {
        Self { half: _mm256_set1_epi32(1 << (bits - 1)), bits: _mm_cvtsi32_si128(bits) }
    }

    /// The sums, which began with a half, as samples: in the order in which the samples stood.
    #[rite(import_intrinsics)]
    fn words(self, _: X64V3Token, sums: [__m256i; 2]) -> __m256i {
        _mm256_packs_epi32(_mm256_sra_epi32(sums[0], self.bits), _mm256_sra_epi32(sums[1], self.bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of some taps that each add up to about one.
    fn table(taps: usize, count: usize) -> Vec<f32> {
        let weights = (0..count).flat_map(|window| {
            let raw: Vec<f32> = (0..taps).map(|tap| ((window * 7 + tap * 3) % 11) as f32 - 2.5).collect();
            let sum: f32 = raw.iter().sum();
            raw.into_iter().map(move |weight| if sum.abs() < 4.0 { 1.0 / taps as f32 } else { weight / sum })
        });
        (0..count).map(|window| f32::from_bits(window as u32)).chain(weights).collect()
    }

    /// A row of samples of up to 14 bits.
    fn samples(seed: usize, length: usize) -> Vec<i16> {
        (0..length).map(|at| (seed * 7919 + at * 4547) as i16 & 0x3fff).collect()
    }

    #[test]
    fn every_version_gives_the_same() {
        for (taps, depth) in (1..=16).flat_map(|taps| [(taps, 8), (taps, 10)]) {
            let table = table(taps, 40);
            let windows = Windows { down: true, taps: taps as u32, table: &table };
            let Some(weights) = Weights::new(&windows, depth) else { continue };
            let rows: Vec<Vec<i16>> = (0..taps).map(|row| samples(row, 131)).collect();
            let rows: Vec<&[i16]> = rows.iter().map(Vec::as_slice).collect();
            let lanes: Vec<[i16; LANES]> = (0..40 + taps).map(|at| samples(at, LANES).try_into().unwrap()).collect();
            let (mut row, mut plain_row) = (vec![0; 131], vec![0; 131]);
            let (mut sums, mut plain_sums) = ([[0; LANES]; 40], [[0; LANES]; 40]);
            weights.sum_rows(3, &rows, &mut row);
            weights.sum_lanes(0..40, &lanes, &mut sums);
            let (words, bits) = (weights.words(3..4), WEIGHT_BITS - weights.doubled);
            match weights.width {
                Width::Narrow => {
                    sum_rows_scalar(ScalarToken, weights.doubled, words, &rows, &mut plain_row);
                    let words = weights.words(0..40);
                    sum_lanes_scalar(ScalarToken, weights.doubled, &weights.starts, words, &lanes, &mut plain_sums);
                }
                Width::Wide => {
                    sum_rows_wide_scalar(ScalarToken, bits, words, &rows, &mut plain_row);
                    let words = weights.words(0..40);
                    sum_lanes_wide_scalar(ScalarToken, bits, &weights.starts, words, &lanes, &mut plain_sums);
                }
            }
            assert_eq!((row, sums), (plain_row, plain_sums), "{taps} taps, {depth} bits");
        }
    }

    #[test]
    fn windows_of_deep_codes_add_up_to_one() {
        for taps in 1..=16 {
            let table = table(taps, 40);
            let windows = Windows { down: false, taps: taps as u32, table: &table };
            let Some(weights) = Weights::new(&windows, 10) else { continue };
            for window in 0..40 {
                let words = weights.words(window..window + 1);
                let sum: i32 = words.iter().map(|word| two_products(*word, [1, 1])).sum();
                assert_eq!(sum, 1 << (WEIGHT_BITS - weights.doubled), "{taps} taps");
            }
        }
    }
}
