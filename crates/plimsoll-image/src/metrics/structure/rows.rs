//! Similarity row by row on the CPU: what goes in are rows of luma, what comes out are rows of means, variances and
//! similarities. The kernels' twins and the CPU rungs both run on this.
//! Invariant: nothing here grows with the height of an image.

use super::Terms;
use super::window::{REACH, SPAN, along, weigh};

/// Rows that a window lies on: of each kind the last eleven, passed along already.
struct Window<const KINDS: usize> {
    width: usize,
    seen: usize,
    kept: [Vec<f32>; KINDS],
}

impl<const KINDS: usize> Window<KINDS> {
    fn new(width: usize) -> Self {
        Self { width, seen: 0, kept: std::array::from_fn(|_| vec![0.0; width * SPAN]) }
    }

    /// Takes a row of each kind in. From the eleventh on, the window has a place.
    fn push(&mut self, rows: [&[f32]; KINDS]) -> bool {
        let slot = self.seen % SPAN * self.width;
        for (kept, row) in self.kept.iter_mut().zip(rows) {
            weigh(along(row), &mut kept[slot..][..self.width]);
        }
        self.seen += 1;
        self.seen >= SPAN
    }

    /// The eleven rows of a kind, the oldest first.
    fn taps(&self, kind: usize) -> [&[f32]; SPAN] {
        std::array::from_fn(|tap| &self.kept[kind][(self.seen + tap) % SPAN * self.width..][..self.width])
    }
}

/// Makes the statistics of one image, the reference.
pub(in crate::metrics) struct Describe {
    middle: f32,
    window: Window<2>,
    values: [Vec<f32>; 2],
    weighed: [Vec<f32>; 2],
}

impl Describe {
    /// For rows of this width. `middle` as in [`Terms`].
    pub(in crate::metrics) fn new(width: usize, middle: f32) -> Self {
        let places = width - REACH as usize;
        Self {
            middle,
            window: Window::new(places),
            values: [vec![0.0; width], vec![0.0; width]],
            weighed: [vec![0.0; places], vec![0.0; places]],
        }
    }

    /// Takes the next row in. From the eleventh on, each gives a row of means and one of variances.
    pub(in crate::metrics) fn push(&mut self, row: &[f32], mean: &mut Vec<f32>, variance: &mut Vec<f32>) {
        let [values, squares] = &mut self.values;
        moments_of_one(row, self.middle, values, squares);
        if self.window.push([values, squares]) {
            let taps = [self.window.taps(0), self.window.taps(1)];
            let first = mean.len();
            mean.resize(first + self.window.width, 0.0);
            variance.resize(first + self.window.width, 0.0);
            describe_row(taps, self.middle, &mut self.weighed, &mut mean[first..], &mut variance[first..]);
        }
    }
}

/// What is known of the reference at the places of one row.
#[derive(Copy, Clone)]
pub(in crate::metrics) struct Known<'a> {
    pub(in crate::metrics) mean: &'a [f32],
    pub(in crate::metrics) variance: &'a [f32],
}

/// Compares images with a reference, row by row.
pub(in crate::metrics) struct Compare {
    terms: Terms,
    window: Window<3>,
    values: [Vec<f32>; 3],
    weighed: [Vec<f32>; 3],
    similarity: Vec<f32>,
}

impl Compare {
    /// For rows of this width.
    pub(in crate::metrics) fn new(width: usize, terms: Terms) -> Self {
        let places = width - REACH as usize;
        Self {
            terms,
            window: Window::new(places),
            values: std::array::from_fn(|_| vec![0.0; width]),
            weighed: std::array::from_fn(|_| vec![0.0; places]),
            similarity: vec![0.0; places],
        }
    }

    /// Bytes on the heap for rows of this width.
    pub(in crate::metrics) fn bytes(width: u64) -> u64 {
        4 * width * (3 * SPAN as u64 + 3 + 3 + 1)
    }

    /// Forgets all rows, to begin another image.
    pub(in crate::metrics) fn begin(&mut self) {
        self.window.seen = 0;
    }

