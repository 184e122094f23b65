//! Devices to try chains on: the CPU, a GPU, and one that runs the kernels' twins as if it were a GPU.

use std::sync::Arc;

use plimsoll_core::DeviceId;
use plimsoll_image::frames::{Chain, ChainWorkload, Frame};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::{Device, Orchestrator, Registered, Task, Value};
use plimsoll_testkit::virtual_device::VirtualDevice;
use plimsoll_wgpu::{OpenOptions, WgpuDevice, discover};

/// Where a chain runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The `cpu` rung.
    Cpu,
    /// The `gpu` rung on a GPU.
    Gpu,
    /// The `gpu` rung through the kernels' twins.
    Twin,
}

impl Way {
    fn device(self) -> DeviceId {
        DeviceId(self as u16)
    }
}

/// One device for each way.
pub(crate) struct Bench {
    orchestrator: Orchestrator,
    pub(crate) gpu: Arc<WgpuDevice>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let found = discover();
        let card = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
        let gpu = card.open(&OpenOptions::default()).expect("the device opens").remove(0);
        let devices: [Arc<dyn Device>; 3] = [
            Arc::new(CpuDevice::builder().slots(1).build()),
            Arc::clone(&gpu) as Arc<dyn Device>,
            Arc::new(VirtualDevice::gpu("twins").build()),
        ];
        Self { orchestrator: Orchestrator::builder().devices(devices).build(), gpu }
    }

    pub(crate) fn register(&self, chain: &str) -> Registered<ChainWorkload> {
        let chain: Chain = chain.parse().unwrap_or_else(|error| panic!("{chain}: {error}"));
        self.orchestrator.register(ChainWorkload::new(chain))
    }

    /// What a chain makes of one frame.
    pub(crate) fn run(&self, chain: &Registered<ChainWorkload>, way: Way, frame: &Frame) -> Frame {
        self.finish(chain, way, ChainWorkload::task(frame.clone()))
    }

    /// What a chain makes of the `own`-th of some frames that follow each other.
    pub(crate) fn run_among(&self, chain: &Registered<ChainWorkload>, way: Way, frames: &[Frame], own: usize) -> Frame {
        let kept = self.keep(chain, way, frames);
        self.finish(chain, way, chain.workload().task_among(kept, own, frames[own].format()))
    }

    /// Frames as those around them look at them.
    pub(crate) fn keep(&self, chain: &Registered<ChainWorkload>, way: Way, frames: &[Frame]) -> Vec<Value> {
        let first = self.orchestrator.register(chain.workload().first_part().expect("it looks at other frames"));
        let task = |frame: &Frame| Task::new(frame.clone()).devices([way.device()]);
        let claims = frames.iter().map(|frame| self.orchestrator.submit_for_value(&first, task(frame)));
        claims.map(|claim| claim.expect("taken in").1).collect()
    }

    fn finish(&self, chain: &Registered<ChainWorkload>, way: Way, task: Task<ChainWorkload>) -> Frame {
        let done = self.orchestrator.run(chain, task.devices([way.device()]));
        done.unwrap_or_else(|failure| panic!("{} ({way:?}): {:?}", chain.workload().chain(), failure.error)).output
    }
}
