//! What the runtime needs to know of a device, and how it reaches one.
//! Never schedules. A device that is present but was not seen to work does not count: see [`crate::check`].

use plimsoll_core::line::{Margin, Memory};
use plimsoll_core::{Bytes, DeviceKind, Fault};
use serde::Serialize;

use crate::backend::{Backend, Buffer};

/// What does not change while a device is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceFacts {
    /// What its user calls it, for example `gpu0`: so it is named in figures and choices.
    pub label: String,
    /// What people call it, for example `NVIDIA GeForce RTX 5070`.
    pub name: String,
    /// CPU or GPU.
    pub kind: DeviceKind,
    /// Whether it is a GPU made of CPU cores (lavapipe and the like), simulated, or the real thing.
    pub nature: Nature,
    /// Driver name and version; empty for the CPU.
    pub driver: String,
    /// `Vulkan`, `Metal`, `DX12`; `native` for the CPU.
    pub api: String,
    /// Names this very hardware and driver in the profile; equal on identical machines.
    pub key: String,
    /// Where it sits, for example `0000:01:00.0`; empty if the platform does not say.
    pub bus: String,
    /// How many tasks run on it at once at the most.
    pub slots: usize,
}

/// How real a device is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Nature {
    /// Hardware of its own.
    Hardware,
    /// A GPU API run by the CPU's cores.
    Software,
    /// Pretended, for tests.
    Virtual,
}

/// A device's memory at one moment.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryReading {
    /// All the memory it has, for anyone.
    pub capacity: Bytes,
    /// What is free now, counting every program.
    pub free: Bytes,
    /// What we may use at most, if somebody said so.
    pub limit: Option<Bytes>,
    /// What we allocated ourselves, exactly.
    pub ours: Bytes,
    /// What this process as a whole holds of it, where host code allocates past what is counted in `ours`: the CPU's
    /// tasks have their heap there. `None` where all of ours is counted, or where the platform does not tell.
    pub resident: Option<Bytes>,
    /// Where the figures for capacity and free come from, for example `VK_EXT_memory_budget`.
    pub source: &'static str,
}

impl MemoryReading {
    /// The memory as the line is drawn from it, and the margin with the limit in it. What slots hold for themselves
    /// once all are open (`overhead`) is nobody's to promise: it counts as used by others, whether they are open yet or
    /// not, and comes off the limit.
    pub fn for_the_line(&self, overhead: Bytes, margin: Margin) -> (Memory, Margin) {
        let held = self.ours.min(overhead);
        let (free, ours) = (self.free - (overhead - held), self.ours - held);
        let memory = Memory { capacity: self.capacity, free, ours, resident: self.resident };
        let limits = self.limit.map(|limit| limit - overhead).into_iter().chain(margin.limit);
        (memory, Margin { limit: limits.min(), ..margin })
    }
}

/// A device that can be opened.
pub trait Device: Send + Sync {
    /// What does not change.
    fn facts(&self) -> &DeviceFacts;

    /// Reads its memory again. One thread of each orchestrator does nothing else, so that a driver which takes long, or
    /// never answers, holds up nobody; of a device that [answers at once](Device::answers_at_once), whoever wants to know.
    fn memory(&self) -> MemoryReading;

    /// Whether it is opened, and tells its memory, within microseconds, whatever happens: then no thread is started for that.
    fn answers_at_once(&self) -> bool {
        false
    }

    /// Bytes that its slots hold for themselves while all are open, such as staging buffers, and what [`Device::fetch`]
    /// takes. They are part of
    /// [`MemoryReading::ours`], and no task may be promised them.
    fn overhead(&self) -> Bytes {
        Bytes::ZERO
    }

    /// How many of its slots are used at once to begin with, if how many are best is to be measured; `None` always uses
    /// all of them.
    fn width_first(&self) -> Option<usize> {
        None
    }

    /// Where its bytes are shared with other orchestrators, of this process and others; `None` if they are not.
    fn book(&self) -> Option<&crate::book::Place> {
        None
    }

    /// Opens one worker's way to it. Called on the worker's own thread.
    ///
    /// # Errors
    /// [`Fault::DeviceLost`] if it cannot be opened; [`Fault::OutOfMemory`] if there is no room even for that.
    fn open_backend(&self) -> Result<Box<dyn Backend>, Fault>;

    /// Copies bytes out of a buffer of this device, from any thread and without a slot: a value moves to another device
    /// this way. Comes after all work that was handed over before; work that was only recorded is not seen, and what is
    /// written meanwhile may or may not be. One at a time on a device: others wait for their turn.
    ///
    /// # Errors
    /// As [`Backend::read`].
    fn fetch(&self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault>;

    /// Brings a lost device back. Buffers made before are gone.
    ///
    /// # Errors
    /// [`Fault::DeviceLost`] if it stays away.
    fn reopen(&self) -> Result<(), Fault>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_the_same_whether_slots_are_open_yet_or_not() {
        let (capacity, overhead, tasks) = (Bytes(1_000), Bytes(100), Bytes(300));
        let line = |open: Bytes, tasks: Bytes| {
            let ours = open + tasks;
            let free = capacity - ours;
            let reading = MemoryReading { capacity, free, limit: None, ours, resident: None, source: "test" };
            let (memory, margin) = reading.for_the_line(overhead, Margin { share: 1.0, limit: None });
            margin.line(memory)
        };
        for open in [Bytes::ZERO, Bytes(50), overhead] {
            assert_eq!((line(open, Bytes::ZERO), line(open, tasks)), (Bytes(900), Bytes(900)), "{open} open");
        }
    }
}
