//! Holds: sequences that own their session. Its state lasts from task to task, so it is neither shared nor evicted.
//! Never lets a task run on another session than the one its predecessors ran on, or on what that left behind.
//! Invariant: a sequence has one session at most, used by one task at a time, in the order of submission; what was done on
//! it since it was last drained is known until its owner has heard of a loss.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::state::{HeldSession, Phase, Run, RunId};
use super::take::SessionTurn;
use super::yielding::Yielded;
use super::{Host, Scheduler};
use crate::error::{Refusal, SubmitErrorKind, TaskError};
use crate::event::{End, What};
use crate::ledger::Holder;
use crate::task::TaskSpec;
use crate::{Bytes, DeviceId, DeviceSet, Footprint, Ladder, Moment, Rung, SequenceId, TaskId};

/// What was lost with a session: what its owner has to do again.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Undrained {
    /// The last task that drained it; none if none did.
    pub since: Option<TaskId>,
    /// Tasks that were done after that.
    pub tasks: u64,
}

/// Where the state of a sequence is.
pub(super) enum Place<H: Host> {
    /// There is none yet.
    Unopened,
    /// In a session on a device. `None` while a task uses it.
    Open { device: DeviceId, rung: &'static str, session: Option<(HeldSession, H::Session)> },
    /// In host memory, on its way from one rung to another.
    Suspended(H::State),
}

/// The session of a sequence for a run, and what was promised for it if it is open.
pub(super) type HeldTurn<H> = (Option<HeldSession>, SessionTurn<<H as Host>::Session, <H as Host>::State>);

pub(super) struct Hold<H: Host> {
    pub(super) place: Place<H>,
    /// Tasks that have not ended, first to last.
    tasks: VecDeque<TaskId>,
    undrained: Undrained,
    is_lost: bool,
    /// Rungs that are not used: their bytes were asked back.
    pub(super) yielded: Yielded,
    /// The task that takes the state out of the session, because its rung was recalled.
    pub(super) leaving: Option<TaskId>,
    /// The run that uses the session.
    user: Option<RunId>,
    /// The latest task: whatever has to be done to the session is done by its means.
    pub(super) latest: Option<(TaskSpec, H::Job)>,
}

impl<H: Host> Hold<H> {
    /// Which rung of its tasks' ladder the open session is on.
    pub(super) fn rung_in_use(&self, spec: &TaskSpec) -> Option<usize> {
        let Place::Open { rung, .. } = &self.place else { return None };
        spec.ladder.rungs().iter().position(|known| known.name == *rung)
    }
}

/// The sequences that own their session.
pub(super) struct Holds<H: Host>(FxHashMap<SequenceId, Hold<H>>);

impl<H: Host> Default for Holds<H> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<H: Host> Holds<H> {
    fn of(&self, spec: &TaskSpec) -> Option<&Hold<H>> {
        self.0.get(&spec.sequence?).filter(|_| spec.holds)
    }

    fn of_mut(&mut self, spec: &TaskSpec) -> Option<&mut Hold<H>> {
        self.0.get_mut(&spec.sequence?).filter(|_| spec.holds)
    }

    pub(super) fn get(&self, sequence: SequenceId) -> Option<&Hold<H>> {
        self.0.get(&sequence)
    }

    pub(super) fn get_mut(&mut self, sequence: SequenceId) -> Option<&mut Hold<H>> {
        self.0.get_mut(&sequence)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SequenceId, &Hold<H>)> {
        self.0.iter().map(|(sequence, hold)| (*sequence, hold))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sessions that are idle here hold a lease.
    pub(super) fn leases(&self) -> usize {
        self.0.values().filter(|hold| matches!(hold.place, Place::Open { session: Some(_), .. })).count()
    }
}

impl<H: Host> Scheduler<H> {
    /// From now on this sequence owns its session.
    pub fn hold(&mut self, sequence: SequenceId) {
        let empty = Hold {
            place: Place::Unopened,
            tasks: VecDeque::new(),
            undrained: Undrained::default(),
            is_lost: false,
            yielded: Yielded::default(),
            leaving: None,
            user: None,
            latest: None,
        };
        self.holds.0.entry(sequence).or_insert(empty);
    }

