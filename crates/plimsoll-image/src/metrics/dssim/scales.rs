//! The scales of DSSIM: how large each is, how its losses are pooled, and how the scales make a score.
//! A loss is what a pixel lacks to be like the reference's: 1 less its structural similarity.
//! Never looks at pixels.

use crate::image::Size;
use crate::metrics::workload::Score;

/// How much each scale counts, the full size first.
const WEIGHTS: [f64; 5] = [0.028, 0.197, 0.322, 0.298, 0.155];
/// A scale with a shorter side is the last.
const SIDE_TO_HALVE: u32 = 8;

/// The most scales there are.
pub(super) const SCALES_MAX: usize = WEIGHTS.len();

/// The worst score: of images without any likeness.
pub(super) const WORST: f64 = 1.0 / f64::EPSILON - 1.0;

/// The sizes of the scales of an image, the image's own first. Each has half the sides of the one before, rounded down.
pub(super) fn sizes(size: Size) -> Vec<Size> {
    let half = |&Size { width, height }: &Size| {
        (width.min(height) >= SIDE_TO_HALVE).then_some(Size { width: width / 2, height: height / 2 })
    };
    std::iter::successors(Some(size), half).take(SCALES_MAX).collect()
}

/// What the losses of a scale are measured from: 1 less the 2^scale-th root of the mean similarity. Coarser scales are
/// so measured from nearer to perfect, and an even loss counts there too.
pub(super) fn level(scale: usize, loss_mean: f64) -> f64 {
    // 1 - sqrt(1 - loss), written so that small losses keep their digits.
    (0..scale).fold(loss_mean.min(1.0), |loss, _| loss / (1.0 + (1.0 - loss).sqrt()))
}

/// The score of an image from the mean distance of losses from their level, at each scale.
pub(super) fn score(deviations: &[f64]) -> Score {
    let weights = || WEIGHTS.iter().zip(deviations);
    let likeness: f64 = weights().map(|(weight, deviation)| weight * (1.0 - deviation)).sum();
    let whole: f64 = weights().map(|(weight, _)| weight).sum();
    let lacking: f64 = weights().map(|(weight, deviation)| weight * deviation).sum();
    // 1 / (likeness / whole) - 1, without taking a small number from 1.
    Score::of(if likeness > whole * f64::EPSILON { lacking / likeness } else { WORST })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(width: u32, height: u32) -> Vec<(u32, u32)> {
        sizes(Size { width, height }).iter().map(|size| (size.width, size.height)).collect()
    }

    #[test]
    fn scales_end_with_the_first_short_side() {
        assert_eq!(sides(7, 100), [(7, 100)]);
        assert_eq!(sides(33, 16), [(33, 16), (16, 8), (8, 4)]);
        assert_eq!(sides(4096, 4096).len(), SCALES_MAX);
    }

    #[test]
    fn a_level_is_a_root_of_the_mean_similarity() {
        for (scale, loss) in [(0, 0.3), (1, 0.3), (4, 0.02), (3, 1.0)] {
            let root = (1.0_f64 - loss).powf(0.5_f64.powi(scale as i32));
            assert!((level(scale, loss) - (1.0 - root)).abs() < 1e-15);
        }
        assert_eq!(level(2, 1.5), 1.0, "a negative mean counts as none");
    }

    #[test]
    fn the_score_is_one_over_likeness_less_one() {
        let likeness = (0.028 * 0.9 + 0.197 * 0.8) / (0.028 + 0.197);
        assert!((score(&[0.1, 0.2]).value - (1.0 / likeness - 1.0)).abs() < 1e-15);
        assert_eq!(score(&[0.0; 5]).value, 0.0);
        assert_eq!(score(&[1.5; 5]).value, WORST);
    }
}
