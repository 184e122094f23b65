//! Recover: it failed. Was it memory, the device, or the work? Step down, move, or report.
//! Never gives up on a task while a rung and device are left that it has not tried.
//! Invariant: a task is attempted at most [`ATTEMPTS_MAX`] times, and its first cause is kept.

use super::state::{Phase, Run, RunId};
use super::{Host, Scheduler};
use crate::error::{Attempt, Setback, TaskError};
use crate::event::{FaultKind, What};
use crate::health::Ailment;
use crate::{Fault, Moment, Nanos, Remedy, TaskId};
use smallvec::SmallVec;

/// Attempts at one task. More would mean devices that come and go faster than the task runs.
pub(super) const ATTEMPTS_MAX: usize = 16;

impl<H: Host> Scheduler<H> {
    pub(super) fn recover(&mut self, now: Moment, run: &Run, task: TaskId, fault: Fault, took: Nanos) {
        let (key, device) = (run.session.key, run.device);
        self.device_mut(device).stats.failed(took);
        self.note(now, || What::AttemptFailed { task, rung: key.rung, device, fault: FaultKind::from(&fault) });
        let is_news = match fault.remedy() {
            Remedy::Report => return self.end_without_result(now, task, reported(fault)),
            Remedy::StepDown => self.remember_failure(now, run, &fault),
            Remedy::Move => false,
        };
        let ailment = ailment(&fault);
        if let Fault::SourceLost { device, .. } = fault {
            self.source_lost(now, task, device);
        }
        if let Some(state) = self.tasks.get_mut(task) {
            state.attempts.push(Attempt { rung: key.rung, device, setback: Setback::Failed(fault) });
            state.phase = Phase::Stranded;
        }
        if let Some(ailment) = ailment {
            self.quarantine_since(now, run, task, ailment);
        }
        if let Some(lost) = self.session_lost(task) {
            return self.end_without_result(now, task, lost);
        }
        if is_news {
            // Those that are queued here were chosen for before it was known.
            self.place_again(now, device);
        }
        self.try_again(now, task);
    }

    /// The task has ended or moved, but what its run shows of its device counts all the same.
    pub(super) fn blame_device(&mut self, now: Moment, run: &Run, fault: &Fault) {
        let Some(ailment) = ailment(fault) else { return };
        let (task, device, rung) = (run.head(), run.device, run.session.key.rung);
        self.note(now, || What::AttemptFailed { task, rung, device, fault: FaultKind::from(fault) });
        self.quarantine_since(now, run, task, ailment);
    }

    /// A fault of a life that is already over says nothing of the one that began since.
    fn quarantine_since(&mut self, now: Moment, run: &Run, task: TaskId, ailment: Ailment) {
        if run.epoch == self.device(run.device).epoch {
            self.quarantine(now, run.device, ailment, Some(task));
        }
    }

    /// Chooses anew, unless the task has had all its attempts or wants no ladder.
    pub(super) fn try_again(&mut self, now: Moment, task: TaskId) {
        let Some(state) = self.tasks.get_mut(task) else { return };
        if state.attempts.len() < ATTEMPTS_MAX {
            return self.place(now, task);
        }
        let attempts = std::mem::take(&mut state.attempts);
        self.end_without_result(now, task, TaskError::Exhausted { attempts });
    }

    /// What is worth remembering for the next task: that memory ran out at this size, or that the device cannot do this
    /// rung. Nothing else is ever stored as out-of-memory. Says whether it was news.
    fn remember_failure(&mut self, now: Moment, run: &Run, fault: &Fault) -> bool {
        let (units, key) = (run.units, run.session.key);
        match fault {
            Fault::OutOfMemory { moment, .. } => {
                self.learn_ran_out(now, key, run.device, units, run.estimate.bytes, *moment)
            }
            Fault::Unsupported { detail } => self.learn_unsupported(now, key, run.device, detail),
            _ => false,
        }
    }

    /// Ends a run that does not answer: its tasks move, if they have not ended before; its slot and its leases stay taken
    /// until the run itself comes back.
    pub(super) fn give_up_waiting(&mut self, now: Moment, run: RunId) {
        let Some(under_way) = self.runs.get_mut(run.0) else { return };
        under_way.overdue = true;
        let under_way = under_way.clone();
        self.give_up_held(run, &under_way);
        self.device_mut(under_way.device).slots_overdue += 1;
        // A spare slot steps in.
        self.wakes = self.wakes.with(under_way.device);
        let left: SmallVec<[TaskId; 1]> =
            under_way.tasks.iter().filter(|task| self.is_run_by(**task, run)).copied().collect();
        let Some((&first, behind)) = left.split_first() else {
            self.quarantine(now, under_way.device, Ailment::Stalled, Some(under_way.head()));
            return self.end_held_by(now, &under_way);
        };
        let after = now.since(under_way.started_at);
        self.recover(now, &under_way, first, Fault::Stalled { after }, Nanos::ZERO);
        for &task in behind {
            if let Some(state) = self.tasks.get_mut(task) {
                state.phase = Phase::Stranded;
                self.place(now, task);
            }
        }
        self.end_held_by(now, &under_way);
    }

    /// The session that a run does not come back with is lost: whoever waits for it would wait for nothing.
    fn end_held_by(&mut self, now: Moment, run: &Run) {
        if let Some(sequence) = run.hold {
            self.end_held(now, sequence);
        }
    }
}

fn ailment(fault: &Fault) -> Option<Ailment> {
    match fault {
        Fault::DeviceLost { .. } => Some(Ailment::Lost),
        Fault::WrongAnswer { .. } => Some(Ailment::WrongAnswer),
        Fault::Stalled { .. } => Some(Ailment::Stalled),
        _ => None,
    }
}

fn reported(fault: Fault) -> TaskError {
    match fault {
        Fault::WorkFailed(cause) => TaskError::WorkFailed(cause),
        Fault::Panicked { message } => TaskError::Panicked { message },
        _ => TaskError::Cancelled,
    }
}
