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

use plimsoll_core::{Fault, Rung};
use plimsoll_runtime::{Backend, Session};

use self::device::Ssim2Whole;
use self::host::Ssim2Host;
use self::strips::Ssim2Strips;
use super::about::{About, Better};
use super::host_metric::HostMetric;
use super::workload::{CPU, CPU_STRIP, GPU_FULL, GPU_STRIP, MetricWorkload, RUNGS, rung};
use super::{Metric, device_metric, host_metric};
use crate::image::Shape;

pub(super) static ABOUT: About = About {
    name: "ssim2",
    what: "SSIMULACRA 2.1: structure, artefacts and lost detail in XYB, over six scales",
    range: -1e6..=PERFECT,
    perfect: PERFECT,
    better: Better::Higher,
    // The rungs were at most 1.7e-5 apart, wherever the score lies; near zero nothing makes that relative.
    tolerance: 5e-5,
    side_min: 8,
    source: "own, MIT OR Apache-2.0",
    rungs: &RUNGS,
};

const PERFECT: f64 = 100.0;

pub(super) fn rungs(shape: Shape) -> Vec<Rung> {
    let strips = device_metric::footprint(&Ssim2Strips, shape);
    vec![
        rung(GPU_FULL, device_metric::footprint(&Ssim2Whole, shape)),
        rung(GPU_STRIP, strips),
        rung(CPU, Ssim2Host.footprint(shape)),
        rung(CPU_STRIP, strips),
    ]
}

pub(super) fn open(
    rung: &str,
    shape: Shape,
    backend: &mut dyn Backend,
) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
    match rung {
        GPU_FULL => device_metric::open(Metric::Ssim2, Ssim2Whole, shape, backend),
        CPU => Ok(host_metric::open(Metric::Ssim2, Ssim2Host, shape)),
        _ => device_metric::open(Metric::Ssim2, Ssim2Strips, shape, backend),
    }
}
