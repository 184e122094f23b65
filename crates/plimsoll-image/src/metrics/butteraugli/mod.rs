//! Butteraugli: how visible the differences of two images are, seen on a display of 80 nits. The score is the largest
//! distance over the image, with the 3-norm beside it (the mean of the norms of order 3, 6 and 12).

mod heat_map;
mod host;
mod kernels;
mod scale;
mod strips;
mod whole;

pub use self::heat_map::{HeatMap, HeatMapError, heat_map};
use self::host::ButteraugliHost;
use self::kernels::norms::Norms;
use self::strips::ButteraugliStrips;
use self::whole::ButteraugliWhole;
use super::Metric;
use super::about::{About, Better};
use super::four_ways::{FourWays, Ways};
use super::workload::{RUNGS, Score};
use crate::image::Size;

pub(super) static ABOUT: About = About {
    name: "butteraugli",
    what: "butteraugli: the largest visible difference, at 80 nits; below 1 none is visible",
    range: 0.0..=f64::MAX,
    perfect: 0.0,
    better: Better::Lower,
    // Measured: 2.7e-5, for flat pictures, whose score comes from the small difference of large sums.
    tolerance: 1e-4,
    side_min: 8,
    side_full: 8,
    source: "crate butteraugli 0.9, BSD-3-Clause",
    rungs: &RUNGS,
};

/// Images with a shorter side are compared at their own resolution only.
const HALF_SIDE_MIN: u32 = 15;

pub(super) const WAYS: &dyn Ways = &FourWays {
    metric: Metric::Butteraugli,
    whole: ButteraugliWhole,
    strips: ButteraugliStrips,
    host: ButteraugliHost,
};

/// The size at half the resolution, where that counts.
fn half_size(size: Size) -> Option<Size> {
    let counts = size.width.min(size.height) >= HALF_SIDE_MIN;
    counts.then(|| Size { width: size.width.div_ceil(2), height: size.height.div_ceil(2) })
}

fn score(size: Size, norms: &Norms) -> Score {
    Score { value: norms.max, norm3: Some(norms.norm3(size.pixels())) }
}
