//! The blur of SSIMULACRA 2. Its tool computes a sum of three cosines, cut off at five pixels, recursively; all three
//! are zero at the cut, so the same blur is a filter of nine taps. What lies beyond an edge counts as zero.

use archmage::autoversion;

/// Pixels the blur sees in each direction.
pub(super) const REACH: usize = 4;
/// All its taps.
pub(super) const TAPS: usize = 2 * REACH + 1;

/// The sum of the three cosines for a deviation of 1.5, by distance.
pub(super) const WEIGHTS: [f32; REACH + 1] = [0.264_621_1, 0.212_928_6, 0.109_335_37, 0.036_011_115, 0.009_414_368];

/// Blurs along a row. `padded` is the row with [`REACH`] zeros before and after it.
#[autoversion(v3)]
pub(super) fn blur_along(padded: &[f32], out: &mut [f32]) {
    weigh(std::array::from_fn(|tap| &padded[tap..]), out);
}

/// Blurs down the columns of nine rows, to the row in their middle.
#[autoversion(v3)]
pub(super) fn blur_down(rows: [&[f32]; TAPS], out: &mut [f32]) {
    weigh(rows, out);
}

/// The same operations, in the same order, as the shaders' for a pixel. Each tap has a name: of slices in an array the compiler
/// forgets what it knows of their lengths, and takes pixel by pixel.
#[inline(always)]
fn weigh(taps: [&[f32]; TAPS], out: &mut [f32]) {
    let count = out.len();
    let [a, b, c, d, middle, e, f, g, h] = taps;
    let (a, b, c, d) = (&a[..count], &b[..count], &c[..count], &d[..count]);
    let (middle, e, f, g, h) = (&middle[..count], &e[..count], &f[..count], &g[..count], &h[..count]);
    let [first, second, third, fourth, fifth] = WEIGHTS;
    for (x, out) in out.iter_mut().enumerate() {
        let sum = first * middle[x] + second * (d[x] + e[x]);
        *out = sum + third * (c[x] + f[x]) + fourth * (b[x] + g[x]) + fifth * (a[x] + h[x]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the three cosines were chosen for: they keep a flat image flat, and have the variance of the Gaussian.
    #[test]
    fn it_is_the_published_filter() {
        let both = |of: fn(f64) -> f64| (1..=REACH).map(|k| 2.0 * of(k as f64) * f64::from(WEIGHTS[k])).sum::<f64>();
        assert!((f64::from(WEIGHTS[0]) + both(|_| 1.0) - 1.0).abs() < 1e-7);
        assert!((both(|k| k * k) - 1.5 * 1.5).abs() < 1e-5);
    }

    #[test]
    fn it_sees_zeros_beyond_the_edge() {
        let mut padded = [0.0; 3 + 2 * REACH];
        padded[REACH..REACH + 3].fill(1.0);
        let mut out = [0.0; 3];
        blur_along(&padded, &mut out);
        assert!((out[1] - (WEIGHTS[0] + 2.0 * WEIGHTS[1])).abs() < 1e-6);
        assert!((out[0] - (WEIGHTS[0] + WEIGHTS[1] + WEIGHTS[2])).abs() < 1e-6);
    }
}