    /// What was done since the sequence was last drained.
    pub fn undrained(&self, sequence: SequenceId) -> Undrained {
        self.holds.0.get(&sequence).map(|hold| hold.undrained).unwrap_or_default()
    }

    /// The owner has heard that the session was lost: its next task opens a new one. Says what was lost.
    pub fn restart(&mut self, sequence: SequenceId) -> Undrained {
        let Some(hold) = self.holds.0.get_mut(&sequence).filter(|hold| hold.is_lost) else {
            return Undrained::default();
        };
        hold.is_lost = false;
        std::mem::take(&mut hold.undrained)
    }

    /// Closes the session of a sequence; tasks of it that have not ended are cancelled.
    pub fn close_hold(&mut self, now: Moment, sequence: SequenceId) {
        let Some(hold) = self.holds.0.get_mut(&sequence) else { return };
        hold.is_lost = true;
        for task in hold.tasks.clone() {
            self.stop(now, task, TaskError::Cancelled);
        }
        let Some(hold) = self.holds.0.remove(&sequence) else { return };
        self.discarded.jobs.extend(hold.latest.map(|(_, job)| job));
        match hold.place {
            Place::Open { session: Some((held, session)), .. } => {
                self.give_back(held.lease);
                self.discarded.sessions.push(session);
                self.memory_freed(now);
            }
            Place::Suspended(state) => self.discarded.states.push(state),
            _ => {}
        }
    }

    /// Asks the session of a sequence to step down to this rung of its tasks' ladder, or below. It does before the next
    /// task of the sequence starts: what it holds goes with it through host memory.
    ///
    /// Says whether there is a lower rung to step down to.
    pub fn recall_hold(&mut self, now: Moment, sequence: SequenceId, to: &'static str) -> bool {
        let Some(hold) = self.holds.0.get_mut(&sequence) else { return false };
        let Some((spec, _)) = &hold.latest else { return false };
        let Some(rung) = spec.ladder.rungs().iter().position(|rung| rung.name == to) else { return false };
        hold.yielded.by_owner = hold.yielded.by_owner.max(rung);
        self.move_down(now, sequence)
    }

    /// Has the session of a sequence leave its rung if that was asked back.
    pub(super) fn move_down(&mut self, now: Moment, sequence: SequenceId) -> bool {
        let Some(hold) = self.holds.get(sequence) else { return false };
        let Some((spec, _)) = &hold.latest else { return false };
        match &hold.place {
            Place::Open { .. } if hold.rung_in_use(spec).is_none_or(|at| at >= hold.yielded.best()) => {}
            Place::Open { .. } => self.leave_rung(now, sequence),
            _ => self.choose_again_for_held(now, sequence),
        }
        true
    }

    /// Takes the state out of the session of a sequence before its next task starts.
    pub(super) fn leave_rung(&mut self, now: Moment, sequence: SequenceId) {
        // One that is lost, or being closed, has nothing to take out: a task that did so would be left over.
        let may_leave = |hold: &&Hold<H>| hold.leaving.is_none() && !hold.is_lost;
        let Some(hold) = self.holds.get(sequence).filter(may_leave) else { return };
        let (Some((spec, job)), Place::Open { device, rung, .. }) = (&hold.latest, &hold.place) else { return };
        let leave = TaskSpec {
            ladder: without_bytes(&spec.ladder),
            devices: DeviceSet::only(*device),
            rung: Some(rung),
            references: Default::default(),
            takes: Default::default(),
            after: Default::default(),
            deadline: None,
            drains: false,
            ..spec.clone()
        };
        let job = job.clone();
        self.enter_leave(now, sequence, leave, job);
    }

