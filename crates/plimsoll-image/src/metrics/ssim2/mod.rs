//! SSIMULACRA 2.1: structure, artefacts and lost detail of three channels, over six scales.
//!
//! What is computed is the published definition, not the rounding of the published tool: that one blurs recursively in
//! single precision, and what it loses so never comes back. No other device could lose the same; with nothing lost,
//! every rung gives the same score.
//!
//! `score` has the weights and `terms` the formulas; `colour` and `filter` are what both CPU rungs and the kernels do
//! to a row. `host*` is the cpu rung, `device` the whole image on a device, `strips` bands of it.

mod bands;
mod colour;
mod comparer;
#[cfg(test)]
mod definition;
mod device;
mod filter;
mod host;
mod host_pyramid;
mod host_window;
mod kernels;
mod score;
mod strips;
mod terms;

use self::device::Ssim2Whole;
use self::host::Ssim2Host;
use self::strips::Ssim2Strips;
use super::Metric;
use super::about::{About, Better};
use super::four_ways::{FourWays, Ways};
use super::workload::RUNGS;

pub(super) static ABOUT: About = About {
    name: "ssim2",
    what: "SSIMULACRA 2.1: structure, artefacts and lost detail in XYB, over six scales",
    range: -1e6..=PERFECT,
    perfect: PERFECT,
    better: Better::Higher,
    // The rungs were at most 1.7e-5 apart, wherever the score lies; near zero nothing makes that relative.
    tolerance: 5e-5,
    side_min: 8,
    side_full: 8,
    source: "own, MIT OR Apache-2.0",
    rungs: &RUNGS,
};

const PERFECT: f64 = 100.0;

pub(super) const WAYS: &dyn Ways =
    &FourWays { metric: Metric::Ssim2, whole: Ssim2Whole, strips: Ssim2Strips, host: Ssim2Host };
