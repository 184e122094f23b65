//! The CPU as a device: its cores are slots, its memory is the system's (or its container's), kernels run as twins.
//! Never reaches a GPU: a fallback to the CPU is really a fallback.

mod backend;
mod device;
mod identity;
mod kernel_text;
pub mod memory;

pub use backend::CpuBackend;
pub use device::{CpuDevice, CpuDeviceBuilder};
