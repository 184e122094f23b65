//! Metrics made of kernels: the same code on a GPU and, through the twins, on the CPU.

use plimsoll_core::{Bytes, Fault, Footprint};
use plimsoll_runtime::{Backend, Cancellation, Context, Session};

use super::Metric;
use super::workload::{MetricWorkload, PreparedReference, Score, in_range};
use crate::feed::Source;
use crate::footprint::CountingBackend;
use crate::image::{Image, SampleKind, Shape};
use crate::run::Run;

/// A metric made of kernels, whole or in strips: two types where both are offered.
pub(super) trait DeviceMetric: Send + Sync + 'static {
    /// Buffers that a session keeps from one task to the next.
    type Work: Send + 'static;
    /// What stays of a reference: buffers where it lies on the device whole, the image itself where it goes in strips.
    type Reference: Send + Sync + 'static;

    /// Buffers for images of this shape.
    fn open(&self, run: &mut Run<'_>, shape: Shape) -> Result<Self::Work, Fault>;

    /// What later comparisons need of a reference. Its samples may be stored in another way than the images'.
    fn prepare(
        &self,
        run: &mut Run<'_>,
        work: &mut Self::Work,
        reference: Source<'_>,
    ) -> Result<Self::Reference, Fault>;

    /// Compares an image with a reference of the same size.
    fn score(
        &self,
        run: &mut Run<'_>,
        work: &mut Self::Work,
        reference: &Self::Reference,
        distorted: Source<'_>,
    ) -> Result<Score, Fault>;
}

/// Opens a session of a metric made of kernels.
pub(super) fn open<D: DeviceMetric>(
    metric: Metric,
    device: D,
    shape: Shape,
    backend: &mut dyn Backend,
) -> Result<Box<dyn Session<MetricWorkload>>, Fault> {
    let work = device.open(&mut Run { backend, cancellation: Cancellation::never() }, shape)?;
    Ok(Box::new(DeviceSession { metric, device, work }))
}

/// The bytes it holds, exactly: counted by doing everything once on a device that only counts. A reference may be stored
/// in any way, so the largest of the three counts.
pub(super) fn footprint<D: DeviceMetric>(device: &D, shape: Shape) -> Footprint {
    let kinds = [SampleKind::Rgb8, SampleKind::Rgb16, SampleKind::Linear];
    let each = kinds.map(|kind| footprint_with(device, shape, Shape { kind, ..shape }).expect("counting never fails"));
    let largest = |bytes: fn(&Footprint) -> Bytes| each.iter().map(bytes).max().unwrap_or_default();
    Footprint {
        session: largest(|footprint| footprint.session),
        task: largest(|footprint| footprint.task),
        reference: largest(|footprint| footprint.reference),
    }
}

fn footprint_with<D: DeviceMetric>(device: &D, shape: Shape, reference: Shape) -> Result<Footprint, Fault> {
    let mut counting = CountingBackend::default();
    let cancellation = Cancellation::never();
    let mut work = device.open(&mut Run { backend: &mut counting, cancellation }, shape)?;
    let session = counting.held();
    let (preparing, kept) = counting
        .peak_of(|backend| device.prepare(&mut Run { backend, cancellation }, &mut work, Source::Blank(reference)));
    let (kept, resident) = (kept?, counting.held());
    let (scoring, score) = counting
        .peak_of(|backend| device.score(&mut Run { backend, cancellation }, &mut work, &kept, Source::Blank(shape)));
    score?;
    let task = Bytes(preparing.max(scoring).0 - resident.0);
    Ok(Footprint { session, task, reference: Bytes(resident.0 - session.0) })
}

struct DeviceSession<D: DeviceMetric> {
    metric: Metric,
    device: D,
    work: D::Work,
}

impl<D: DeviceMetric> Session<MetricWorkload> for DeviceSession<D> {
    fn prepare(&mut self, reference: &Image, backend: &mut dyn Backend) -> Result<PreparedReference, Fault> {
        let mut run = Run { backend, cancellation: Cancellation::never() };
        let (size, reference) = (reference.size(), reference.at_least(self.metric.about().side_min));
        let reference = self.device.prepare(&mut run, &mut self.work, Source::Pixels(&reference))?;
        Ok(PreparedReference::new(size, reference))
    }

    fn run(&mut self, distorted: &Image, context: &mut Context<'_, MetricWorkload>) -> Result<Score, Fault> {
        let reference: &D::Reference = context.reference(0)?.of(distorted.size())?;
        let distorted = distorted.at_least(self.metric.about().side_min);
        let mut run = Run { backend: context.backend, cancellation: context.cancellation };
        let score = self.device.score(&mut run, &mut self.work, reference, Source::Pixels(&distorted))?;
        in_range(self.metric, score)
    }
}
