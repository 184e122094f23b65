//! Structural similarity.

use plimsoll_core::{Fault, Rung};
use plimsoll_runtime::{Backend, Session};

use super::about::{About, Better};
use super::workload::{MetricWorkload, RUNGS};
use crate::image::Shape;

pub(super) static ABOUT: About = About {
    name: "ssim",
    what: "",
    range: 0.0..=1.0,
    perfect: 1.0,
    better: Better::Higher,
    tolerance: 1e-5,
    side_min: 1,
    source: "",
    rungs: &RUNGS,
};

pub(super) fn rungs(_: Shape) -> Vec<Rung> {
    todo!()
}

pub(super) fn open(_: &str, _: Shape, _: &mut dyn Backend) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
    todo!()
}
