//! Trust: after an out-of-memory a device must give its known answer before anything from it counts again; when it
//! answered wrongly, nothing counts that ran meanwhile.
//! Never runs the check: the host does, and says how it ended.
//! Invariant: between `suspect` and `cleared` a device starts nothing, and no result of it is accepted.

use super::state::{Phase, Run};
use super::{Host, Scheduler, Settled};
use crate::error::{Attempt, Setback};
use crate::event::{FaultKind, What};
use crate::health::Ailment;
use crate::{DeviceId, Moment, TaskId};

/// What is known against a device.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Trust {
    /// Checks under way.
    checks: u32,
    /// Results of runs that began in an earlier epoch than this one do not count.
    distrusted_before: u32,
}

impl Trust {
    pub(super) fn is_suspect(self) -> bool {
        self.checks > 0
    }

    /// A new epoch begins. What was suspect, or was quarantined for a wrong answer, has not been cleared.
    pub(super) fn start_epoch(&mut self, epoch: u32, wrong: bool) {
        if wrong || self.is_suspect() {
            self.distrusted_before = epoch;
        }
        self.checks = 0;
    }
}

/// A device that has yet to pass a check. Of a device that was quarantined since, it says nothing any more.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[must_use = "the device starts nothing before it is cleared or fails"]
pub struct Suspicion {
    device: DeviceId,
    epoch: u32,
}

impl<H: Host> Scheduler<H> {
    /// Memory ran out on this device: the host checks it now, and says how that ended with [`Scheduler::cleared`] or
    /// [`Scheduler::check_failed`].
    pub fn suspect(&mut self, device: DeviceId) -> Suspicion {
        let state = self.device_mut(device);
        state.trust.checks += 1;
        Suspicion { device, epoch: state.epoch }
    }

    /// Whether a check of this device is under way.
    pub fn is_suspect(&self, device: DeviceId) -> bool {
        self.device(device).trust.is_suspect()
    }

    /// The device gave its known answer.
    pub fn cleared(&mut self, suspicion: Suspicion) {
        let state = self.device_mut(suspicion.device);
        if state.epoch == suspicion.epoch {
            state.trust.checks = state.trust.checks.saturating_sub(1);
            self.wakes = self.wakes.with(suspicion.device);
        }
    }

    /// The device did not give its known answer: it is quarantined, whatever kept it from answering. One that is in
    /// quarantine already has to prove itself anyway.
    pub fn check_failed(&mut self, now: Moment, suspicion: Suspicion, ailment: Ailment) {
        if self.device(suspicion.device).epoch == suspicion.epoch {
            self.quarantine(now, suspicion.device, ailment, None);
            self.cleared(suspicion);
        }
    }

    /// Whether the result of this run must not be believed.
    pub(super) fn is_distrusted(&self, run: &Run) -> bool {
        let on = self.device(run.device);
        run.epoch < on.trust.distrusted_before || (run.epoch == on.epoch && on.trust.is_suspect())
    }

    /// A result that is not believed: the task is done again.
    pub(super) fn do_again(&mut self, now: Moment, run: &Run, task: TaskId) -> Settled {
        if let Some(lost) = self.session_lost(task) {
            self.end_without_result(now, task, lost);
        }
        let Some(state) = self.tasks.get_mut(task) else { return Settled::Dropped };
        let (device, rung) = (run.device, run.session.key.rung);
        state.attempts.push(Attempt { rung, device, setback: Setback::Distrusted });
        state.phase = Phase::Stranded;
        self.note(now, || What::AttemptFailed { task, rung, device, fault: FaultKind::Distrusted });
        self.try_again(now, task);
        Settled::Dropped
    }
}
