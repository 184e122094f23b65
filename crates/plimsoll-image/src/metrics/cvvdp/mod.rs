//! ColorVideoVDP for still images, on a display.

use plimsoll_core::{Fault, Rung};
use plimsoll_runtime::{Backend, Session};

use super::about::{About, Better};
use super::workload::{MetricWorkload, RUNGS};
use crate::image::Shape;

pub(super) static ABOUT: About = About {
    name: "cvvdp",
    what: "",
    range: 0.0..=1.0,
    perfect: 1.0,
    better: Better::Higher,
    tolerance: 1e-5,
    side_min: 1,
    source: "",
    rungs: &RUNGS,
};

/// A display to view images on.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Display;

impl Display {
    /// The usual one.
    pub const STANDARD: Self = Self;
}

pub(super) fn rungs(_: Display, _: Shape) -> Vec<Rung> {
    todo!()
}

pub(super) fn open(
    _: Display,
    _: &str,
    _: Shape,
    _: &mut dyn Backend,
) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
    todo!()
}
