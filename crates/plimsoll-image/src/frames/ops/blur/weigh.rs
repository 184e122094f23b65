//! Sums of weighted samples, symmetric about the middle one: what the twins of both blur passes do.
//! Invariant: a sample's sum is made of the same operations in the same order as the kernels', wherever its row is split.

use std::ops::Range;

use archmage::autoversion;

/// Samples summed at once: their sums stay in registers while all taps go by.
pub(super) const BLOCK: usize = 64;
/// Samples summed at once where fewer than a block are left.
const PIECE: usize = 8;

/// Weighs along a row. `padded` has as many samples before and after the row as there are weights but the first.
#[autoversion(v4, v3)]
pub(super) fn weigh_across(weights: &[f32], padded: &[f32], out: &mut [f32]) {
    let middle = weights.len() - 1;
    weigh(weights, |away, x| (&padded[middle - away + x..], &padded[middle + away + x..]), out);
}

/// Weighs down some columns of rows, of which there are one more than twice the weights but the first, to the row in
/// their middle.
#[autoversion(v4, v3)]
pub(super) fn weigh_down(weights: &[f32], rows: &[&[f32]], columns: Range<usize>, out: &mut [f32]) {
    let (middle, first) = (weights.len() - 1, columns.start);
    weigh(weights, |away, x| (&rows[middle - away][first + x..], &rows[middle + away][first + x..]), &mut out[columns]);
}

/// `pair` gives what lies so far before and after sample `x` and all after it.
#[inline(always)]
fn weigh<'a>(weights: &[f32], pair: impl Fn(usize, usize) -> (&'a [f32], &'a [f32]), out: &mut [f32]) {
    let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
    let blocks_end = blocks.len() * BLOCK;
    for (at, sums) in blocks.iter_mut().enumerate() {
        *sums = weigh_block(weights, |away| pair(away, at * BLOCK));
    }
    let (pieces, rest) = rest.as_chunks_mut::<PIECE>();
    let pieces_end = blocks_end + pieces.len() * PIECE;
    for (at, sums) in pieces.iter_mut().enumerate() {
        *sums = weigh_block(weights, |away| pair(away, blocks_end + at * PIECE));
    }
    for (at, sum) in rest.iter_mut().enumerate() {
        [*sum] = weigh_block(weights, |away| pair(away, pieces_end + at));
    }
}

#[inline(always)]
fn weigh_block<'a, const N: usize>(weights: &[f32], pair: impl Fn(usize) -> (&'a [f32], &'a [f32])) -> [f32; N] {
    let (middle, _) = pair(0);
    let middle: &[f32; N] = middle.first_chunk().expect("a sample for each sum");
    let mut sums = middle.map(|sample| weights[0] * sample);
    for (away, weight) in weights.iter().enumerate().skip(1) {
        let (before, after) = pair(away);
        let before: &[f32; N] = before.first_chunk().expect("a sample for each sum");
        let after: &[f32; N] = after.first_chunk().expect("a sample for each sum");
        for at in 0..N {
            sums[at] += weight * (before[at] + after[at]);
        }
    }
    sums
}
