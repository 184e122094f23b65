//! Devices to try metrics on.

use std::sync::Arc;

use plimsoll_image::Image;
use plimsoll_image::metrics::{Metric, MetricWorkload, Score};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::{Device, Done, Orchestrator, Registered, RunError, Task};
use plimsoll_wgpu::{OpenOptions, WgpuDevice, discover};

/// The CPU with one slot, and a GPU.
pub(crate) struct Bench {
    pub(crate) orchestrator: Orchestrator,
    pub(crate) gpu: Arc<WgpuDevice>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let found = discover();
        let card = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
        let gpu = card.open(&OpenOptions::default()).expect("the device opens").remove(0);
        let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(1).build());
        let orchestrator = Orchestrator::builder().device(cpu).device(Arc::clone(&gpu) as Arc<dyn Device>).build();
        Self { orchestrator, gpu }
    }

    pub(crate) fn register(&self, metric: Metric) -> Registered<MetricWorkload> {
        self.orchestrator.register(metric.workload())
    }

    /// Scores a pair on one rung.
    pub(crate) fn score(
        &self,
        metric: &Registered<MetricWorkload>,
        rung: &'static str,
        reference: &Image,
        distorted: &Image,
    ) -> Result<Done<Score>, RunError> {
        let reference = self.orchestrator.pin_reference(metric, reference.clone());
        self.orchestrator.run(metric, Task::new(distorted.clone()).reference(&reference).rung(rung))
    }
}

/// Whether two scores are the same within `tolerance * max(1, |a|, |b|)`.
pub(crate) fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}
