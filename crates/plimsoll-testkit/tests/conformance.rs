//! Every device of the project under the one suite. A machine without a Vulkan device fails here: install Mesa's
//! software one (`mesa-vulkan-drivers`).

use std::sync::Arc;
use std::time::Duration;

use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_testkit::conformance::{MEMORY, Subject};
use plimsoll_testkit::virtual_device::VirtualDevice;
use plimsoll_wgpu::{OpenOptions, WgpuDevice, discover};

fn gpu(options: &OpenOptions) -> Subject {
    let found = discover();
    let found = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    let device = found.open(options).expect("the device opens").remove(0);
    Subject::that_can_be_lost(device, WgpuDevice::lose).asynchronous(8_000)
}

/// One that takes its time.
fn paced() -> Subject {
    let pace = Duration::from_millis(5);
    let device = VirtualDevice::gpu("paced").slots(2).memory(MEMORY).pace(pace).build();
    Subject::that_can_be_lost(Arc::new(device), VirtualDevice::lose).asynchronous(7)
}

/// One whose work can be held up.
fn held() -> Subject {
    let device = Arc::new(VirtualDevice::gpu("virtual").slots(2).memory(MEMORY).build());
    let held = Arc::clone(&device);
    Subject::that_can_be_lost(device, VirtualDevice::lose).that_can_be_held(move |kicks| match kicks {
        Some(kicks) => held.hold_after(kicks),
        None => held.release(),
    })
}

plimsoll_testkit::conformance! {
    cpu => Subject::new(CpuDevice::builder().slots(2).memory_limit(MEMORY).build()),
    wgpu => gpu(&OpenOptions::default().with_slots(2).with_memory_limit(MEMORY)),
    wgpu_logical => gpu(&OpenOptions::default().with_logical(2).with_memory_limit(MEMORY)),
    virtual_gpu => held(),
    virtual_paced => paced(),
}
