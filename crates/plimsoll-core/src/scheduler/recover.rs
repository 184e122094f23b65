//! Recover: it failed. Was it memory, the device, or the work? Step down, move, or report.
//! Never gives up on a task while a rung and device are left that it has not tried.
//! Invariant: a task is attempted at most [`ATTEMPTS_MAX`] times, and its first cause is kept.

use super::settle::Measured;
use super::state::{Run, RunId};
use super::{Host, Scheduler};
use crate::error::{Attempt, Setback, TaskError};
use crate::event::{FaultKind, What};
use crate::health::Ailment;
use crate::profile::FailedAt;
use crate::{Fault, Moment, Nanos, Remedy, TaskId};

/// Attempts at one task. More would mean devices that come and go faster than the task runs.
pub(super) const ATTEMPTS_MAX: usize = 16;
/// How long an out-of-memory is remembered: other programs leave, and a learnt failure must not outlive its reason.
const FAILURE_KEPT: Nanos = Nanos::seconds(crate::profile::FAILURE_LIFE_S);

impl<H: Host> Scheduler<H> {
    pub(super) fn recover(&mut self, now: Moment, run: &Run, fault: Fault, measured: Measured) {
        let key = run.session.key();
        let (task, device) = (run.task, run.device);
        self.device_mut(device).stats.failed(measured.run);
        self.note(now, || What::AttemptFailed { task, rung: key.rung, device, fault: FaultKind::from(&fault) });
        match fault.remedy() {
            Remedy::Report => return self.end_without_result(now, task, reported(fault)),
            Remedy::StepDown => self.remember_failure(now, run, &fault),
            Remedy::Move => {}
        }
        let ailment = ailment(&fault);
        if let Some(state) = self.tasks.get_mut(task) {
            state.attempts.push(Attempt { rung: key.rung, device, setback: Setback::Failed(fault) });
            state.phase = super::state::Phase::Stranded;
        }
        if let Some(ailment) = ailment {
            self.quarantine_since(now, run, ailment);
        }
        self.try_again(now, task);
    }

    /// The task has ended or moved, but what its run shows of its device counts all the same.
    pub(super) fn blame_device(&mut self, now: Moment, run: &Run, fault: &Fault) {
        let Some(ailment) = ailment(fault) else { return };
        let (task, device, rung) = (run.task, run.device, run.session.key().rung);
        self.note(now, || What::AttemptFailed { task, rung, device, fault: FaultKind::from(fault) });
        self.quarantine_since(now, run, ailment);
    }

    /// A fault of a life that is already over says nothing of the one that began since.
    fn quarantine_since(&mut self, now: Moment, run: &Run, ailment: Ailment) {
        if run.epoch == self.device(run.device).epoch {
            self.quarantine(now, run.device, ailment, Some(run.task));
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

    /// Only out-of-memory is remembered; the smallest size at which it happened counts.
    fn remember_failure(&mut self, now: Moment, run: &Run, fault: &Fault) {
        let Some(state) = self.tasks.get(run.task) else { return };
        let units = state.spec.units;
        let key = run.session.key();
        let cell = self.workloads.cell_mut(key.workload, key.rung, run.device);
        let bytes = run.estimate.bytes;
        cell.cost.fail(FailedAt { units, bytes, until: now + FAILURE_KEPT }, now);
        if let Fault::OutOfMemory { moment, .. } = fault {
            self.note_failure(key, run.device, units, bytes, *moment);
        }
    }

    /// Ends a run that does not answer: its task moves, if it has not ended before; its slot and its leases stay taken
    /// until the run itself comes back.
    pub(super) fn give_up_waiting(&mut self, now: Moment, run: RunId) {
        let Some(under_way) = self.runs.get_mut(run.0) else { return };
        let before = under_way.clone();
        under_way.overdue = true;
        under_way.abandoned = true;
        self.device_mut(before.device).slots_overdue += usize::from(before.session.is_own());
        if before.abandoned {
            return self.quarantine(now, before.device, Ailment::Stalled, Some(before.task));
        }
        let after = now.since(before.started_at);
        self.recover(now, &before, Fault::Stalled { after }, Measured::default());
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
