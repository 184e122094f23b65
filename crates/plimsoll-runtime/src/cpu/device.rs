//! The CPU device: its facts, its memory now, and a way for each worker to reach it.
//! Never runs anything itself; [`super::CpuBackend`] does, on the worker's own thread.
//! Invariant: all slots share one gauge, and it never goes past the limit.

use std::sync::Arc;
use std::thread;

use plimsoll_core::{Bytes, DeviceKind, Fault};

use super::backend::{CpuBackend, fetch};
use super::identity::CpuIdentity;
use super::memory;
use crate::backend::{Backend, Buffer};
use crate::device::{Device, DeviceFacts, MemoryReading, Nature};
use crate::gauge::Gauge;

/// The pool of processor cores.
///
/// ```
/// # mod plimsoll { pub use plimsoll_core::*; pub mod device { pub use plimsoll_runtime::{Device, check, cpu::CpuDevice}; } }
/// use plimsoll::Bytes;
/// use plimsoll::device::{CpuDevice, Device};
///
/// let cpu = CpuDevice::builder().slots(2).memory_limit(Bytes::mib(64)).build();
/// assert_eq!(cpu.facts().slots, 2);
/// assert_eq!(cpu.memory().limit, Some(Bytes::mib(64)));
/// ```
#[derive(Debug)]
pub struct CpuDevice {
    facts: DeviceFacts,
    limit: Option<Bytes>,
    /// What the allocator refuses past: fixed at open, so that a huge request fails even while nothing else runs.
    ceiling: Bytes,
    gauge: Arc<Gauge>,
}

impl CpuDevice {
    /// As many slots as this process may use cores, and all of its memory.
    pub fn open() -> Self {
        Self::builder().build()
    }

    /// Chooses slots and memory.
    pub fn builder() -> CpuDeviceBuilder {
        CpuDeviceBuilder::default()
    }
}

impl Device for CpuDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn memory(&self) -> MemoryReading {
        let system = memory::read();
        let (capacity, free, source) = (system.capacity, system.free, system.source);
        MemoryReading {
            capacity,
            free,
            limit: self.limit,
            ours: self.gauge.now(),
            resident: memory::resident(),
            source,
        }
    }

    /// The kernel writes down what it knows; no driver is asked.
    fn answers_at_once(&self) -> bool {
        true
    }

    fn open_backend(&self) -> Result<Box<dyn Backend>, Fault> {
        Ok(Box::new(CpuBackend::new(Arc::clone(&self.gauge), self.ceiling)))
    }

    fn fetch(&self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        fetch(&self.gauge, buffer, offset, into)
    }

    /// The CPU is never lost while we run on it.
    fn reopen(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// How to open the CPU device.
#[derive(Copy, Clone, Debug, Default)]
pub struct CpuDeviceBuilder {
    slots: Option<usize>,
    memory_limit: Option<Bytes>,
}

impl CpuDeviceBuilder {
    /// How many tasks run at once; at least 1. Without this: the cores this process may use, by its affinity and its
    /// container's quota.
    #[must_use]
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = Some(slots.max(1));
        self
    }

    /// Bytes we may use at most, if the system has more.
    #[must_use]
    pub fn memory_limit(mut self, limit: impl Into<Option<Bytes>>) -> Self {
        self.memory_limit = limit.into();
        self
    }

    /// Opens it.
    pub fn build(self) -> CpuDevice {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let identity = CpuIdentity::of_this_machine();
        let capacity = memory::read().capacity;
        let facts = DeviceFacts {
            label: "cpu".to_owned(),
            name: identity.name().to_owned(),
            kind: DeviceKind::Cpu,
            nature: Nature::Hardware,
            driver: String::new(),
            api: "native".to_owned(),
            key: identity.key(cores),
            bus: String::new(),
            slots: self.slots.unwrap_or(cores),
        };
        let ceiling = self.memory_limit.map_or(capacity, |limit| capacity.min(limit));
        CpuDevice { facts, limit: self.memory_limit, ceiling, gauge: Arc::default() }
    }
}
