//! Settle: leases back, what it cost into the profile, dependents on their way.
//! Never delivers a result; the host does, if the scheduler says that this run's counts.
//! Invariant: every lease of a run is back when `settle` returns.

use serde::Serialize;

use super::state::{HeldSession, Holding, Phase, Run, RunId};
use super::{Host, Scheduler};
use crate::error::Attempt;
use crate::event::{End, What};
use crate::sessions::Warm;
use crate::{Bytes, DeviceId, Fault, Moment, Nanos, TaskId};

/// What a run measured of itself.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// To open its session, if it did.
    pub open: Option<Nanos>,
    /// To prepare references, all together.
    pub bring: Nanos,
    /// How many references it prepared.
    pub brought: u32,
    /// To run.
    pub run: Nanos,
    /// The most bytes it held, session and references included; `None` if it cannot tell.
    pub peak: Option<Bytes>,
}

/// How a run ended.
pub struct Outcome<H: Host> {
    /// Nothing, or why not.
    pub result: Result<(), Fault>,
    /// The session, if it can be used again.
    pub session: Option<H::Session>,
    /// What it cost.
    pub measured: Measured,
}

/// Where, how and at what cost a task was done.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The device that did it.
    pub device: DeviceId,
    /// The rung that did it.
    pub rung: &'static str,
    /// Attempts before that, each with its reason.
    #[serde(skip)]
    pub attempts: Vec<Attempt>,
    /// From being ready to being started for the last time.
    pub queued: Nanos,
    /// To prepare references.
    pub bring: Nanos,
    /// To open the session.
    pub open: Nanos,
    /// To run.
    pub run: Nanos,
    /// Bytes that were promised.
    pub bytes_predicted: Bytes,
    /// Bytes that were held at the most.
    pub bytes_peak: Option<Bytes>,
    /// References found prepared.
    pub reference_hits: u32,
    /// References that had to be prepared.
    pub reference_misses: u32,
}

/// What becomes of the run's result.
#[derive(Debug)]
pub enum Settled {
    /// It is the task's result.
    Done(Report),
    /// It is not: the task goes on elsewhere, or has already ended. If it ended now, that is in `drain_endings`.
    Dropped,
}

impl<H: Host> Scheduler<H> {
    /// Ends a run.
    pub fn settle(&mut self, now: Moment, run: RunId, outcome: Outcome<H>) -> Settled {
        let Some(state) = self.runs.remove(run.0) else { return Settled::Dropped };
        if outcome.result.is_err() {
            self.things_changed();
        }
        self.return_leases(&state, outcome.session);
        let settled = match outcome.result {
            Err(fault) if state.abandoned => {
                self.blame_device(now, &state, &fault);
                Settled::Dropped
            }
            _ if state.abandoned => Settled::Dropped,
            Ok(()) if self.is_distrusted(&state) => {
                self.do_again(now, &state);
                Settled::Dropped
            }
            Ok(()) => self.succeed(now, &state, outcome.measured),
            Err(fault) => {
                self.recover(now, &state, fault, outcome.measured);
                Settled::Dropped
            }
        };
        self.no_longer_overdue(now, &state);
        self.offer_freed_slot(now, state.device);
        settled
    }

    fn return_leases(&mut self, run: &Run, session: Option<H::Session>) {
        let on = &mut self.devices[run.device.index()];
        on.ended(run.expected_end, run.session.is_own());
        if let Holding::Own(held) = run.session {
            self.return_session(run.device, run.epoch, held, session);
        }
        self.give_back(run.lease);
        for key in &run.references {
            if let Some((prepared, lease)) = self.device_mut(run.device).cache.release(key, run.epoch) {
                self.give_back(lease);
                self.discarded.references.extend(prepared);
            }
        }
        if !run.references.is_empty() {
            self.trim_window(run.device);
        }
        if !run.estimate.measured {
            self.explored(run);
        }
    }

