//! The devices of these tests: the CPU and Mesa's software GPU.

use std::sync::Arc;

use plimsoll::machine::{GpuUse, Machine, MachineOptions};
use plimsoll::{Bytes, Device};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_wgpu::{OpenOptions, WgpuDevice, discover};

/// The first Vulkan device, with little memory.
pub(crate) fn lavapipe() -> Arc<WgpuDevice> {
    let found = discover();
    let found = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    let options = OpenOptions::default().with_memory_limit(Bytes::mib(512)).with_slots(1);
    found.open(&options).expect("the device opens").remove(0)
}

/// The CPU.
pub(crate) fn cpu(slots: usize) -> Arc<dyn Device> {
    Arc::new(CpuDevice::builder().slots(slots).build())
}

/// The CPU and every GPU, as a program opens them.
pub(crate) fn machine() -> Vec<Arc<dyn Device>> {
    let options = MachineOptions { gpus: GpuUse::WithSoftware, cpu_slots: Some(2), ..MachineOptions::default() };
    let machine = Machine::open(&options);
    assert!(machine.devices.len() > 1, "tests need a Vulkan device: `cargo xtask test` installs one");
    machine.devices
}
