//! Where each task is, as far as events told: queued at a device, running in a lane, or neither.
//! Never trusts their order: what one thread tells may be heard after what another told later.
//! Invariant: at most [`TASKS_MAX`] tasks are remembered; those beyond are drawn without what only memory could tell.

use std::collections::VecDeque;

use plimsoll_core::{Bytes, DeviceId, DeviceSet, Moment, Nanos, TaskId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Tasks remembered: sixteen times what an orchestrator takes in unless told otherwise, about 30 MB.
pub(super) const TASKS_MAX: usize = 1 << 18;
/// Ended tasks remembered, so that an event heard late brings none back: many more than there are threads to be late.
const ENDED_MAX: usize = 4096;

/// An attempt that started.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Run {
    pub(super) device: DeviceId,
    pub(super) lane: Option<usize>,
    pub(super) at: Moment,
    pub(super) rung: &'static str,
    pub(super) waited: Nanos,
    pub(super) bytes: Bytes,
    pub(super) warm: bool,
    pub(super) hits: u16,
    pub(super) misses: u16,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Place {
    Queued {
        device: DeviceId,
        at: Moment,
    },
    Running(Run),
    /// Its last attempt failed then, and it has not been placed again.
    Between {
        at: Moment,
    },
}

pub(super) struct Whereabouts {
    tasks: FxHashMap<TaskId, Place>,
    ended: FxHashSet<TaskId>,
    ended_in_order: VecDeque<TaskId>,
    /// Tasks queued at each device.
    depths: Vec<u64>,
}

impl Whereabouts {
    pub(super) fn new() -> Self {
        Self {
            tasks: FxHashMap::default(),
            ended: FxHashSet::default(),
            ended_in_order: VecDeque::new(),
            depths: vec![0; DeviceSet::LIMIT],
        }
    }

    /// Tasks queued at a device.
    pub(super) fn depth(&self, device: DeviceId) -> u64 {
        self.depths.get(device.index()).copied().unwrap_or(0)
    }

    /// A task was queued. Gives back the run that it had, which was never carried out.
    pub(super) fn queued(&mut self, task: TaskId, device: DeviceId, at: Moment) -> Option<Run> {
        let late = match self.tasks.get(&task) {
            Some(Place::Running(run)) => run.at >= at,
            Some(Place::Queued { at: since, .. } | Place::Between { at: since }) => *since > at,
            None => false,
        };
        if late || self.ended.contains(&task) {
            return None;
        }
        self.put(task, Place::Queued { device, at })
    }

    /// A task started. One that has ended already is not remembered, nor one for which there is no more room.
    pub(super) fn started(&mut self, task: TaskId, run: Run) -> Started {
        if self.ended.contains(&task) || (self.tasks.len() >= TASKS_MAX && !self.tasks.contains_key(&task)) {
            return Started::Forgotten;
        }
        Started::Remembered { before: self.put(task, Place::Running(run)) }
    }

    /// An attempt is over and the task goes on. Gives back its run.
    pub(super) fn attempt_over(&mut self, task: TaskId, at: Moment) -> Option<Run> {
        if !self.tasks.contains_key(&task) {
            return None;
        }
        self.put(task, Place::Between { at })
    }

    /// A task ended. Gives back the run that was under way.
    pub(super) fn ended(&mut self, task: TaskId) -> Option<Run> {
        if self.ended.insert(task) {
            self.ended_in_order.push_back(task);
        }
        if self.ended_in_order.len() > ENDED_MAX {
            let oldest = self.ended_in_order.pop_front();
            oldest.into_iter().for_each(|task| _ = self.ended.remove(&task));
        }
        let place = self.tasks.remove(&task)?;
        self.leave(place)
    }

    /// A device's queue was emptied: its tasks are placed anew, or wait for a device.
    pub(super) fn queue_emptied(&mut self, device: DeviceId, at: Moment) {
        for place in self.tasks.values_mut() {
            if matches!(place, Place::Queued { device: on, at: since } if *on == device && *since <= at) {
                *place = Place::Between { at };
                self.depths[device.index()] -= 1;
            }
        }
    }

    /// Every run under way, oldest first.
    pub(super) fn running(&self) -> Vec<(TaskId, Run)> {
        let runs = self.tasks.iter().filter_map(|(task, place)| match place {
            Place::Running(run) => Some((*task, *run)),
            _ => None,
        });
        let mut runs: Vec<_> = runs.collect();
        runs.sort_unstable_by_key(|(task, run)| (run.at, *task));
        runs
    }

    fn put(&mut self, task: TaskId, place: Place) -> Option<Run> {
        if self.tasks.len() >= TASKS_MAX && !self.tasks.contains_key(&task) {
            return None;
        }
        if let Place::Queued { device, .. } = place {
            self.depths[device.index()] += 1;
        }
        let before = self.tasks.insert(task, place)?;
        self.leave(before)
    }

    fn leave(&mut self, place: Place) -> Option<Run> {
        match place {
            Place::Queued { device, .. } => {
                self.depths[device.index()] -= 1;
                None
            }
            Place::Running(run) => Some(run),
            Place::Between { .. } => None,
        }
    }
}

/// What became of a task that started.
#[derive(Debug, PartialEq)]
pub(super) enum Started {
    /// It is known to run; this is the run it had before, which was never carried out.
    Remembered {
        before: Option<Run>,
    },
    Forgotten,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: TaskId = TaskId(1);
    const HERE: DeviceId = DeviceId(0);
    const THERE: DeviceId = DeviceId(1);

    fn run(at: u64) -> Run {
        let (waited, bytes) = (Nanos(1), Bytes(8));
        let (device, lane) = (HERE, Some(0));
        Run { device, lane, at: Moment(at), rung: "cpu", waited, bytes, warm: false, hits: 0, misses: 0 }
    }

    #[test]
    fn a_task_is_in_one_queue_at_a_time() {
        let mut tasks = Whereabouts::new();
        tasks.queued(TASK, HERE, Moment(1));
        tasks.queued(TASK, THERE, Moment(2));
        assert_eq!((tasks.depth(HERE), tasks.depth(THERE)), (0, 1));
        tasks.queue_emptied(THERE, Moment(3));
        assert_eq!(tasks.depth(THERE), 0);
        tasks.queued(TASK, HERE, Moment(3));
        assert_eq!(tasks.started(TASK, run(4)), Started::Remembered { before: None });
        assert_eq!((tasks.depth(HERE), tasks.running().len()), (0, 1));
        assert_eq!(tasks.ended(TASK), Some(run(4)));
    }

    #[test]
    fn a_run_that_was_put_back_is_given_back() {
        let mut tasks = Whereabouts::new();
        tasks.started(TASK, run(4));
        assert_eq!(tasks.queued(TASK, HERE, Moment(5)), Some(run(4)));
        assert_eq!((tasks.depth(HERE), tasks.running().len()), (1, 0));
    }

    #[test]
    fn what_is_heard_late_changes_nothing() {
        let mut tasks = Whereabouts::new();
        tasks.started(TASK, run(4));
        assert_eq!(tasks.queued(TASK, HERE, Moment(3)), None, "it runs since");
        assert_eq!((tasks.depth(HERE), tasks.running().len()), (0, 1));
        tasks.ended(TASK);
        assert_eq!(tasks.queued(TASK, HERE, Moment(9)), None, "it has ended");
        assert_eq!(tasks.started(TASK, run(4)), Started::Forgotten);
        assert_eq!((tasks.depth(HERE), tasks.running().len()), (0, 0));
    }

    #[test]
    fn only_the_last_that_ended_are_remembered() {
        let mut tasks = Whereabouts::new();
        (0..2 * ENDED_MAX as u64).for_each(|id| _ = tasks.ended(TaskId(id)));
        assert_eq!((tasks.ended.len(), tasks.ended_in_order.len()), (ENDED_MAX, ENDED_MAX));
    }
}
