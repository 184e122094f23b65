//! SSIM as Wang, Bovik, Sheikh and Simoncelli published it in 2004: a Gaussian window of 11 x 11 with sigma 1.5, K1 =
//! 0.01 and K2 = 0.03, population covariance, on the BT.601 luma of the coded samples, and the mean over all places
//! where the window lies inside the image. `skimage.metrics.structural_similarity` gives the same with
//! `gaussian_weights=True, sigma=1.5, use_sample_covariance=False`.

mod device;
mod host;

use self::device::{SsimStrips, SsimWhole};
use self::host::SsimHost;
use super::Metric;
use super::about::{About, Better};
use super::four_ways::{FourWays, Ways};
use super::structure::Terms;
use super::structure::window::SPAN;
use super::workload::RUNGS;

pub(super) static ABOUT: About = About {
    name: "ssim",
    what: "structural similarity of luma (Gaussian window of 11 x 11, sigma 1.5)",
    range: -1.0..=1.0,
    perfect: 1.0,
    better: Better::Higher,
    tolerance: 2e-6,
    side_min: SPAN as u32,
    side_full: SPAN as u32,
    source: "own, MIT OR Apache-2.0",
    rungs: &RUNGS,
};

/// The luma of white.
const PEAK: f32 = 1.0;

fn terms() -> Terms {
    Terms::for_peak(PEAK, true)
}

pub(super) const WAYS: &dyn Ways =
    &FourWays { metric: Metric::Ssim, whole: SsimWhole, strips: SsimStrips, host: SsimHost };
