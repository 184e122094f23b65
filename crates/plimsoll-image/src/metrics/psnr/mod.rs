//! PSNR: peak signal-to-noise ratio of the coded samples, all three channels together, in decibels.
//! Equal images give 200 dB. The most that different ones can have is 185.4: one sample of 16 bits off by one among 2²⁸
//! pixels.

mod device;
mod host;

use self::device::{PsnrStrips, PsnrWhole};
use self::host::PsnrHost;
use super::Metric;
use super::about::{About, Better};
use super::four_ways::{FourWays, Ways};
use super::workload::{RUNGS, Score};
use crate::image::Size;

pub(super) static ABOUT: About = About {
    name: "psnr",
    what: "peak signal-to-noise ratio of the coded RGB samples, in dB",
    range: 0.0..=PERFECT,
    perfect: PERFECT,
    better: Better::Higher,
    tolerance: 1e-5,
    side_min: 1,
    side_full: 1,
    source: "own, MIT OR Apache-2.0",
    rungs: &RUNGS,
};

const PERFECT: f64 = 200.0;
/// Images of light can differ by less than any code: however little that is, they are not equal.
const DIFFERENT_MOST: f64 = 199.0;

pub(super) const WAYS: &dyn Ways =
    &FourWays { metric: Metric::Psnr, whole: PsnrWhole, strips: PsnrStrips, host: PsnrHost };

/// The score of a sum of squared differences, of samples from 0 to 1.
fn score(size: Size, squares: f64) -> Score {
    let mean = squares / (3.0 * size.pixels() as f64);
    Score::of(if mean > 0.0 { (-10.0 * mean.log10()).clamp(0.0, DIFFERENT_MOST) } else { PERFECT })
}
