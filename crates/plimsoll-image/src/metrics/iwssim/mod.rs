//! IW-SSIM as Wang and Li published it in 2011: MS-SSIM on a Laplacian pyramid, where each place counts by the
//! information in it. At the coarsest scale, which is what is left of the image itself, every place counts the same.
//!
//! Conventions are those of the authors' program as `piq.information_weighted_ssim` follows it, on the BT.601 luma of
//! the coded samples, from 0 to 255; a scale with a negative mean counts as 0 as in [`ms_ssim`](super::ms_ssim) (piq
//! drops the sign, which gives an inverted image a high score). Below 161 pixels a side there are fewer scales, with
//! exponents that add up to 1; with one scale left this is SSIM. All work is in single precision, so variances below
//! what it can hold count as none at all ([`nothing`]).

mod device;
mod eigen;
mod host;
mod model;
mod neighbours;
mod pyramid;
mod strips;
mod weigh;

use self::device::IwssimWhole;
use self::host::IwssimHost;
use self::strips::IwssimStrips;
use super::Metric;
use super::about::{About, Better};
use super::four_ways::{FourWays, Ways};
use super::structure::Terms;
use super::structure::scales::FIVE_SCALES_SIDE;
use super::structure::window::SPAN;
use super::workload::RUNGS;

pub(super) static ABOUT: About = About {
    name: "iwssim",
    what: "structural similarity of luma over five scales, weighted by information",
    range: 0.0..=1.0,
    perfect: 1.0,
    better: Better::Higher,
    tolerance: 5e-6,
    side_min: SPAN as u32,
    side_full: FIVE_SCALES_SIDE,
    source: "own, MIT OR Apache-2.0",
    rungs: &RUNGS,
};

/// The luma of white.
const PEAK: f32 = 255.0;

/// What is compared at one of `count` scales: differences around zero, and at the coarsest the image, grown by its
/// gain.
fn terms(scale: usize, count: usize) -> Terms {
    let coarsest = scale + 1 == count;
    let middle = if coarsest { PEAK / 2.0 * gain(scale) } else { 0.0 };
    Terms { middle, ..Terms::for_peak(PEAK, coarsest) }
}

/// Variance at a scale that is only rounding: a unit in the last place of white is 1.5e-5, its square 2.3e-10.
fn nothing(scale: usize) -> f32 {
    1e-8 * gain(scale) * gain(scale)
}

/// How much larger than the image the pyramid has become at a scale.
fn gain(scale: usize) -> f32 {
    (1_u32 << scale) as f32
}

/// Members of a neighbourhood at one of `count` scales: the coarsest that is weighed has no parents.
fn members(scale: usize, count: usize) -> usize {
    if scale + 2 < count { 10 } else { 9 }
}

/// The mean of a scale from the sum of its weighed similarities and that of the weights. Where there is no information
/// at all, both images are flat, and so alike.
fn weighted_mean(weighed: f64, weights: f64) -> f64 {
    if weights > 0.0 { weighed / weights } else { 1.0 }
}

pub(super) const WAYS: &dyn Ways =
    &FourWays { metric: Metric::Iwssim, whole: IwssimWhole, strips: IwssimStrips, host: IwssimHost };