    /// The task that would open the session of a sequence may be queued for a rung that was asked back since.
    fn choose_again_for_held(&mut self, now: Moment, sequence: SequenceId) {
        let tasks = self.holds.0.get(&sequence).map(|hold| hold.tasks.clone()).unwrap_or_default();
        for task in tasks {
            if self.tasks.get(task).is_some_and(|state| matches!(state.phase, Phase::Queued { .. })) {
                self.leave_queue(task);
                self.place(now, task);
            }
        }
    }

    /// Puts the task that takes the state out before all tasks of the sequence that have not started.
    fn enter_leave(&mut self, now: Moment, sequence: SequenceId, spec: TaskSpec, job: H::Job) {
        let leave = self.enter_leaving(now, spec, job);
        let Some(hold) = self.holds.0.get_mut(&sequence) else { return };
        hold.leaving = Some(leave);
        let tasks: Vec<TaskId> = hold.tasks.iter().copied().collect();
        let is_running =
            |task: &TaskId| self.tasks.get(*task).is_some_and(|state| matches!(state.phase, Phase::Running { .. }));
        let (running, waiting): (Vec<TaskId>, Vec<TaskId>) = tasks.into_iter().partition(is_running);
        if let Some(first) = waiting.first().copied() {
            self.leave_queue(first);
            self.block(first, leave);
        }
        for task in running {
            self.block(leave, task);
        }
        if let Some(hold) = self.holds.0.get_mut(&sequence) {
            let at = hold.tasks.len() - waiting.len();
            hold.tasks.insert(at, leave);
        }
        self.start_if_ready(now, leave);
    }

    /// Ends a task that was to take the state out of a session which is not there any more: the task that it waited for was
    /// the first on it, and opened another instead. Those that wait for it go on. Says whether it did.
    pub(super) fn has_nothing_to_leave(&mut self, now: Moment, task: TaskId) -> bool {
        let Some(state) = self.tasks.get(task).filter(|state| state.leaves) else { return false };
        let is_there = self.holds.of(&state.spec).is_some_and(|hold| match &hold.place {
            Place::Open { device, rung, .. } => state.spec.devices.contains(*device) && state.spec.rung == Some(*rung),
            _ => false,
        });
        if is_there {
            return false;
        }
        let Some(state) = self.tasks.remove(task) else { return false };
        self.leave_hold(task, &state.spec);
        if let Some(sequence) = state.spec.sequence {
            self.sequences.left(sequence);
        }
        self.note(now, || What::Ended { task, end: End::Done });
        self.discarded.jobs.push(state.job);
        self.unblock(now, state.dependents);
        true
    }

    /// One more thing that a task waits for.
    fn block(&mut self, task: TaskId, on: TaskId) {
        if let Some(before) = self.tasks.get_mut(on) {
            before.dependents.push(task);
        }
        if let Some(state) = self.tasks.get_mut(task) {
            state.phase = Phase::Blocked;
            state.blockers += 1;
        }
    }

    /// Whether a task of a held sequence may be taken in.
    pub(super) fn may_join(&self, spec: &TaskSpec) -> Result<(), SubmitErrorKind> {
        let Some(sequence) = spec.sequence.filter(|_| spec.holds) else { return Ok(()) };
        match self.holds.0.get(&sequence) {
            None => Err(SubmitErrorKind::NotHeld { sequence }),
            Some(hold) if hold.is_lost => Err(SubmitErrorKind::SessionLost { undrained: hold.undrained.tasks }),
            Some(_) => Ok(()),
        }
    }

    /// A task of a held sequence was taken in: it waits for the one before it.
    pub(super) fn join_hold(&mut self, task: TaskId) {
        let Some(state) = self.tasks.get(task).filter(|state| state.spec.holds) else { return };
        let (spec, job) = (state.spec.clone(), state.job.clone());
        let Some(hold) = self.holds.of_mut(&spec) else { return };
        let before = hold.tasks.back().copied();
        hold.tasks.push_back(task);
        self.discarded.jobs.extend(hold.latest.replace((spec, job)).map(|(_, job)| job));
        if let Some(before) = before {
            self.block(task, before);
        }
    }

