//! Metrics on the CPU as plain code: a library's, or our own where that is faster than the kernels' twins.

use plimsoll_core::{Fault, Footprint};
use plimsoll_runtime::{Backend, Context, Session};

use super::Metric;
use super::workload::{MetricWorkload, PreparedReference, Score, in_range};
use crate::image::{Image, Shape};

/// A metric on the CPU.
pub(super) trait HostMetric: Send + Sync + 'static {
    /// What stays of a reference, so that later comparisons are cheaper.
    type Reference: Send + Sync + 'static;
    /// Memory that a session keeps from one task to the next.
    type Scratch: Send + 'static;

    /// Bytes on the heap: at most this, and not much less (`tests/heap.rs` counts them).
    fn footprint(&self, shape: Shape) -> Footprint;

    /// Memory for images of this shape.
    fn open(&self, shape: Shape) -> Self::Scratch;

    /// What later comparisons need of a reference.
    fn prepare(&self, scratch: &mut Self::Scratch, reference: &Image) -> Result<Self::Reference, Fault>;

    /// Compares an image with a reference of the same size.
    fn score(
        &self,
        scratch: &mut Self::Scratch,
        reference: &Self::Reference,
        distorted: &Image,
    ) -> Result<Score, Fault>;
}

/// Opens a session of a metric on the CPU.
pub(super) fn open<H: HostMetric>(metric: Metric, host: H, shape: Shape) -> Box<dyn Session<MetricWorkload>> {
    Box::new(HostSession { metric, scratch: host.open(shape), host })
}

struct HostSession<H: HostMetric> {
    metric: Metric,
    host: H,
    scratch: H::Scratch,
}

impl<H: HostMetric> Session<MetricWorkload> for HostSession<H> {
    fn prepare(&mut self, reference: &Image, _: &mut dyn Backend) -> Result<PreparedReference, Fault> {
        let (size, reference) = (reference.size(), reference.at_least(self.metric.about().side_min));
        Ok(PreparedReference::new(size, self.host.prepare(&mut self.scratch, &reference)?))
    }

    fn run(&mut self, distorted: &Image, context: &mut Context<'_, MetricWorkload>) -> Result<Score, Fault> {
        let reference: &H::Reference = context.reference(0)?.of(distorted.size())?;
        let distorted = distorted.at_least(self.metric.about().side_min);
        in_range(self.metric, self.host.score(&mut self.scratch, reference, &distorted)?)
    }
}
