//! DSSIM as Kornel Lesiński's tool of that name defines it (version 3): structural dissimilarity over five scales, in
//! Lab. Scales are made in linear light, chroma is smoothed first, the three channels make one similarity for each
//! pixel, and a scale counts by how far its pixels are from their mean.
//! `1 / similarity - 1`: equal images give 0, and there is hardly an upper end.

mod device;
mod host;
mod kernels;
mod rows;
mod scales;
mod stream;
mod strips;

use self::device::DssimWhole;
use self::host::DssimHost;
use self::strips::DssimStrips;
use super::Metric;
use super::about::{About, Better};
use super::four_ways::{FourWays, Ways};
use super::workload::RUNGS;

pub(super) static ABOUT: About = About {
    name: "dssim",
    what: "structural dissimilarity over five scales in Lab, as the tool dssim 3 gives it",
    range: 0.0..=scales::WORST,
    perfect: 0.0,
    better: Better::Lower,
    // Single precision: the rungs were 5e-6 apart at most (inverted, 1 x 9 pixels), and 1e-8 for usual pairs.
    tolerance: 1.5e-5,
    side_min: 1,
    side_full: 1,
    source: "own, MIT OR Apache-2.0",
    rungs: &RUNGS,
};

pub(super) const WAYS: &dyn Ways =
    &FourWays { metric: Metric::Dssim, whole: DssimWhole, strips: DssimStrips, host: DssimHost };
