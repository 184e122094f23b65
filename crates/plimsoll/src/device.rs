//! Devices from the inside: what one tells of itself, how work reaches it, and what it must do to be one. A device of your
//! own implements [`Device`] and [`Backend`].

pub use plimsoll_core::health::{Ailment, Health};
pub use plimsoll_core::residency::ResidencyCounts;
pub use plimsoll_core::stats::{DeviceReport, DeviceStats};
pub use plimsoll_runtime::cpu::CpuDevice;
pub use plimsoll_runtime::gauge::{Charge, Gauge};
pub use plimsoll_runtime::{
    Backend, Buffer, Device, DeviceFacts, DeviceStatus, Fence, FenceState, KICKS_LIMIT, Kicks, MemoryReading, Nature,
    POISON, Readback, Staged, check,
};
