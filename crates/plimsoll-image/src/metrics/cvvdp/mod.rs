//! ColorVideoVDP for still images: how far apart two images look on a display, in just-objectionable differences (JOD).
//!
//! Light of the display, opponent channels, contrasts over a pyramid weighed by the eye's sensitivity, masking among
//! channels, pooling. The same kernels do it on every rung: on the CPU their twins are faster than the crate
//! `colorvideovdp`, which cannot prepare a reference.

mod base;
mod castle;
mod contrast;
mod display;
mod masking;
mod model;
mod opponent;
mod pool;
mod power;
mod shrink;
mod whole;
mod window;

use plimsoll_core::{Fault, Rung};
use plimsoll_runtime::{Backend, Session};

pub use self::display::{Display, ParseDisplayError};
use self::whole::CvvdpWhole;
use super::about::{About, Better};
use super::workload::{CPU, GPU_FULL, MetricWorkload, rung};
use super::{Metric, device_metric};
use crate::image::Shape;

pub(super) static ABOUT: About = About {
    name: "cvvdp",
    what: "ColorVideoVDP of still images on a display, in JOD; 10 is equal",
    // What is beyond recognition goes below zero.
    range: -100.0..=PERFECT,
    perfect: PERFECT,
    better: Better::Higher,
    tolerance: 1e-5,
    side_min: 4,
    source: "own, MIT OR Apache-2.0; constants and sensitivities as published with ColorVideoVDP 0.5.7 (MIT)",
    rungs: &[GPU_FULL, CPU],
};

const PERFECT: f64 = 10.0;

pub(super) fn rungs(display: Display, shape: Shape) -> Vec<Rung> {
    let whole = device_metric::footprint(&CvvdpWhole(display), shape);
    vec![rung(GPU_FULL, whole), rung(CPU, whole)]
}

pub(super) fn open(
    display: Display,
    _: &str,
    shape: Shape,
    backend: &mut dyn Backend,
) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
    device_metric::open(Metric::Cvvdp(display), CvvdpWhole(display), shape, backend)
}
