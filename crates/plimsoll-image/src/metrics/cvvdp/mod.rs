//! ColorVideoVDP for still images: how far apart two images look on a display, in just-objectionable differences (JOD).
//!
//! Light of the display, opponent channels, contrasts over a pyramid weighed by the eye's sensitivity, masking among
//! channels, pooling. The same kernels do it on every rung, on the CPU through their twins: the crate `colorvideovdp`
//! cannot prepare a reference, so it is only compared with.

mod base;
mod castle;
mod contrast;
mod display;
mod host_pyramid;
mod masking;
mod model;
mod opponent;
mod pool;
mod shrink;
mod strips;
mod whole;
mod window;

use plimsoll_core::{Bytes, Fault, Footprint, Rung};
use plimsoll_runtime::{Backend, Session};

pub use self::display::{Display, ParseDisplayError};
use self::strips::CvvdpStrips;
use self::whole::CvvdpWhole;
use super::about::{About, Better};
use super::workload::{CPU, CPU_STRIP, GPU_FULL, GPU_STRIP, MetricWorkload, RUNGS, rung};
use super::{Metric, device_metric};
use crate::image::Shape;

pub(super) static ABOUT: About = About {
    name: "cvvdp",
    what: "ColorVideoVDP of still images on a display, in JOD; 10 is equal",
    // What is beyond recognition goes below zero.
    range: -100.0..=PERFECT,
    perfect: PERFECT,
    better: Better::Higher,
    // 1e-4 JOD: each rung was within 7e-6 of the authors' tool, but real GPUs take powers less exactly.
    tolerance: 1e-5,
    side_min: 4,
    side_full: 4,
    source: "own, MIT OR Apache-2.0; constants and sensitivities as published with ColorVideoVDP 0.5.7 (MIT)",
    rungs: &RUNGS,
};

const PERFECT: f64 = 10.0;

/// Packed rows on their way to the planes, which on the CPU come from the same memory.
const ROWS_ON_THEIR_WAY: Bytes = Bytes::mib(2);

pub(super) fn rungs(display: Display, shape: Shape) -> Vec<Rung> {
    let whole = device_metric::footprint(&CvvdpWhole(display), shape);
    let strips = device_metric::footprint(&CvvdpStrips(display), shape);
    let on_the_cpu = Footprint { task: whole.task + ROWS_ON_THEIR_WAY, ..whole };
    vec![rung(GPU_FULL, whole), rung(GPU_STRIP, strips), rung(CPU, on_the_cpu), rung(CPU_STRIP, strips)]
}

pub(super) fn open(
    display: Display,
    rung: &str,
    shape: Shape,
    backend: &mut dyn Backend,
) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
    let metric = Metric::Cvvdp(display);
    match rung {
        GPU_FULL | CPU => device_metric::open(metric, CvvdpWhole(display), shape, backend),
        _ => device_metric::open(metric, CvvdpStrips(display), shape, backend),
    }
}