    /// A task of a held sequence has ended.
    pub(super) fn leave_hold(&mut self, task: TaskId, spec: &TaskSpec) {
        let Some(hold) = self.holds.of_mut(spec) else { return };
        hold.tasks.retain(|other| *other != task);
        if hold.leaving == Some(task) {
            hold.leaving = None;
        }
    }

    /// Where a task of a held sequence may run: where its session is, or on a rung that was not asked back.
    pub(super) fn may_hold(&self, spec: &TaskSpec, at: usize, device: DeviceId) -> Result<(), Refusal> {
        let Some(hold) = self.holds.of(spec) else { return Ok(()) };
        match &hold.place {
            Place::Open { device: home, rung, .. } if *home != device || *rung != spec.ladder.rungs()[at].name => {
                Err(Refusal::SessionElsewhere)
            }
            Place::Open { .. } => Ok(()),
            _ if at < hold.yielded.best() => Err(Refusal::Recalled),
            _ => Ok(()),
        }
    }

    /// Whether the session of a task's sequence is open: then it needs none.
    pub(super) fn is_held_open(&self, spec: &TaskSpec) -> bool {
        self.holds.of(spec).is_some_and(|hold| matches!(hold.place, Place::Open { .. }))
    }

    /// Whether a run uses the session of a task's sequence.
    pub(super) fn is_held_in_use(&self, spec: &TaskSpec) -> bool {
        self.holds.of(spec).is_some_and(|hold| hold.user.is_some())
    }

    /// A run uses the session of its sequence. Says whether there was anything in it before.
    pub(super) fn uses_held(&mut self, run: RunId, sequence: Option<SequenceId>) {
        if let Some(hold) = sequence.and_then(|sequence| self.holds.0.get_mut(&sequence)) {
            hold.user = Some(run);
        }
    }

    /// A run does not come back with the session of its sequence.
    pub(super) fn give_up_held(&mut self, id: RunId, run: &Run) {
        let hold = run.hold.and_then(|sequence| self.holds.0.get_mut(&sequence));
        if let Some(hold) = hold.filter(|hold| hold.user == Some(id)) {
            hold.user = None;
            hold.place = Place::Unopened;
            hold.is_lost |= run.had_state;
        }
    }

    /// The session of a task's sequence for a run; `None` if one has to be opened as for any task.
    pub(super) fn take_held(&mut self, spec: &TaskSpec, rung: &Rung, device: DeviceId) -> Option<HeldTurn<H>> {
        let hold = self.holds.of_mut(spec)?;
        let place = std::mem::replace(&mut hold.place, Place::Open { device, rung: rung.name, session: None });
        match place {
            Place::Open { session, .. } => session.map(|(held, session)| (Some(held), SessionTurn::Warm(session))),
            Place::Suspended(state) => Some((None, SessionTurn::Resume(rung.clone(), state))),
            Place::Unopened => Some((None, SessionTurn::Open(rung.clone()))),
        }
    }

