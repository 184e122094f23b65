//! Settle: leases back, what it cost into the profile, dependents on their way.
//! Never delivers a result; the host does, if the scheduler says that this run's counts.
//! Invariant: every lease of a run is back when `settle` returns.

use serde::Serialize;
use smallvec::SmallVec;
use std::fmt;

use super::state::{HeldSession, Phase, Run, RunId, TaskState};
use super::{Candidate, Host, Moved, Scheduler};
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

impl<H: Host> fmt::Debug for Outcome<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("result", &self.result)
            .field("measured", &self.measured)
            .finish_non_exhaustive()
    }
}

/// How a run of several tasks ended: first those that were done, then perhaps one that failed. Those behind it were not
/// started, and go back as if they had never been taken.
pub struct BatchOutcome<H: Host> {
    /// How many of its tasks were done.
    pub done: usize,
    /// Why the next one failed, and how long it ran.
    pub fault: Option<(Fault, Nanos)>,
    /// The session, if it can be used again.
    pub session: Option<H::Session>,
    /// What those that were done cost together.
    pub measured: Measured,
    /// The output of a single task that stays where it was made.
    pub value: Option<H::Value>,
    /// Copies that were made of values.
    pub moves: SmallVec<[Moved; 1]>,
    /// What was taken out of the session, if the run was to do that.
    pub state: Option<H::State>,
}

impl<H: Host> fmt::Debug for BatchOutcome<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchOutcome")
            .field("done", &self.done)
            .field("fault", &self.fault)
            .field("measured", &self.measured)
            .finish_non_exhaustive()
    }
}

impl<H: Host> From<Outcome<H>> for BatchOutcome<H> {
    fn from(Outcome { result, session, measured }: Outcome<H>) -> Self {
        let done = usize::from(result.is_ok());
        let fault = result.err().map(|fault| (fault, measured.run));
        Self { done, fault, session, measured, value: None, moves: SmallVec::new(), state: None }
    }
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
    /// Every rung on every device as it stood when the task started, if that was asked for; the one that ran comes first.
    #[serde(skip)]
    pub why: Vec<Candidate>,
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
    /// Ends a run of one task.
    pub fn settle(&mut self, now: Moment, run: RunId, outcome: Outcome<H>) -> Settled {
        let mut settled = Settled::Dropped;
        self.settle_batch(now, run, outcome.into(), |each| settled = each);
        settled
    }

    /// Ends a run. `each` hears, first to last, what becomes of the result of each task that was done.
    pub fn settle_batch(&mut self, now: Moment, run: RunId, outcome: BatchOutcome<H>, mut each: impl FnMut(Settled)) {
        let BatchOutcome { done, fault, session, measured, value, moves, state: held_state } = outcome;
        let Some(state) = self.runs.remove(run.0) else { return (0..done).for_each(|_| each(Settled::Dropped)) };
        if fault.is_some() {
            self.things_changed();
        }
        // What a held session did that is not believed cannot be done again on it.
        let is_wrong = matches!(fault, Some((Fault::WrongAnswer { .. }, _)));
        let is_distrusted = is_wrong || self.is_distrusted(&state);
        let session = if is_distrusted && state.hold.is_some() {
            self.discarded.sessions.extend(session);
            None
        } else {
            session
        };
        self.return_leases(run, &state, session, held_state);
        self.return_values(&state);
        let (finished, rest) = state.tasks.split_at(done.min(state.tasks.len()));
        let counted = if is_distrusted { 0 } else { self.still_run(finished, run) };
        self.learn_moves(state.device, &moves);
        self.settle_value(now, &state, value, counted > 0);
        let mut share = self.learn_batch(now, &state, measured, finished.len(), counted);
        for &task in finished {
            let is_live = self.is_run_by(task, run);
            each(match () {
                () if is_live && is_distrusted => self.do_again(now, &state, task),
                () if is_live => self.succeed(now, &state, task, share.measured),
                () => Settled::Dropped,
            });
            share.measured = Measured { open: None, bring: Nanos::ZERO, brought: 0, ..share.measured };
        }
        let not_started = match fault {
            Some((fault, took)) => {
                let (failed, behind) =
                    rest.split_first().map_or((state.head(), rest), |(first, behind)| (*first, behind));
                match self.is_run_by(failed, run) {
                    true => self.recover(now, &state, failed, fault, took),
                    false => self.blame_device(now, &state, &fault),
                }
                behind
            }
            None => rest,
        };
        for &task in not_started {
            self.put_back(now, run, &state, task);
        }
        if share.first_figures && !self.config.strategy.keeps_shares() {
            self.place_again(now, state.device);
        }
        if let Some(sequence) = state.hold {
            self.end_held(now, sequence);
            self.rise_if_there_is_room(now, sequence);
        }
        self.no_longer_overdue(now, &state);
        self.offer_memory_to_grants(now);
        self.offer_freed_slot(now, state.device);
    }

    /// What becomes of the output of a run that should stay.
    fn settle_value(&mut self, now: Moment, run: &Run, value: Option<H::Value>, counts: bool) {
        let Some(lease) = run.value_lease else { return self.discarded.values.extend(value) };
        match value {
            Some(content) if counts => self.keep_value(now, run, content, lease),
            unwanted => {
                self.give_back(lease);
                self.discarded.values.extend(unwanted);
            }
        }
    }

    /// How many of these tasks this run is still to give a result for: others have ended or moved.
    fn still_run(&self, tasks: &[TaskId], run: RunId) -> usize {
        tasks.iter().filter(|task| self.is_run_by(**task, run)).count()
    }

