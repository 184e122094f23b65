//! The devices of these tests: the CPU, and Mesa's software GPU with little memory.

use std::sync::Arc;

use plimsoll::{Bytes, Device, DeviceId, Orchestrator};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_wgpu::{OpenOptions, discover};

pub(crate) const CPU: DeviceId = DeviceId(0);
pub(crate) const GPU: DeviceId = DeviceId(1);

pub(crate) fn lavapipe(memory: Bytes) -> Arc<dyn Device> {
    let found = discover();
    let found = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    found.open(&OpenOptions::default().with_memory_limit(memory).with_slots(1)).expect("the device opens").remove(0)
}

/// The CPU and a GPU of so much memory.
pub(crate) fn orchestrator(memory: Bytes) -> Arc<Orchestrator> {
    with_cpu(lavapipe(memory))
}

/// The CPU and this device.
pub(crate) fn with_cpu(device: Arc<dyn Device>) -> Arc<Orchestrator> {
    let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(2).build());
    Arc::new(Orchestrator::builder().devices([cpu, device]).margin(1.0).build())
}
