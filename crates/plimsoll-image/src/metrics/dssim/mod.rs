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

use plimsoll_core::{Fault, Rung};
use plimsoll_runtime::{Backend, Session};

use self::device::DssimWhole;
use self::host::DssimHost;
use self::strips::DssimStrips;
use super::about::{About, Better};
use super::host_metric::HostMetric;
use super::workload::{CPU, CPU_STRIP, GPU_FULL, GPU_STRIP, MetricWorkload, RUNGS, rung};
use super::{Metric, device_metric, host_metric};
use crate::image::Shape;

pub(super) static ABOUT: About = About {
    name: "dssim",
    what: "structural dissimilarity over five scales in Lab, as the tool dssim 3 gives it",
    range: 0.0..=scales::WORST,
    perfect: 0.0,
    better: Better::Lower,
    // Single precision: the rungs were 5e-6 apart at most (inverted, 1 x 9 pixels), and 1e-8 for usual pairs.
    tolerance: 1.5e-5,
    side_min: 1,
    source: "own, MIT OR Apache-2.0",
    rungs: &RUNGS,
};

pub(super) fn rungs(shape: Shape) -> Vec<Rung> {
    let strips = device_metric::footprint(&DssimStrips, shape);
    vec![
        rung(GPU_FULL, device_metric::footprint(&DssimWhole, shape)),
        rung(GPU_STRIP, strips),
        rung(CPU, DssimHost.footprint(shape)),
        rung(CPU_STRIP, strips),
    ]
}

pub(super) fn open(
    rung: &str,
    shape: Shape,
    backend: &mut dyn Backend,
) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
    match rung {
        GPU_FULL => device_metric::open(Metric::Dssim, DssimWhole, shape, backend),
        CPU => Ok(host_metric::open(Metric::Dssim, DssimHost, shape)),
        _ => device_metric::open(Metric::Dssim, DssimStrips, shape, backend),
    }
}
