//! Devices to spread frames over.

use std::sync::Arc;

use plimsoll::frames::{Distributor, DistributorOptions};
use plimsoll::{Device, Orchestrator};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_testkit::virtual_device::VirtualDevice;
use plimsoll_wgpu::{OpenOptions, WgpuDevice};

/// A software GPU in so many parts.
pub(crate) fn logical_gpus(count: usize) -> Vec<Arc<WgpuDevice>> {
    let found = plimsoll_wgpu::discover();
    let card = found.first().expect("a Vulkan device: install mesa-vulkan-drivers");
    card.open(&OpenOptions::default().with_logical(count)).expect("it opens")
}

pub(crate) fn cpu(slots: usize) -> Arc<dyn Device> {
    Arc::new(CpuDevice::builder().slots(slots).build())
}

pub(crate) fn virtual_gpus(count: usize) -> Vec<Arc<dyn Device>> {
    (0..count).map(|at| Arc::new(VirtualDevice::gpu(&format!("virtual {at}")).build()) as Arc<dyn Device>).collect()
}

pub(crate) fn distributor(devices: Vec<Arc<dyn Device>>) -> Distributor {
    Distributor::new(Orchestrator::builder().devices(devices).build(), DistributorOptions::default())
}
