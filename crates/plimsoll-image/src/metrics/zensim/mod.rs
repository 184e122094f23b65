//! Zensim: structure, edges and fine detail over four scales in XYB, weighed as trained on compressed images.
//! Only the CPU does it, through its crate; what a prepared reference saves is in the benchmark `score`.

mod host;
mod packed;

use plimsoll_core::{Fault, Rung};
use plimsoll_runtime::{Backend, Session};

use self::host::ZensimHost;
use super::about::{About, Better};
use super::host_metric::HostMetric;
use super::workload::{CPU, MetricWorkload, rung};
use super::{Metric, host_metric};
use crate::image::Shape;

pub(super) static ABOUT: About = About {
    name: "zensim",
    what: "structure, edges and detail over four scales in XYB, weighed by training; 100 is equal",
    // Zero is the worst of the images it was trained on; far worse ones go below.
    range: -1000.0..=PERFECT,
    perfect: PERFECT,
    better: Better::Higher,
    tolerance: 1e-5,
    side_min: 8,
    side_full: 8,
    source: "crate zensim 0.2, MIT OR Apache-2.0",
    rungs: &[CPU],
};

const PERFECT: f64 = 100.0;

pub(super) fn rungs(shape: Shape) -> Vec<Rung> {
    vec![rung(CPU, ZensimHost::default().footprint(shape))]
}

pub(super) fn open(_: &str, shape: Shape, _: &mut dyn Backend) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
    Ok(host_metric::open(Metric::Zensim, ZensimHost::default(), shape))
}
