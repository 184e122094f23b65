//! Names of things, each its own type so that one cannot stand in for another.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A device, counted from 0 in the order in which the devices were opened.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceId(pub u16);

impl DeviceId {
    /// The device's place in a list of all devices.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}", self.0)
    }
}

/// A set of devices; at most [`DeviceSet::LIMIT`] of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceSet(u64);

impl DeviceSet {
    /// Devices one scheduler can hold: one bit each in a word. Larger machines run several schedulers.
    pub const LIMIT: usize = 64;
    /// Every device.
    pub const ALL: Self = Self(u64::MAX);
    /// No device.
    pub const NONE: Self = Self(0);

    /// Just this one.
    pub fn only(device: DeviceId) -> Self {
        Self::NONE.with(device)
    }

    /// The set and this one.
    #[must_use]
    pub fn with(self, device: DeviceId) -> Self {
        Self(self.0 | Self::bit(device))
    }

    /// The set without this one.
    #[must_use]
    pub fn without(self, device: DeviceId) -> Self {
        Self(self.0 & !Self::bit(device))
    }

    /// Whether this one is in the set.
    pub fn contains(self, device: DeviceId) -> bool {
        self.0 & Self::bit(device) != 0
    }

    /// Whether all of another set are in this one.
    pub fn contains_all(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// All that are in one of the two.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// A device beyond the limit is in no set: no scheduler has it.
    fn bit(device: DeviceId) -> u64 {
        1_u64.checked_shl(u32::from(device.0)).unwrap_or(0)
    }

    /// Whether nothing is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Default for DeviceSet {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromIterator<DeviceId> for DeviceSet {
    fn from_iter<I: IntoIterator<Item = DeviceId>>(devices: I) -> Self {
        devices.into_iter().fold(Self::NONE, Self::with)
    }
}

/// A workload registered with a scheduler.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkloadId(pub u32);

impl WorkloadId {
    /// No workload has this one.
    pub const NONE: Self = Self(u32::MAX);
}

/// A task: its scheduler, a place in that scheduler's table, and the generation of that place. So an old name never
/// means a new task, nor a task of one scheduler that of another.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u64);

impl TaskId {
    /// Places that a table can have: 22 bits of the name.
    pub(crate) const PLACES_MAX: usize = 1 << 22;
    /// Schedulers that can be told apart: 10 bits of the name.
    pub(crate) const OWNERS: u16 = 1 << 10;

    pub(crate) fn new(owner: u16, index: u32, generation: u32) -> Self {
        let owner = u64::from(owner % Self::OWNERS);
        Self(u64::from(generation) << 32 | owner << 22 | u64::from(index))
    }

    pub(crate) fn index(self) -> usize {
        (self.0 & 0x3f_ffff) as usize
    }

    pub(crate) fn owner(self) -> u16 {
        (self.0 >> 22 & 0x3ff) as u16
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}.{}", self.index(), self.generation())
    }
}

/// An output that stays where it was made: named by the task that makes it, so that it can be named before it is made.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ValueId(pub(crate) TaskId);

impl ValueId {
    /// What this task keeps, made or not.
    pub fn of(task: TaskId) -> Self {
        Self(task)
    }

    /// The task that first makes it.
    pub(crate) fn maker(self) -> TaskId {
        self.0
    }
}

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value {}.{}", self.0.index(), self.0.generation())
    }
}

/// A warm session on a device. Never used twice.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub u64);

/// Tasks that belong together, such as the frames of one film: they stay on one device as long as it is well.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SequenceId(pub u64);

/// The hash of some content (xxh3, 128 bits): equal keys are taken to be equal content.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentKey(pub u128);

impl fmt::Display for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", (self.0 >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_id_keeps_all_its_parts() {
        let last = TaskId::PLACES_MAX as u32 - 1;
        for (owner, index, generation) in [(0, 0, 0), (7, 5, 9), (TaskId::OWNERS - 1, last, u32::MAX)] {
            let id = TaskId::new(owner, index, generation);
            assert_eq!((id.owner(), id.index(), id.generation()), (owner, index as usize, generation));
        }
        assert_eq!(TaskId::new(TaskId::OWNERS, 1, 1), TaskId::new(0, 1, 1), "owners are counted round");
    }

    #[test]
    fn a_device_set_holds_what_was_put_in() {
        let set: DeviceSet = [DeviceId(0), DeviceId(63)].into_iter().collect();
        assert!(set.contains(DeviceId(0)) && set.contains(DeviceId(63)) && !set.contains(DeviceId(7)));
        assert!(!set.is_empty() && set.without(DeviceId(0)).contains(DeviceId(63)));
        assert!(set.without(DeviceId(0)).without(DeviceId(63)).is_empty());
        let beyond = DeviceId(64);
        assert!(!DeviceSet::ALL.contains(beyond) && DeviceSet::only(beyond).is_empty());
    }
}
