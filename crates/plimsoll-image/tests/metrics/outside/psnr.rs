//! PSNR beside its definition, worked out by hand.

use plimsoll_image::Image;
use plimsoll_image::metrics::Metric;

use crate::bench::{Bench, close};
use crate::pairs::size;

/// 10 log10(255² / d²) for samples that all differ by d, to six digits.
const BY_HAND: [(u8, f64); 4] = [(1, 48.130_804), (2, 42.110_204), (5, 34.151_404), (16, 24.048_404)];

#[test]
fn follows_its_definition() {
    let bench = Bench::new();
    let psnr = bench.register(Metric::Psnr);
    let flat = |value: u8| Image::rgb8(size(40, 30), vec![value; 40 * 30 * 3]).expect("as many samples as it has");
    for (apart, decibels) in BY_HAND {
        for &rung in Metric::Psnr.about().rungs {
            let score = bench.score(&psnr, rung, &flat(100), &flat(100 + apart)).expect("it runs").output.value;
            assert!(close(score, decibels, 1e-6), "{apart} apart on {rung}: {score}, not {decibels}");
        }
    }
}