    pub(super) fn is_run_by(&self, task: TaskId, run: RunId) -> bool {
        self.tasks.get(task).is_some_and(|state| state.phase == Phase::Running { run })
    }

    /// What a run showed of its kind of task, its device and how many slots that should use.
    fn learn_batch(&mut self, now: Moment, run: &Run, measured: Measured, done: usize, counted: usize) -> Share {
        let each = Nanos(measured.run.0 / done.max(1) as u64);
        let measured = Measured { run: each, ..measured };
        if counted == 0 {
            return Share { measured, first_figures: false };
        }
        let first_figures = self.learn(now, run, measured);
        let on = self.device_mut(run.device);
        on.stats.completed(run.units, each, counted as u64);
        on.gave_a_result();
        self.measure_width(now, run, done as u64, measured.open.is_some());
        Share { measured, first_figures }
    }

    fn return_leases(&mut self, id: RunId, run: &Run, session: Option<H::Session>, state: Option<H::State>) {
        self.device_mut(run.device).ended(run.expected_end, run.tasks.len());
        match run.hold {
            Some(_) => self.return_held(id, run, run.session, session, state),
            None => self.return_session(run.device, run.epoch, run.session, session),
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

    /// Takes a task back that its slot did not start, as if it had never been taken.
    fn put_back(&mut self, now: Moment, id: RunId, run: &Run, task: TaskId) {
        let was_retry = self.tasks.get(task).is_some_and(TaskState::is_retry);
        let on = &mut self.devices[run.device.index()];
        on.stats.dispatched -= 1;
        on.stats.retried -= u64::from(was_retry);
        on.cache.counts.hits -= run.references.len() as u64;
        let (rung, device, hits) = (run.session.key.rung, run.device, run.references.len() as u16);
        self.note(now, || What::PutBack { task, rung, device, hits });
        if self.is_run_by(task, id)
            && let Some(state) = self.tasks.get_mut(task)
        {
            state.phase = Phase::Stranded;
            self.place(now, task);
        }
    }

    /// A run that nobody expected any more came back: its slot is of use again, and a spare one that stepped in is not.
    fn no_longer_overdue(&mut self, now: Moment, run: &Run) {
        if run.overdue {
            let on = self.device_mut(run.device);
            on.slots_overdue -= 1;
            self.wakes = self.wakes.with(run.device);
            self.place_stranded(now);
        }
    }

    fn explored(&mut self, run: &Run) {
        let key = run.session.key;
        let cell = self.workloads.cell_mut(key.workload, key.rung, run.device);
        cell.exploring = cell.exploring.saturating_sub(1);
    }

    fn succeed(&mut self, now: Moment, run: &Run, id: TaskId, measured: Measured) -> Settled {
        let Some(task) = self.tasks.get_mut(id) else { return Settled::Dropped };
        let (attempts, dependents) = (std::mem::take(&mut task.attempts), std::mem::take(&mut task.dependents));
        let why = std::mem::take(&mut task.why);
        let (ready_at, references) = (task.ready_at, task.spec.references.len() as u32);
        let (takes, was_asked_for) = (std::mem::take(&mut task.spec.takes), task.was_asked_for());
        if task.spec.holds {
            let spec = task.spec.clone();
            self.count_undrained(id, &spec);
            self.leave_hold(id, &spec);
        }
        let Some(task) = self.tasks.get_mut(id) else { return Settled::Dropped };
        if let Some(sequence) = task.spec.sequence {
            self.sequences.left(sequence);
        }
        if let (Some(set), planned) = (task.set, task.planned) {
            let took = measured.bring + measured.open.unwrap_or_default() + measured.run;
            self.ended_of_set(now, set, planned, Some(took));
        }
        self.tasks.discard(id);
        self.no_longer_makes(id);
        let (rung, device, units) = (run.session.key.rung, run.device, run.units);
        let workload = run.session.key.workload;
        let (bring, open) = (measured.bring, measured.open.unwrap_or_default());
        let peak = measured.peak.unwrap_or_default();
        self.note(now, || What::Ran { task: id, workload, rung, device, units, bring, open, run: measured.run, peak });
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
            why,
        };
        if !takes.is_empty() {
            self.no_longer_reads(now, id, &takes);
        }
        if !dependents.is_empty() {
            self.unblock(now, dependents);
        }
        if was_asked_for { Settled::Done(report) } else { Settled::Dropped }
    }

    /// Puts what a run cost into the profile. Says whether these were the first figures of their kind.
    fn learn(&mut self, now: Moment, run: &Run, measured: Measured) -> bool {
        let (key, units) = (run.session.key, run.units);
        let cell = self.workloads.cell_mut(key.workload, key.rung, run.device);
        let unmeasured = cell.cost.run(units).is_none();
        let is_news = cell.cost.learn_run_for_news(units, measured.run);
        cell.ran(units, measured.run);
        cell.ended(now, Nanos(run.estimate.run.0 / run.tasks.len() as u64), measured.run);
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
        if unmeasured {
            self.more_is_known();
        }
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
        let was_queued = matches!(state.phase, Phase::Queued { .. });
        if was_queued {
            self.leave_queue(task);
        }
        self.end_without_result(now, task, error);
        if was_queued {
            self.went_elsewhere(now);
        }
        true
    }
}

/// What each task of a run counts with.
struct Share {
    measured: Measured,
    first_figures: bool,
}
