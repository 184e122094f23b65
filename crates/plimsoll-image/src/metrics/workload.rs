//! A metric as a workload: the task is a distorted image, its reference is a reference.
//! Invariant: a score lies in its metric's range, or there is an error instead of it.

use std::any::Any;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use plimsoll_core::task::SessionShape;
use plimsoll_core::{DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Session, Workload};

use super::Metric;
use crate::image::{Image, Shape, Size};

/// The names of the rungs, best first: a metric has some or all of them.
pub const RUNGS: [&str; 4] = [GPU_FULL, GPU_STRIP, CPU, CPU_STRIP];
/// The whole image lies on a GPU, and the prepared reference stays there.
pub(crate) const GPU_FULL: &str = "gpu-full";
/// The image goes through a GPU in bands of rows.
pub(crate) const GPU_STRIP: &str = "gpu-strip";
/// The fastest way on the CPU.
pub(crate) const CPU: &str = "cpu";
/// The strips of the GPU on the CPU: slower, in very little memory.
pub(crate) const CPU_STRIP: &str = "cpu-strip";

/// Shapes whose ladders are remembered. Most runs see a few; beyond this they are worked out again.
const LADDERS_MAX: usize = 256;

/// What a metric says of an image.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Score {
    /// The score.
    pub value: f64,
    /// The 3-norm, for metrics that have one beside the score.
    pub norm3: Option<f64>,
}

impl Score {
    /// A score that is one number.
    pub(crate) fn of(value: f64) -> Self {
        Self { value, norm3: None }
    }
}

/// An image that is not of its reference's size.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the image is {distorted}, its reference {reference}; scale one of them first")]
pub struct SizesDifferError {
    /// The reference's size.
    pub reference: Size,
    /// The image's size.
    pub distorted: Size,
}

/// What a rung of a metric keeps of a reference: each something of its own, which no other rung can read.
#[derive(Debug)]
pub struct PreparedReference {
    size: Size,
    kept: Box<dyn Any + Send + Sync>,
}

impl PreparedReference {
    pub(super) fn new(size: Size, kept: impl Any + Send + Sync) -> Self {
        Self { size, kept: Box::new(kept) }
    }

    /// What was kept, for an image that is to be compared with it.
    pub(super) fn of<R: 'static>(&self, distorted: Size) -> Result<&R, Fault> {
        if self.size != distorted {
            return Err(Fault::work(SizesDifferError { reference: self.size, distorted }));
        }
        self.kept.downcast_ref().ok_or_else(|| Fault::work("the reference was prepared by another rung"))
    }
}

/// A metric that an orchestrator can run. Made by [`Metric::workload`].
#[derive(Debug)]
pub struct MetricWorkload {
    metric: Metric,
    ladders: Mutex<HashMap<Shape, Ladder>>,
}

impl MetricWorkload {
    pub(super) fn new(metric: Metric) -> Self {
        Self { metric, ladders: Mutex::default() }
    }

    /// The shape that sessions see.
    fn shape_of(&self, distorted: &Image) -> Shape {
        let Shape { size, kind } = distorted.shape();
        Shape { size: size.at_least(self.metric.about().side_min), kind }
    }

    /// The metric.
    pub fn metric(&self) -> Metric {
        self.metric
    }
}

impl Workload for MetricWorkload {
    type Input = Image;
    type Reference = Image;
    type Prepared = PreparedReference;
    type Output = Score;

    fn name(&self) -> &str {
        self.metric.name()
    }

    fn units(&self, distorted: &Image) -> u64 {
        distorted.size().pixels()
    }

    fn ladder(&self, distorted: &Image) -> Ladder {
        let shape = self.shape_of(distorted);
        let mut ladders = self.ladders.lock().unwrap_or_else(PoisonError::into_inner);
        if ladders.len() >= LADDERS_MAX && !ladders.contains_key(&shape) {
            ladders.clear();
        }
        ladders.entry(shape).or_insert_with(|| Ladder::from(self.metric.rungs(shape))).clone()
    }

    fn shape(&self, distorted: &Image) -> SessionShape {
        SessionShape { params: hash(self.metric), shape: hash(self.shape_of(distorted)) }
    }

    fn open(&self, rung: &Rung, distorted: &Image, backend: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        self.metric.open(rung.name, self.shape_of(distorted), backend)
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A rung by its name and what it needs.
pub(super) fn rung(name: &'static str, footprint: Footprint) -> Rung {
    let kind = if matches!(name, GPU_FULL | GPU_STRIP) { DeviceKind::Gpu } else { DeviceKind::Cpu };
    Rung::new(name, Place::On(kind), footprint)
}

/// Passes a score on if it is one that the metric can give.
pub(super) fn in_range(metric: Metric, score: Score) -> Result<Score, Fault> {
    let values = [Some(score.value), score.norm3].into_iter().flatten();
    let range = &metric.about().range;
    match values.clone().all(|value| range.contains(&value)) {
        true => Ok(score),
        false => {
            Err(Fault::WrongAnswer { detail: format!("{metric} gave {}, which is outside its range", score.value) })
        }
    }
}