    /// A session that can be used again stays warm; otherwise its lease comes back.
    fn return_session(&mut self, device: DeviceId, epoch: u32, held: HeldSession, session: Option<H::Session>) {
        let last_used = self.next_use();
        let on = &mut self.devices[device.index()];
        if let Some(at) = on.sessions_busy.iter().position(|key| *key == held.key) {
            on.sessions_busy.swap_remove(at);
        }
        let HeldSession { id, key, bytes, lease } = held;
        let Some(session) = session else {
            self.things_changed();
            return self.give_back(lease);
        };
        let warm = Warm { id, key, bytes, lease, session, last_used };
        let closed = if on.epoch == epoch { on.sessions.put(warm) } else { Some(warm) };
        if let Some(closed) = closed {
            self.things_changed();
            self.give_back(closed.lease);
            self.discarded.sessions.push(closed.session);
        }
    }

    /// Takes a run back that its slot did not start, as if it had never been taken.
    pub fn put_back(&mut self, now: Moment, run: RunId) {
        let Some(state) = self.runs.remove(run.0) else { return };
        self.things_changed();
        self.return_leases(&state, None);
        self.take_back_counts(now, &state);
        if let Some(task) = self.tasks.get_mut(state.task).filter(|_| !state.abandoned) {
            task.phase = Phase::Stranded;
            self.place(now, state.task);
        }
        self.no_longer_overdue(now, &state);
    }

    /// What a run counted for when it was taken, as if it had never been.
    fn take_back_counts(&mut self, now: Moment, run: &Run) {
        let on = &mut self.devices[run.device.index()];
        on.stats.dispatched -= 1;
        on.stats.retried -= u64::from(run.is_retry);
        // Only runs whose references are all there stand behind another, and only those are put back.
        on.cache.counts.hits -= run.references.len() as u64;
        let (rung, hits) = (run.session.key().rung, run.references.len() as u16);
        self.note(now, || What::PutBack { task: run.task, rung, device: run.device, hits });
    }

    /// A run that nobody expected any more came back: its slot is of use again, and a spare one that stepped in is not.
    fn no_longer_overdue(&mut self, now: Moment, run: &Run) {
        if run.overdue {
            let on = self.device_mut(run.device);
            on.slots_overdue -= usize::from(run.session.is_own());
            self.wakes = self.wakes.with(run.device);
            self.place_stranded(now);
        }
    }

    fn explored(&mut self, run: &Run) {
        let key = run.session.key();
        let cell = self.workloads.cell_mut(key.workload, key.rung, run.device);
        cell.exploring = cell.exploring.saturating_sub(1);
    }

    fn succeed(&mut self, now: Moment, run: &Run, measured: Measured) -> Settled {
        let Some(task) = self.tasks.get_mut(run.task) else { return Settled::Dropped };
        let (attempts, dependents) = (std::mem::take(&mut task.attempts), std::mem::take(&mut task.dependents));
        let (units, ready_at, references) = (task.spec.units, task.ready_at, task.spec.references.len() as u32);
        if let Some(sequence) = task.spec.sequence {
            self.sequences.left(sequence);
        }
        self.tasks.discard(run.task);
        let (id, rung, device) = (run.task, run.session.key().rung, run.device);
        let first_figures = self.learn(now, run, units, measured);
        let on = self.device_mut(device);
        on.stats.completed(units, measured.run);
        on.gave_a_result();
        self.measure_width(now, run, units, measured.open.is_some());
        let (bring, open) = (measured.bring, measured.open.unwrap_or_default());
        let peak = measured.peak.unwrap_or_default();
        self.note(now, || What::Ran { task: id, rung, device, units, bring, open, run: measured.run, peak });
        self.note(now, || What::Ended { task: id, end: End::Done });
        let report = Report {
            device,
            rung,
            attempts,
            queued: run.started_at.since(ready_at),
            bring,
            open,
            run: measured.run,
            bytes_predicted: run.estimate.bytes,
            bytes_peak: measured.peak,
            reference_hits: references.saturating_sub(measured.brought),
            reference_misses: measured.brought,
        };
        self.unblock(now, dependents);
        if first_figures && !self.config.strategy.keeps_shares() {
            self.place_again(now, device);
        }
        Settled::Done(report)
    }

