//! The window: 11 x 11, Gaussian, sigma 1.5, as two passes of 11 taps.

/// Taps of a pass. A side that is this long has one place for the window.
pub(in crate::metrics) const SPAN: usize = 11;

/// Rows, or columns, that the window takes away: a side of `n` pixels has `n - REACH` places for it.
pub(in crate::metrics) const REACH: u32 = SPAN as u32 - 1;

/// exp(-k² / 4.5) for k = 0 to 5, so that all eleven add up to 1. The shaders hold the same numbers.
const WEIGHTS: [f32; 6] = [0.266_011_72, 0.213_005_54, 0.109_360_69, 0.036_000_772, 0.007_598_758, 0.001_028_38];

/// Weighs eleven rows into one. For a pass along a row, they are that row from its first, second, … pixel on.
pub(super) fn weigh(taps: [&[f32]; SPAN], out: &mut [f32]) {
    let count = out.len();
    // Slices of one length let the compiler drop every bounds check, and the loop vectorises.
    let taps = taps.map(|tap| &tap[..count]);
    for (at, out) in out.iter_mut().enumerate() {
        let pair = |k: usize| WEIGHTS[k] * (taps[5 - k][at] + taps[5 + k][at]);
        *out = WEIGHTS[0] * taps[5][at] + pair(1) + pair(2) + pair(3) + pair(4) + pair(5);
    }
}

/// A row as the taps of a pass along it.
pub(super) fn along(row: &[f32]) -> [&[f32]; SPAN] {
    std::array::from_fn(|tap| &row[tap..])
}

/// Eleven rows of a plane, from its row `first` on, as the taps of a pass down the columns.
pub(super) fn down(plane: &[f32], width: usize, first: usize) -> [&[f32]; SPAN] {
    std::array::from_fn(|tap| &plane[(first + tap) * width..][..width])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_formula() {
        let gaussian: Vec<f64> = (0..6).map(|k| (-f64::from(k * k) / 4.5).exp()).collect();
        let sum = gaussian[0] + 2.0 * gaussian[1..].iter().sum::<f64>();
        for (weight, gaussian) in WEIGHTS.iter().zip(gaussian) {
            assert!((f64::from(*weight) - gaussian / sum).abs() < 1e-8);
        }
    }

    #[test]
    fn a_constant_stays_what_it_is() {
        let mut out = [0.0; 3];
        weigh(along(&[0.5; 13]), &mut out);
        assert!(out.iter().all(|out| (out - 0.5).abs() < 1e-6), "{out:?}");
    }
}
