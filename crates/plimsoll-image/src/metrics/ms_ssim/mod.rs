//! MS-SSIM as Wang, Simoncelli and Bovik published it in 2003: contrast and structure at four scales, and all of SSIM
//! at the fifth, each to the power of its published exponent; [`ssim`](super::ssim) at each scale otherwise.
//!
//! A scale is the one before with 2 x 2 pixels averaged into one, an odd edge counted twice: so do the authors' program
//! and `tf.image.ssim_multiscale`. `pytorch-msssim` and `piq` treat odd edges in ways of their own, and agree where
//! sides stay even. A scale with a negative mean counts as 0, as in all three.
//!
//! Below 161 pixels a side there are fewer scales, with exponents that are made to add up to 1 again (as `piq` does
//! when it is given fewer); the coarsest one that is left takes the luminance term.

mod device;
mod host;
mod strips;

use self::device::MsSsimWhole;
use self::host::MsSsimHost;
use self::strips::MsSsimStrips;
use super::Metric;
use super::about::{About, Better};
use super::four_ways::{FourWays, Ways};
use super::structure::Terms;
use super::structure::device::places_of;
use super::structure::scales::{FIVE_SCALES_SIDE, product};
use super::structure::window::SPAN;
use super::workload::{RUNGS, Score};

pub(super) static ABOUT: About = About {
    name: "ms-ssim",
    what: "structural similarity of luma over five scales",
    range: 0.0..=1.0,
    perfect: 1.0,
    better: Better::Higher,
    // The power of a scale's mean grows without bound towards 0, so what is left of rounding there counts more than in
    // SSIM.
    tolerance: 5e-6,
    side_min: SPAN as u32,
    side_full: FIVE_SCALES_SIDE,
    source: "own, MIT OR Apache-2.0",
    rungs: &RUNGS,
};

/// The luma of white.
const PEAK: f32 = 1.0;

/// What is compared at one of `count` scales.
fn terms(scale: usize, count: usize) -> Terms {
    Terms::for_peak(PEAK, scale + 1 == count)
}

/// The score of the sums of similarities at each scale.
fn score(extents: &[[u32; 2]], sums: &[f64]) -> Score {
    let means: Vec<f64> = extents.iter().zip(sums).map(|(&extent, sum)| sum / places_of(extent) as f64).collect();
    Score::of(product(&means))
}

pub(super) const WAYS: &dyn Ways =
    &FourWays { metric: Metric::MsSsim, whole: MsSsimWhole, strips: MsSsimStrips, host: MsSsimHost };
