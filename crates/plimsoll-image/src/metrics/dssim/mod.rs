//! DSSIM as Kornel Lesiński's tool of that name defines it (version 3.5): structural dissimilarity over five scales, in
//! Lab. Scales are made in linear light, chroma is smoothed first, the three channels make one similarity for each
//! pixel, and a scale counts by how far its pixels are from their mean.
//! `1 / similarity - 1`: equal images give 0, and there is hardly an upper end.

mod host;
mod rows;
mod scales;
mod stream;

use plimsoll_core::{Fault, Rung};
use plimsoll_runtime::{Backend, Session};

use self::host::DssimHost;
use super::about::{About, Better};
use super::host_metric::HostMetric;
use super::workload::{CPU, MetricWorkload, rung};
use super::{Metric, host_metric};
use crate::image::Shape;

pub(super) static ABOUT: About = About {
    name: "dssim",
    what: "structural dissimilarity over five scales in Lab, as the tool dssim 3 gives it",
    range: 0.0..=scales::WORST,
    perfect: 0.0,
    better: Better::Lower,
    tolerance: 1e-5,
    side_min: 1,
    source: "own, MIT OR Apache-2.0",
    rungs: &[CPU],
};

pub(super) fn rungs(shape: Shape) -> Vec<Rung> {
    vec![rung(CPU, DssimHost.footprint(shape))]
}

pub(super) fn open(
    _rung: &str,
    shape: Shape,
    _backend: &mut dyn Backend,
) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
    Ok(host_metric::open(Metric::Dssim, DssimHost, shape))
}