    /// Puts what a run cost into the profile. Says whether these were the first figures of their kind.
    fn learn(&mut self, now: Moment, run: &Run, units: u64, measured: Measured) -> bool {
        let key = run.session.key();
        let cell = self.workloads.cell_mut(key.workload, key.rung, run.device);
        let unmeasured = cell.cost.run(units).is_none();
        let is_news = cell.cost.learn_run(units, measured.run);
        cell.ran(units, measured.run);
        let mut is_another = unmeasured;
        if let Some(open) = measured.open {
            cell.cost.learn_open(open);
            is_another = true;
        }
        if let Some(each) = measured.bring.0.checked_div(u64::from(measured.brought)) {
            cell.cost.learn_reference(units, Nanos(each));
        }
        // A failure never hides a later success at its size.
        let refuted = cell.cost.succeeded(units, run.estimate.bytes);
        // Against what was declared, not what was predicted: runs under way at once all see the same excess.
        if let Some(peak) = measured.peak.filter(|peak| *peak > run.declared && run.declared > Bytes::ZERO) {
            let factor = peak.0 as f64 / run.declared.0 as f64;
            is_another |= factor > cell.bytes_factor;
            cell.bytes_factor = cell.bytes_factor.max(factor);
        }
        let first_figures = unmeasured && cell.exploring > 0;
        match (is_another || refuted, is_news) {
            (true, _) => self.things_changed(),
            (false, true) => self.costs_changed(key.workload),
            (false, false) => {}
        }
        if refuted {
            self.note_success(now, key, run.device, units, run.estimate.bytes);
        }
        first_figures
    }

    /// A slot and perhaps memory are free again.
    pub(super) fn offer_freed_slot(&mut self, now: Moment, device: DeviceId) {
        let on = self.device(device);
        if !on.queue.is_empty() && on.spec.slots > 1 {
            self.wakes = self.wakes.with(device);
        }
        self.wake_thieves(now, device);
    }

    /// Cancels a task in whatever state it is. Says whether it was still there.
    pub fn cancel(&mut self, now: Moment, task: TaskId) -> bool {
        self.stop(now, task, crate::TaskError::Cancelled)
    }

    /// Ends every task that has not ended, with this error.
    pub fn end_all(&mut self, now: Moment, error: &crate::TaskError) {
        self.end_those(now, error, |_| true);
    }

    /// Ends every task whose payload is one of those meant, with this error.
    pub fn end_those(&mut self, now: Moment, error: &crate::TaskError, meant: impl Fn(&H::Job) -> bool) {
        let is_meant = |task: &TaskId| self.tasks.get(*task).is_some_and(|state| meant(&state.job));
        let left: Vec<TaskId> = self.tasks.ids().filter(is_meant).collect();
        for task in left {
            self.stop(now, task, error.clone());
        }
    }

    /// Ends a task now. A run that is under way keeps its leases until it settles, but its result counts no more.
    pub(super) fn stop(&mut self, now: Moment, task: TaskId, error: crate::TaskError) -> bool {
        let Some(state) = self.tasks.get(task) else { return false };
        match state.phase {
            Phase::Queued { .. } => self.leave_queue(task),
            Phase::Running { run } => self.abandon(run),
            Phase::Blocked | Phase::Stranded => {}
        }
        self.end_without_result(now, task, error);
        true
    }

    pub(super) fn abandon(&mut self, run: RunId) {
        if let Some(run) = self.runs.get_mut(run.0) {
            run.abandoned = true;
        }
    }
}