    /// Takes the next row of the reference and of the image in. From the eleventh on, each gives a row of similarities;
    /// `known` is asked for the reference's statistics at that row of places.
    pub(in crate::metrics) fn push<'a>(
        &mut self,
        reference: &[f32],
        distorted: &[f32],
        known: impl FnOnce(usize) -> Known<'a>,
    ) -> Option<&[f32]> {
        let [differences, squares, own] = &mut self.values;
        moments_of_two(reference, distorted, self.terms.middle, [differences, squares, own]);
        if !self.window.push([differences, squares, own]) {
            return None;
        }
        let known = known(self.window.seen - SPAN);
        let taps = [self.window.taps(0), self.window.taps(1), self.window.taps(2)];
        similarity_row(taps, known, self.terms, &mut self.weighed, &mut self.similarity);
        Some(&self.similarity)
    }
}

/// A row without its middle, and the squares of that.
pub(super) fn moments_of_one(row: &[f32], middle: f32, values: &mut [f32], squares: &mut [f32]) {
    for ((value, square), sample) in values.iter_mut().zip(squares).zip(row) {
        *value = sample - middle;
        *square = *value * *value;
    }
}

/// Differences of two rows, their squares, and the squares of the second without its middle.
pub(super) fn moments_of_two(
    reference: &[f32],
    distorted: &[f32],
    middle: f32,
    [differences, squares, own]: [&mut [f32]; 3],
) {
    let out = differences.iter_mut().zip(squares).zip(own);
    for (((difference, square), own), (reference, distorted)) in out.zip(reference.iter().zip(distorted)) {
        *difference = reference - distorted;
        *square = *difference * *difference;
        *own = (distorted - middle) * (distorted - middle);
    }
}

/// Means and variances at the places of one row.
pub(super) fn describe_row(
    [values, squares]: [[&[f32]; SPAN]; 2],
    middle: f32,
    weighed: &mut [Vec<f32>; 2],
    mean: &mut [f32],
    variance: &mut [f32],
) {
    weigh(values, &mut weighed[0]);
    weigh(squares, &mut weighed[1]);
    for ((mean, variance), (value, square)) in mean.iter_mut().zip(variance).zip(weighed[0].iter().zip(&weighed[1])) {
        *mean = value + middle;
        *variance = (square - value * value).max(0.0);
    }
}

/// Similarities at the places of one row.
pub(super) fn similarity_row(
    taps: [[&[f32]; SPAN]; 3],
    known: Known<'_>,
    terms: Terms,
    weighed: &mut [Vec<f32>; 3],
    out: &mut [f32],
) {
    for (weighed, taps) in weighed.iter_mut().zip(taps) {
        weigh(taps, weighed);
    }
    let [differences, squares, own] = weighed.each_ref();
    let of_reference = known.mean.iter().zip(known.variance);
    let of_both = differences.iter().zip(squares).zip(own);
    for ((out, (&mean, &variance)), ((&apart, &square), &own)) in out.iter_mut().zip(of_reference).zip(of_both) {
        let mean_own = mean - apart;
        let off_middle = mean_own - terms.middle;
        let variance_own = (own - off_middle * off_middle).max(0.0);
        let variance_apart = (square - apart * apart).max(0.0);
        let structure = 1.0 - variance_apart / (variance + variance_own + terms.c2);
        let luminance = 1.0 - apart * apart / (mean * mean + mean_own * mean_own + terms.c1);
        *out = if terms.luminance { structure * luminance } else { structure };
    }
}

/// The sum of a row. Eight lanes of doubles: exact enough for any width, and it vectorises.
pub(in crate::metrics) fn sum_of(row: &[f32]) -> f64 {
    let (eights, rest) = row.as_chunks::<8>();
    let mut lanes = [0.0_f64; 8];
    for eight in eights {
        lanes.iter_mut().zip(eight).for_each(|(lane, &value)| *lane += f64::from(value));
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|&value| f64::from(value)).sum::<f64>()
}
