//! GPUs through wgpu, on Vulkan, Metal and DX12.
//!
//! **Invariant:** no other crate names wgpu, and nothing that a driver does makes this one panic or abort.
//!
//! ```no_run
//! use plimsoll_runtime::{Device, check};
//! use plimsoll_wgpu::OpenOptions;
//!
//! for found in plimsoll_wgpu::discover() {
//!     for gpu in found.open(&OpenOptions::default())? {
//!         check::known_answer(&mut *gpu.open_backend()?)?;
//!         println!("{}: {}", gpu.facts().name, gpu.memory().capacity);
//!     }
//! }
//! # Ok::<(), plimsoll_core::Fault>(())
//! ```

mod backend;
mod completion;
mod device;
mod discover;
mod fetch;
mod generation;
mod health;
mod inject;
mod logical;
mod memory;
mod pipelines;
mod readback;
mod spares;
mod staging;
pub mod truth;
mod workgroup_memory;

pub use device::WgpuDevice;
pub use discover::{FoundGpu, discover};
#[doc(hidden)]
pub use inject::FaultInjection;
pub use logical::{LAVAPIPE_THREADS, OpenOptions};
