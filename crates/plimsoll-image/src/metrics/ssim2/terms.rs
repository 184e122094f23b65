//! What SSIMULACRA 2 measures at a pixel, and the sums of it over a row.
//!
//! The published formulas subtract numbers that are nearly equal: in smooth areas the tool's score then rests on
//! rounding (two flat images one step apart score lower than two five steps apart). The same terms are worked out here
//! from the difference of the images, which loses nothing, so that every device gives the same score.

use archmage::autoversion;

use super::score::Sums;

/// Keeps the structure term finite where both images are flat.
const VARIANCE_MIN: f32 = 0.0009;

/// Values added up side by side.
const LANES: usize = 16;
type Lanes = [f32; LANES];

/// A row of one channel, of the reference and of its difference to the distorted image.
#[derive(Copy, Clone)]
pub(super) struct Row<'a> {
    /// The reference.
    pub(super) reference: &'a [f32],
    /// The reference, blurred.
    pub(super) mean: &'a [f32],
    /// Reference less distorted image.
    pub(super) difference: &'a [f32],
    /// The difference, blurred.
    pub(super) shift: &'a [f32],
}

/// What the structure term needs beside it.
#[derive(Copy, Clone)]
pub(super) struct Spread<'a> {
    /// The variance of the reference.
    pub(super) variance: &'a [f32],
    /// The squared difference, blurred.
    pub(super) squares: &'a [f32],
    /// The squared distorted image, blurred.
    pub(super) energy: &'a [f32],
}

/// Adds a row's terms without structure.
#[autoversion(v3)]
pub(super) fn add_edges(row: Row<'_>, sums: &mut Sums) {
    add_terms(row, None, sums);
}

/// Adds all terms of a row.
#[autoversion(v3)]
pub(super) fn add_all(row: Row<'_>, spread: Spread<'_>, sums: &mut Sums) {
    add_terms(row, Some(spread), sums);
}

#[inline(always)]
fn add_terms(row: Row<'_>, spread: Option<Spread<'_>>, sums: &mut Sums) {
    let mut lanes = [[0.0_f32; LANES]; 6];
    for at in (0..row.reference.len()).step_by(LANES) {
        let reference = lanes_of(row.reference, at);
        let mean = lanes_of(row.mean, at);
        let difference = lanes_of(row.difference, at);
        let shift = lanes_of(row.shift, at);
        for lane in 0..LANES {
            let edge = edge(reference[lane] - mean[lane], difference[lane] - shift[lane]);
            add_pair(&mut lanes, lane, 1, edge.max(0.0));
            add_pair(&mut lanes, lane, 2, (-edge).max(0.0));
        }
        if let Some(spread) = spread {
            let variance = lanes_of(spread.variance, at);
            let squares = lanes_of(spread.squares, at);
            let energy = lanes_of(spread.energy, at);
            for lane in 0..LANES {
                let value = structure(mean[lane], shift[lane], variance[lane], squares[lane], energy[lane]);
                add_pair(&mut lanes, lane, 0, value);
            }
        }
    }
    for (sum, lanes) in sums.iter_mut().zip(&lanes) {
        *sum += lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>();
    }
}

/// Adds a value and its fourth power.
#[inline(always)]
fn add_pair(lanes: &mut [Lanes; 6], lane: usize, term: usize, value: f32) {
    let square = value * value;
    lanes[term][lane] += value;
    lanes[term + 3][lane] += square * square;
}

/// Some of a row's values; zeros beyond its end, where every term is zero.
#[inline(always)]
fn lanes_of(row: &[f32], at: usize) -> Lanes {
    let rest = &row[at..];
    rest.first_chunk().copied().unwrap_or_else(|| {
        let mut lanes = [0.0; LANES];
        lanes[..rest.len()].copy_from_slice(rest);
        lanes
    })
}

/// How much more detail the distorted image has than the reference; less than zero if it has less. `detail` is the
/// reference's, `change` by how much the other's is less.
#[inline(always)]
fn edge(detail: f32, change: f32) -> f32 {
    ((detail - change).abs() - detail.abs()) / (1.0 + detail.abs())
}

/// One less the similarity of structure, `(1 - (m1 - m2)²) (2 s12 + C) / (s1² + s2² + C)`: with the variance of the
/// difference, `s1² + s2² - 2 s12`, nothing of it cancels out.
#[inline(always)]
fn structure(mean: f32, shift: f32, variance: f32, squares: f32, energy: f32) -> f32 {
    let shifted = shift * shift;
    let mean_distorted = mean - shift;
    let variance_distorted = energy - mean_distorted * mean_distorted;
    let differing = (squares - shifted) / ((variance + variance_distorted) + VARIANCE_MIN);
    (shifted + (1.0 - shifted) * differing).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rewritten_terms_are_the_published_ones() {
        let (m1, m2, s11, s22, s12) = (0.5_f64, 0.4, 0.26, 0.18, 0.21);
        let published = 1.0
            - (1.0 - (m1 - m2) * (m1 - m2)) * (2.0 * (s12 - m1 * m2) + 0.0009)
                / ((s11 - m1 * m1) + (s22 - m2 * m2) + 0.0009);
        let squares = s11 + s22 - 2.0 * s12;
        let ours = structure(m1 as f32, (m1 - m2) as f32, (s11 - m1 * m1) as f32, squares as f32, s22 as f32);
        assert!((f64::from(ours) - published).abs() < 1e-5, "{ours}, not {published}");

        let (x1, x2) = (0.7_f64, 0.2);
        let published = (1.0 + (x2 - m2).abs()) / (1.0 + (x1 - m1).abs()) - 1.0;
        let ours = edge((x1 - m1) as f32, ((x1 - x2) - (m1 - m2)) as f32);
        assert!((f64::from(ours) - published).abs() < 1e-6, "{ours}, not {published}");
    }

    #[test]
    fn a_row_of_any_length_adds_up() {
        let ones = [1.0_f32; 37];
        let zeros = [0.0_f32; 37];
        for width in [1, 16, 37] {
            let mut sums = [0.0; 6];
            let row = Row { reference: &ones[..width], mean: &zeros, difference: &ones[..width], shift: &zeros };
            add_edges(row, &mut sums);
            let (lost, fourth) = (width as f64 * 0.5, width as f64 * 0.0625);
            assert_eq!(sums, [0.0, 0.0, lost, 0.0, 0.0, fourth]);
        }
    }
}
