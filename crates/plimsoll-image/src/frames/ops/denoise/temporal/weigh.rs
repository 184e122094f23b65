//! Rows of a mean over frames: what the twins of its passes do.
//! Invariant: a row does not depend on which was the first of its band.

use archmage::autoversion;

use crate::frames::graph::Rows;
use crate::frames::ops::edges::row_seen;
use crate::frames::ops::exp2::power_of_two;
use crate::image::Size;

/// Squared differences of two planes, summed over three rows: each row is squared once, and kept while it is needed.
pub(super) struct Columns<'a> {
    own: Rows<'a>,
    other: Rows<'a>,
    height: u32,
    /// The row that comes next.
    y: u32,
    /// The squares above it, of it and below it.
    squares: [Vec<f32>; 3],
    /// Their sums, with the first and the last once more before and after.
    sums: Vec<f32>,
}

impl<'a> Columns<'a> {
    /// From row `first` on.
    pub(super) fn new(own: Rows<'a>, other: Rows<'a>, Size { width, height }: Size, first: u32) -> Self {
        let row = vec![0.0; width as usize];
        let sums = vec![0.0; width as usize + 2];
        let mut columns = Self { own, other, height, y: first, squares: [row.clone(), row.clone(), row], sums };
        columns.square(1, -1);
        columns.square(2, 0);
        columns
    }

    fn square(&mut self, slot: usize, away: i32) {
        let y = row_seen(self.y, away, self.height);
        squared_differences(self.own.row(y), self.other.row(y), &mut self.squares[slot]);
    }

    /// The sums of the next row, with the first and the last once more before and after.
    pub(super) fn next_row(&mut self) -> &[f32] {
        self.squares.rotate_left(1);
        self.square(2, 1);
        let last = self.sums.len() - 1;
        let [above, own, below] = &self.squares;
        add_three([above, own, below], &mut self.sums[1..last]);
        self.sums[0] = self.sums[1];
        self.sums[last] = self.sums[last - 1];
        self.y += 1;
        &self.sums
    }
}

#[autoversion(v4, v3)]
fn squared_differences(own: &[f32], other: &[f32], out: &mut [f32]) {
    for ((out, own), other) in out.iter_mut().zip(own).zip(other) {
        let apart = other - own;
        *out = apart * apart;
    }
}

#[autoversion(v4, v3)]
fn add_three([above, own, below]: [&[f32]; 3], out: &mut [f32]) {
    for (((out, above), own), below) in out.iter_mut().zip(above).zip(own).zip(below) {
        *out = above + own + below;
    }
}

/// How much the other frame counts at sample `x`.
#[inline(always)]
fn likeness([left, middle, right]: [&[f32]; 3], strength: f32, x: usize) -> f32 {
    power_of_two(strength * (left[x] + middle[x] + right[x]))
}

/// What `columns` sums, as seen from a pixel's left, itself and its right.
#[inline(always)]
fn three(columns: &[f32], count: usize) -> [&[f32]; 3] {
    [0, 1, 2].map(|first| &columns[first..][..count])
}

/// The first other frame: weighted differences, and weights.
#[autoversion(v4, v3)]
pub(super) fn begin(columns: &[f32], strength: f32, [own, other]: [&[f32]; 2], [sum, weight]: [&mut [f32]; 2]) {
    let count = sum.len();
    let columns = three(columns, count);
    let (own, other, weight) = (&own[..count], &other[..count], &mut weight[..count]);
    for x in 0..count {
        let alike = likeness(columns, strength, x);
        sum[x] = alike * (other[x] - own[x]);
        weight[x] = 1.0 + alike;
    }
}

/// Another frame: of the rows read, the first two are as in [`begin`], then come sums and weights up to now.
#[autoversion(v4, v3)]
pub(super) fn go_on(columns: &[f32], strength: f32, reads: [&[f32]; 4], [sum, weight]: [&mut [f32]; 2]) {
    let count = sum.len();
    let columns = three(columns, count);
    let [own, other, sum_before, weight_before] = reads.map(|row| &row[..count]);
    let weight = &mut weight[..count];
    for x in 0..count {
        let alike = likeness(columns, strength, x);
        sum[x] = sum_before[x] + alike * (other[x] - own[x]);
        weight[x] = weight_before[x] + alike;
    }
}

/// The mean.
#[autoversion(v4, v3)]
pub(super) fn finish([own, sum, weight]: [&[f32]; 3], out: &mut [f32]) {
    for (((out, own), sum), weight) in out.iter_mut().zip(own).zip(sum).zip(weight) {
        *out = own + sum / weight;
    }
}
