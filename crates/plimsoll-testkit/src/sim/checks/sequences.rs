//! Checks, from events alone, that the tasks of a sequence stay on one device as long as it is well and takes them.
//! Never asks the scheduler where a sequence is at home: that is the point.

use plimsoll_core::event::{FaultKind, What};
use plimsoll_core::{DeviceId, DeviceSet, Quality, SequenceId, TaskId};
use rustc_hash::FxHashMap;

/// What was seen of sequences and devices so far.
pub(super) struct SequenceWatch {
    members: FxHashMap<TaskId, Member>,
    seen: FxHashMap<SequenceId, Seen>,
    devices: Vec<Trouble>,
}

struct Member {
    sequence: SequenceId,
    /// Where it failed itself: it need not go there again.
    failed_on: DeviceSet,
    /// The quality of the rung that it was placed for last.
    quality: Option<Quality>,
}

#[derive(Default)]
struct Seen {
    unsettled: usize,
    last: Option<Placed>,
}

/// Where a task was placed.
#[derive(Copy, Clone)]
struct Placed {
    device: DeviceId,
    /// How much trouble the device had had by then.
    faults: u64,
    quality: Option<Quality>,
}

#[derive(Clone, Default)]
struct Trouble {
    /// Faults and quarantines: each is a reason to leave.
    faults: u64,
    /// Others took memory from it, or it ran out of memory once: it may refuse one task and take the next, which
    /// has nowhere else to go.
    refuses: bool,
}

impl SequenceWatch {
    pub(super) fn new(devices: usize) -> Self {
        let devices = vec![Trouble::default(); devices];
        Self { members: FxHashMap::default(), seen: FxHashMap::default(), devices }
    }

    /// Somebody outside holds memory of this device, or it is known that it ran out of memory in an earlier life.
    pub(super) fn expect_refusals(&mut self, device: DeviceId) {
        self.devices[device.index()].refuses = true;
    }

    /// A task of a sequence was taken in.
    pub(super) fn joined(&mut self, task: TaskId, sequence: SequenceId) {
        self.members.insert(task, Member { sequence, failed_on: DeviceSet::NONE, quality: None });
    }

    /// Something happened on this device because of which it may refuse a task that it would have taken before.
    pub(super) fn trouble(&mut self, device: DeviceId) {
        self.devices[device.index()].faults += 1;
    }

    /// A task is about to be placed for a rung of this quality.
    pub(super) fn note_quality(&mut self, task: TaskId, quality: Quality) {
        if let Some(member) = self.members.get_mut(&task) {
            member.quality = Some(quality);
        }
    }

    /// What happened, in order.
    pub(super) fn hear(&mut self, what: &What) -> Result<(), String> {
        match *what {
            What::Submitted { task, .. } => {
                if let Some(seen) = self.sequence_of(task) {
                    seen.unsettled += 1;
                }
            }
            // Who takes a task over places it anew.
            What::Placed { task, device, .. } => return self.placed(task, device),
            What::Ended { task, .. } => self.ended(task),
            What::AttemptFailed { task, device, fault, .. } => {
                self.devices[device.index()].faults += 1;
                self.devices[device.index()].refuses |= matches!(fault, FaultKind::OutOfMemory(_));
                if let Some(member) = self.members.get_mut(&task) {
                    member.failed_on = member.failed_on.with(device);
                }
            }
            What::Quarantined { device, .. } | What::Gone { device } => self.devices[device.index()].faults += 1,
            What::LineMoved { device, .. } => self.devices[device.index()].refuses = true,
            _ => {}
        }
        Ok(())
    }

    fn sequence_of(&mut self, task: TaskId) -> Option<&mut Seen> {
        self.members.get(&task).map(|member| self.seen.entry(member.sequence).or_default())
    }

    fn placed(&mut self, task: TaskId, device: DeviceId) -> Result<(), String> {
        let Some(&Member { failed_on, quality, .. }) = self.members.get(&task) else { return Ok(()) };
        let placed = Placed { device, faults: self.devices[device.index()].faults, quality };
        let left = self.sequence_of(task).and_then(|seen| seen.last.replace(placed));
        let broken = left.filter(|home| {
            let trouble = &self.devices[home.device.index()];
            let may_leave = trouble.faults != home.faults || trouble.refuses || failed_on.contains(home.device);
            // A better answer elsewhere is worth leaving for.
            home.device != device && !may_leave && home.quality == quality
        });
        match broken {
            None => Ok(()),
            Some(Placed { device: home, .. }) => {
                Err(format!("sequence: {task} went to {device} although its sequence was well on {home}"))
            }
        }
    }

    fn ended(&mut self, task: TaskId) {
        let Some(Member { sequence, .. }) = self.members.remove(&task) else { return };
        if let Some(seen) = self.seen.get_mut(&sequence) {
            seen.unsettled -= 1;
            if seen.unsettled == 0 {
                self.seen.remove(&sequence);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::{Ailment, Moment, WorkloadId};

    use super::*;

    const TASKS: [TaskId; 2] = [TaskId(1), TaskId(2)];

    fn watch() -> SequenceWatch {
        let mut watch = SequenceWatch::new(2);
        for task in TASKS {
            watch.joined(task, SequenceId(9));
            watch.hear(&What::Submitted { task, workload: WorkloadId(0), units: 1 }).unwrap();
        }
        watch
    }

    fn placed(watch: &mut SequenceWatch, task: TaskId, device: u16) -> Result<(), String> {
        watch.hear(&What::Placed { task, rung: "r", device: DeviceId(device), finish: Moment(0) })
    }

    #[test]
    fn a_sequence_that_leaves_a_device_without_a_reason_is_caught() {
        let mut watch = watch();
        placed(&mut watch, TASKS[0], 0).unwrap();
        assert!(placed(&mut watch, TASKS[1], 1).is_err());
    }

    #[test]
    fn a_sequence_that_leaves_an_ill_device_is_not() {
        let mut watch = watch();
        placed(&mut watch, TASKS[0], 0).unwrap();
        watch.hear(&What::Quarantined { device: DeviceId(0), ailment: Ailment::Lost }).unwrap();
        placed(&mut watch, TASKS[1], 1).unwrap();
        placed(&mut watch, TASKS[0], 1).unwrap();
        assert!(placed(&mut watch, TASKS[0], 0).is_err(), "it was well where it went");
    }
}
