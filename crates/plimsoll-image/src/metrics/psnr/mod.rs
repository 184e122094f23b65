//! PSNR: peak signal-to-noise ratio of the coded samples, all three channels together, in decibels.
//! Equal images give 100 dB, which no pair of different 16-bit images reaches.

mod device;
mod host;

use plimsoll_core::{Fault, Rung};
use plimsoll_runtime::{Backend, Session};

use self::device::{PsnrStrips, PsnrWhole};
use self::host::PsnrHost;
use super::about::{About, Better};
use super::host_metric::HostMetric;
use super::workload::{CPU, CPU_STRIP, GPU_FULL, GPU_STRIP, MetricWorkload, RUNGS, Score, rung};
use super::{Metric, device_metric, host_metric};
use crate::image::{Shape, Size};

pub(super) static ABOUT: About = About {
    name: "psnr",
    what: "peak signal-to-noise ratio of the coded RGB samples, in dB",
    range: 0.0..=PERFECT,
    perfect: PERFECT,
    better: Better::Higher,
    tolerance: 1e-5,
    side_min: 1,
    source: "own, MIT OR Apache-2.0",
    rungs: &RUNGS,
};

const PERFECT: f64 = 100.0;

pub(super) fn rungs(shape: Shape) -> Vec<Rung> {
    let strips = device_metric::footprint(&PsnrStrips, shape);
    vec![
        rung(GPU_FULL, device_metric::footprint(&PsnrWhole, shape)),
        rung(GPU_STRIP, strips),
        rung(CPU, PsnrHost.footprint(shape)),
        rung(CPU_STRIP, strips),
    ]
}

pub(super) fn open(
    rung: &str,
    shape: Shape,
    backend: &mut dyn Backend,
) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
    match rung {
        GPU_FULL => device_metric::open(Metric::Psnr, PsnrWhole, shape, backend),
        CPU => Ok(host_metric::open(Metric::Psnr, PsnrHost, shape)),
        _ => device_metric::open(Metric::Psnr, PsnrStrips, shape, backend),
    }
}

/// The score of a sum of squared differences, of samples from 0 to 1.
fn score(size: Size, squares: f64) -> Score {
    let mean = squares / (3.0 * size.pixels() as f64);
    Score::of(if mean > 0.0 { (-10.0 * mean.log10()).clamp(0.0, PERFECT) } else { PERFECT })
}
