//! SSIM as Wang, Bovik, Sheikh and Simoncelli published it in 2004: a Gaussian window of 11 x 11 with sigma 1.5, K1 =
//! 0.01 and K2 = 0.03, population covariance, on the BT.601 luma of the coded samples, and the mean over all places
//! where the window lies inside the image. `skimage.metrics.structural_similarity` gives the same with
//! `gaussian_weights=True, sigma=1.5, use_sample_covariance=False`.

mod device;
mod host;

use plimsoll_core::{Fault, Rung};
use plimsoll_runtime::{Backend, Session};

use self::device::{SsimStrips, SsimWhole};
use self::host::SsimHost;
use super::about::{About, Better};
use super::host_metric::HostMetric;
use super::structure::Terms;
use super::structure::window::SPAN;
use super::workload::{CPU, CPU_STRIP, GPU_FULL, GPU_STRIP, MetricWorkload, RUNGS, rung};
use super::{Metric, device_metric, host_metric};
use crate::image::Shape;

pub(super) static ABOUT: About = About {
    name: "ssim",
    what: "structural similarity of luma (Gaussian window of 11 x 11, sigma 1.5)",
    range: -1.0..=1.0,
    perfect: 1.0,
    better: Better::Higher,
    tolerance: 2e-6,
    side_min: SPAN as u32,
    source: "own, MIT OR Apache-2.0",
    rungs: &RUNGS,
};

/// The luma of white.
const PEAK: f32 = 1.0;

fn terms() -> Terms {
    Terms::for_peak(PEAK, true)
}

pub(super) fn rungs(shape: Shape) -> Vec<Rung> {
    let strips = device_metric::footprint(&SsimStrips, shape);
    vec![
        rung(GPU_FULL, device_metric::footprint(&SsimWhole, shape)),
        rung(GPU_STRIP, strips),
        rung(CPU, SsimHost.footprint(shape)),
        rung(CPU_STRIP, strips),
    ]
}

pub(super) fn open(
    rung: &str,
    shape: Shape,
    backend: &mut dyn Backend,
) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
    match rung {
        GPU_FULL => device_metric::open(Metric::Ssim, SsimWhole, shape, backend),
        CPU => Ok(host_metric::open(Metric::Ssim, SsimHost, shape)),
        _ => device_metric::open(Metric::Ssim, SsimStrips, shape, backend),
    }
}
