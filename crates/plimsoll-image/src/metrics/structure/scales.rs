//! The five scales: which of them an image has, how much each counts, and how their scores become one.

use super::window::SPAN;

/// The least side of an image that has all five scales.
pub(in crate::metrics) const FIVE_SCALES_SIDE: u32 = 161;
use crate::image::Size;

/// How much each scale counts, the finest first (Wang, Simoncelli and Bovik 2003). They add up to 1.0001.
const EXPONENTS: [f64; 5] = [0.0448, 0.2856, 0.3001, 0.2363, 0.1333];

/// The extent of an image at each scale, the finest first: half of the one before, rounded up, for as long as the
/// window finds a place. 161 pixels a side are enough for all five; smaller images have fewer.
pub(in crate::metrics) fn extents(Size { width, height }: Size) -> Vec<[u32; 2]> {
    let halves = std::iter::successors(Some([width, height]), |extent| Some(extent.map(|side| side.div_ceil(2))));
    halves.take(EXPONENTS.len()).take_while(|extent| extent.iter().all(|&side| side as usize >= SPAN)).collect()
}

/// One score of the scores of all scales: their product, each to the power of its published exponent. A scale that is
/// worse than unrelated counts as nothing. Where there are fewer than five, their exponents are made to add up to 1.
pub(in crate::metrics) fn product(scores: &[f64]) -> f64 {
    if scores.len() < EXPONENTS.len() { product_to_one(scores) } else { product_of(scores, 1.0) }
}

/// The same with exponents that add up to exactly 1 for five scales too.
pub(in crate::metrics) fn product_to_one(scores: &[f64]) -> f64 {
    product_of(scores, EXPONENTS[..scores.len()].iter().sum())
}

fn product_of(scores: &[f64], unit: f64) -> f64 {
    scores.iter().zip(EXPONENTS).map(|(score, exponent)| score.clamp(0.0, 1.0).powf(exponent / unit)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_images_have_fewer_scales() {
        let scales = |width, height| extents(Size { width, height }).len();
        assert_eq!(
            [scales(11, 500), scales(20, 20), scales(21, 500), scales(160, 161), scales(161, 161)],
            [1, 1, 2, 4, 5]
        );
        assert_eq!(extents(Size { width: 4000, height: 333 })[4], [250, 21]);
    }

    #[test]
    fn equal_images_are_perfect_at_any_number_of_scales() {
        assert!((1..=5).all(|scales| product(&vec![1.0; scales]) == 1.0));
        assert!((product(&[0.5, 0.5]) - 0.5).abs() < 1e-12);
        assert!((product_to_one(&[0.5; 5]) - 0.5).abs() < 1e-12);
        assert_eq!(product(&[-0.1]), 0.0);
    }
}
