//! Checks, from events alone, that the tasks of a sequence stay on one device as long as it is well and takes them.
//! Never asks the scheduler where a sequence is at home: that is the point.

use plimsoll_core::event::{FaultKind, What};
use plimsoll_core::{DeviceId, DeviceSet, SequenceId, TaskId};
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
}

#[derive(Default)]
struct Seen {
    unsettled: usize,
    /// Where its last task was placed, and how much trouble that device had had by then.
    last: Option<(DeviceId, u64)>,
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
        self.members.insert(task, Member { sequence, failed_on: DeviceSet::NONE });
    }

    /// Something happened on this device because of which it may refuse a task that it would have taken before.
    pub(super) fn trouble(&mut self, device: DeviceId) {
        self.devices[device.index()].faults += 1;
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
        let faults = self.devices[device.index()].faults;
        let failed_on = self.members.get(&task).map_or(DeviceSet::NONE, |member| member.failed_on);
        let left = self.sequence_of(task).and_then(|seen| seen.last.replace((device, faults)));
        let broken = left.filter(|(home, faults)| {
            let trouble = &self.devices[home.index()];
            let may_leave = trouble.faults != *faults || trouble.refuses || failed_on.contains(*home);
            *home != device && !may_leave
        });
        match broken {
            None => Ok(()),
            Some((home, _)) => {
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