    /// A run of a held sequence gives its session back. Without it, what it held is lost, unless it was taken out.
    pub(super) fn return_held(
        &mut self,
        id: RunId,
        run: &Run,
        held: HeldSession,
        session: Option<H::Session>,
        state: Option<H::State>,
    ) {
        let epoch = self.device(run.device).epoch;
        let Some(sequence) = run.hold else { return };
        self.wakes = self.wakes.with(run.device);
        let hold = self.holds.0.get_mut(&sequence).filter(|hold| hold.user == Some(id));
        let Some(hold) = hold else {
            // It was given up on, or closed meanwhile.
            self.discarded.states.extend(state);
            self.discarded.sessions.extend(session);
            self.give_back(held.lease);
            return;
        };
        hold.user = None;
        if let Some(state) = state {
            hold.place = Place::Suspended(state);
            self.discarded.sessions.extend(session);
            return self.give_back(held.lease);
        }
        match session {
            Some(session) if epoch == run.epoch && !hold.is_lost => {
                let (device, rung) = (run.device, held.key.rung);
                self.ledger.passes_to(held.lease, Holder::Hold);
                hold.place = Place::Open { device, rung, session: Some((held, session)) };
            }
            unusable => {
                // One that was never opened has lost nothing: its first task may try elsewhere.
                hold.is_lost |= run.had_state;
                hold.place = Place::Unopened;
                self.discarded.sessions.extend(unusable);
                self.give_back(held.lease);
            }
        }
    }

    /// A task of a held sequence gave a result that counts.
    pub(super) fn count_undrained(&mut self, task: TaskId, spec: &TaskSpec) {
        let Some(hold) = self.holds.of_mut(spec).filter(|hold| hold.leaving != Some(task)) else { return };
        match spec.drains {
            true => hold.undrained = Undrained { since: Some(task), tasks: 0 },
            false => hold.undrained.tasks += 1,
        }
    }

    /// Why a task of a held sequence cannot go on: what it would have continued is gone.
    pub(super) fn session_lost(&self, task: TaskId) -> Option<TaskError> {
        let spec = &self.tasks.get(task)?.spec;
        let hold = self.holds.of(spec).filter(|hold| hold.is_lost)?;
        let Undrained { since, tasks } = hold.undrained;
        Some(TaskError::SessionLost { since, undrained: tasks })
    }

    /// Sessions on a device are lost with it. Tasks that would have continued them end with what was not drained.
    pub(super) fn lose_holds(&mut self, now: Moment, device: DeviceId) {
        let lies_here = |hold: &Hold<H>| matches!(hold.place, Place::Open { device: home, .. } if home == device);
        let mut lost: Vec<SequenceId> =
            self.holds.0.iter().filter(|(_, hold)| lies_here(hold)).map(|(id, _)| *id).collect();
        // The order of a hash map never shows.
        lost.sort_unstable();
        for sequence in lost {
            let Some(hold) = self.holds.0.get_mut(&sequence) else { continue };
            let Place::Open { session, .. } = &mut hold.place else { continue };
            // One that a run uses is lost, or not, when that run ends.
            let Some((held, session)) = session.take() else { continue };
            hold.place = Place::Unopened;
            hold.is_lost = true;
            self.give_back(held.lease);
            self.discarded.sessions.push(session);
            self.end_held(now, sequence);
        }
    }

    /// Ends the tasks of a sequence whose session is lost, but for one that still runs.
    pub(super) fn end_held(&mut self, now: Moment, sequence: SequenceId) {
        let tasks = self.holds.0.get(&sequence).map(|hold| hold.tasks.clone()).unwrap_or_default();
        for task in tasks {
            let is_running = self.tasks.get(task).is_some_and(|state| matches!(state.phase, Phase::Running { .. }));
            if let Some(error) = self.session_lost(task).filter(|_| !is_running) {
                self.stop(now, task, error);
            }
        }
    }

    /// Whether the session of a sequence is lost and its owner has not yet been told.
    pub fn is_hold_lost(&self, sequence: SequenceId) -> bool {
        self.holds.0.get(&sequence).is_some_and(|hold| hold.is_lost)
    }
}

/// The same rungs. Whoever only takes out what a session holds needs no memory beside it: it must never wait for the very
/// bytes that it is to give back.
fn without_bytes(ladder: &Ladder) -> Ladder {
    let none = |rung: &Rung| Rung { footprint: Footprint::default(), value: Bytes::ZERO, ..rung.clone() };
    Ladder::from(ladder.rungs().iter().map(none).collect::<Vec<_>>())
}
