//! Does what `plimsoll-core` decides.

mod backend;
pub mod cpu;
mod device;
pub mod gauge;
mod kernel;
pub mod misuse;
pub mod probe;
pub mod profile_file;

pub use backend::{Backend, Buffer, Launch, POISON, read_floats};
pub use device::{Device, DeviceFacts, MemoryReading, Nature};
pub use kernel::{Access, Kernel, Twin, Words};
pub use probe::check;
