//! Take: a free slot asks what to start. Choosing what to start and promising its bytes are one step.
//! Never waits: what does not fit now is passed over, moved, or left for when memory comes back.
//! Invariant: nothing starts without its leases; a task is passed over at most [`BYPASS_MAX`] times.

use smallvec::{SmallVec, smallvec};
use std::fmt;

use super::choose::{Choice, Chosen, prepared_key};
use super::evict::{Discards, Needs};
use super::state::{HeldSession, Phase, Run, RunId, TaskState};
use super::{Estimate, Host, Scheduler, ValueTurn};
use crate::event::What;
use crate::residency::Presence;
use crate::task::{Priority, TaskSpec};
use crate::{Bytes, DeviceId, DeviceSet, Moment, Nanos, Quality, Rung, SessionId, TaskId, ValueId};

/// How far into its queue a slot looks for a task that fits, or whose references are already there.
pub(super) const LOOK: usize = 32;
/// How often a task may be passed over, by tasks of its own queue or stolen ones, before the device waits for it alone.
pub(super) const BYPASS_MAX: u16 = 64;
/// How many tasks at the end of another device's queue an idle slot looks at to steal one.
const STEAL_LOOK: usize = 16;

/// How long a task that was moved because it did not fit stays before it may be moved again. What each device costs
/// depends on who stands in its queue: without a pause two tasks could chase each other for ever.
const MOVE_PAUSE: Nanos = Nanos::millis(10);

/// A session for a run.
#[derive(Debug)]
pub enum SessionTurn<S, T> {
    /// Use this one.
    Warm(S),
    /// Open one for this rung.
    Open(Rung),
    /// Open one for this rung that goes on with what another held.
    Resume(Rung, T),
}

/// A reference for a run.
#[derive(Debug)]
pub enum ReferenceTurn<R> {
    /// Use this one.
    Ready(R),
    /// Prepare it, and tell the scheduler with `prepared` as soon as it is.
    Prepare,
}

/// What a slot should do, in order: discard, open, prepare, run, settle.
pub struct Assignment<H: Host> {
    /// To settle with.
    pub run: RunId,
    /// Which task.
    pub task: TaskId,
    /// Its payload.
    pub job: H::Job,
    /// Which rung of its ladder.
    pub rung: usize,
    /// Drop these first: the bytes are already promised to this run.
    pub discards: Discards<H>,
    /// The session.
    pub session: SessionTurn<H::Session, H::State>,
    /// Do not run the task: take what the session holds out of it.
    pub leaves: bool,
    /// The references, in the order of the task's.
    pub references: SmallVec<[ReferenceTurn<H::Prepared>; 1]>,
    /// The values, in the order of the task's.
    pub values: SmallVec<[ValueTurn<H::Value>; 1]>,
    /// The name of what it makes, if its output stays.
    pub value: ValueId,
    /// What it is expected to cost.
    pub estimate: Estimate,
}

impl<H: Host> fmt::Debug for Assignment<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assignment")
            .field("run", &self.run)
            .field("task", &self.task)
            .field("rung", &self.rung)
            .finish_non_exhaustive()
    }
}

/// A task that is to be run right after those that its run has already, on the same session.
#[derive(Debug)]
pub struct Behind<J> {
    /// Which task.
    pub task: TaskId,
    /// Its payload.
    pub job: J,
    /// How long it is expected to run.
    pub run: Nanos,
}

impl<H: Host> Scheduler<H> {
    /// The next assignment for a free slot of this device, or nothing for now.
    pub fn take(&mut self, now: Moment, device: DeviceId) -> Option<Assignment<H>> {
        if !self.may_start(device) || !self.device(device).has_free_slot() {
            return None;
        }
        match self.next_startable(now, device) {
            Next::Start(task) => self.start(now, task),
            Next::Starving => None,
            Next::Nothing => self.steal(now, device),
        }
    }

    fn may_start(&self, device: DeviceId) -> bool {
        self.device(device).health.is_well() && !self.is_suspect(device)
    }

    /// Another task for a run that was just taken, if the next one is of the same kind. For tasks so short that asking for
    /// each of them would cost more than running it.
    pub fn take_behind(&mut self, now: Moment, head: RunId) -> Option<Behind<H::Job>> {
        let device = self.runs.get(head.0)?.device;
        let task = self.first_in_time(now, device)?;
        let (ahead, state) = (self.runs.get(head.0)?, self.tasks.get(task)?);
        let Phase::Queued { estimate, rung, .. } = state.phase else { return None };
        if !self.may_start(device) || !self.is_of_a_kind(ahead, state) {
            return None;
        }
        // What keeps the run at a lower quality may not hold for those behind it.
        if self.better_fits(now, state, state.spec.ladder.rungs()[rung].quality) {
            return None;
        }
        self.dequeue(task);
        let run = self.runs.get_mut(head.0)?;
        let (ended, ends) = (run.expected_end, run.expected_end + estimate.run);
        run.tasks.push(task);
        run.expected_end = ends;
        run.estimate.run += estimate.run;
        let (hits, rung) = (run.references.len(), run.session.key.rung);
        let on = self.device_mut(device);
        on.stood_behind(ended, ends);
        on.cache.counts.hits += hits as u64;
        let job =
            self.is_under_way(now, task, head, rung, device, Warmth { warm: true, hits: hits as u16, misses: 0 })?;
        Some(Behind { task, job, run: estimate.run })
    }

    /// Whether a queued task can be run right after those of a run: on its session, with its references, in its memory.
    fn is_of_a_kind(&self, run: &Run, state: &TaskState<H::Job>) -> bool {
        let Phase::Queued { rung, estimate, .. } = state.phase else { return false };
        let (spec, rung) = (&state.spec, &state.spec.ladder.rungs()[rung]);
        let keys = spec.references.iter().map(|reference| prepared_key(spec, rung, reference.content));
        estimate.measured
            && super::choose::session_key(spec, rung) == run.session.key
            && spec.units == run.units
            // What is made or read in place has its own promises.
            && spec.takes.is_empty()
            && run.value_lease.is_none()
            && rung.value == Bytes::ZERO
            && run.hold.is_none()
            && !spec.holds
            && rung.footprint.task + self.excess(run.device, spec, rung) <= run.task_bytes
            && keys.eq(run.references.iter().copied())
            && self.references_on(run.device, spec, rung) == Presence::Ready
    }

    /// The first task of a queue; those before it whose deadline has passed end here.
    fn first_in_time(&mut self, now: Moment, device: DeviceId) -> Option<TaskId> {
        loop {
            let task = self.device(device).queue.nth(0)?;
            if !self.end_if_expired(now, task) {
                return Some(task);
            }
        }
    }

    /// The first task of the queue that fits now; one whose references are all there goes before others of its level.
    fn next_startable(&mut self, now: Moment, device: DeviceId) -> Next {
        let mut at = 0;
        let mut to_prepare = ToPrepare::default();
        for _ in 0..LOOK {
            let Some(task) = self.device(device).queue.nth(at) else { break };
            if self.end_if_expired(now, task) || self.raise_quality(now, task) {
                continue;
            }
            match self.startable(now, task, device) {
                Startable::Now => {
                    let (at, task) = to_prepare.before(self.level(task)).unwrap_or((at, task));
                    return self.pass_over(device, at, task);
                }
                Startable::AfterPreparing => {
                    to_prepare.add(self.level(task), at, task);
                    // Those whose references are there have gone first often enough.
                    if self.is_starving(device, task) {
                        break;
                    }
                }
                Startable::NotNow if self.move_if_sooner(now, task, device) => continue,
                Startable::NotNow if self.is_starving(device, task) => {
                    return to_prepare.first().map_or(Next::Starving, |(at, task)| self.pass_over(device, at, task));
                }
                Startable::NotNow => {}
            }
            at += 1;
        }
        to_prepare.first().map_or(Next::Nothing, |(at, task)| self.pass_over(device, at, task))
    }

    fn level(&self, task: TaskId) -> usize {
        self.tasks.get(task).map_or(0, |state| state.spec.priority.level())
    }

    /// Whether a task was passed over so often that its device must wait for it. Waiting would not help one whose memory
    /// others hold, or values whose readers may stand behind it: for that `memory_wait_max` is the limit.
    fn is_starving(&self, device: DeviceId, task: TaskId) -> bool {
        let passed_over = self.tasks.get(task).is_some_and(|state| state.bypassed >= BYPASS_MAX);
        passed_over && !self.is_held_by_others(device, self.queued_bytes(task) + self.ledger.values(device))
    }

    /// Counts, for the tasks before this one, that it went first.
    fn pass_over(&mut self, device: DeviceId, at: usize, task: TaskId) -> Next {
        self.count_bypass(device, at);
        Next::Start(task)
    }

    /// The first so many tasks of a queue were passed over.
    fn count_bypass(&mut self, device: DeviceId, count: usize) {
        for at in 0..count {
            let Some(id) = self.devices[device.index()].queue.nth(at) else { return };
            if let Some(state) = self.tasks.get_mut(id) {
                state.bypassed = state.bypassed.saturating_add(1);
            }
        }
    }

    fn startable(&mut self, now: Moment, task: TaskId, device: DeviceId) -> Startable {
        let Some(state) = self.tasks.get(task) else { return Startable::NotNow };
        let Phase::Queued { rung: at, .. } = state.phase else { return Startable::NotNow };
        let rung = &state.spec.ladder.rungs()[at];
        let references = self.references_on(device, &state.spec, rung);
        if references == Presence::BeingPrepared || self.is_held_in_use(&state.spec) {
            return Startable::NotNow;
        }
        let total = self.wanted(device, &state.spec, rung);
        if total > self.ledger.free(device)
            && let Some(missing) = self.shortfall(device, &state.spec, rung)
        {
            self.want_allotment_if_it_helps(device, missing);
            let state = self.tasks.get_mut(task).expect("it was there a moment ago");
            state.is_short(device, at, now);
            self.recall_for_task(now, device, task);
            return Startable::NotNow;
        }
        if references == Presence::Ready { Startable::Now } else { Startable::AfterPreparing }
    }

    /// What can be said of all references of a task together. One that another task prepares now is waited for, so
    /// that nothing is prepared twice.
    fn references_on(&self, device: DeviceId, spec: &TaskSpec, rung: &Rung) -> Presence {
        let cache = &self.device(device).cache;
        let keys = spec.references.iter().map(|reference| prepared_key(spec, rung, reference.content));
        keys.fold(Presence::Ready, |all, key| match (all, cache.presence(&key)) {
            (Presence::BeingPrepared, _) | (_, Presence::BeingPrepared) => Presence::BeingPrepared,
            (Presence::Absent, _) | (_, Presence::Absent) => Presence::Absent,
            (Presence::Ready, Presence::Ready) => Presence::Ready,
        })
    }

    /// It does not fit now: wait here, or go where it finishes sooner? A strategy that keeps shares waits.
    fn move_if_sooner(&mut self, now: Moment, task: TaskId, device: DeviceId) -> bool {
        if self.config.strategy.keeps_shares() {
            return false;
        }
        let Some(state) = self.tasks.get(task) else { return false };
        let Phase::Queued { rung, .. } = state.phase else { return false };
        let moved_lately = state.moved_at.is_some_and(|moved_at| now.since(moved_at) < MOVE_PAUSE);
        if state.short_since(device).is_none() || moved_lately {
            return false;
        }
        let Some(better) = self.choose_sooner(now, task, device, rung) else { return false };
        self.dequeue(task);
        self.place_as(now, task, &better);
        if let Some(state) = self.tasks.get_mut(task) {
            state.moved_at = Some(now);
        }
        self.went_elsewhere(now);
        true
    }

    /// As if it stood in no queue: a task that counted where it stands would always be sooner elsewhere, and go to and
    /// fro between two devices for ever.
    fn choose_sooner(&mut self, now: Moment, task: TaskId, device: DeviceId, rung: usize) -> Option<Chosen> {
        let Phase::Queued { estimate, .. } = self.tasks.get(task)?.phase else { return None };
        self.dequeue(task);
        let chosen = self.choose(now, task);
        self.stand_in_queue(task, Choice { rung, device, estimate });
        chosen.filter(|chosen| chosen.choice.device != device || chosen.choice.rung != rung)
    }

    /// Nothing of its own to start: steals a task that would finish sooner here than where it is queued. Those of its own
    /// queue that do not fit are passed over by that.
    fn steal(&mut self, now: Moment, thief: DeviceId) -> Option<Assignment<H>> {
        if self.config.strategy.keeps_shares() {
            return None;
        }
        let is_worth = |owner: &DeviceId| {
            let from = self.device(*owner);
            *owner != thief && !from.queue.is_empty() && from.health.is_well() && self.is_worth_stealing_from(*owner)
        };
        let owners: SmallVec<[DeviceId; 8]> = self.device_ids().filter(is_worth).collect();
        if owners.is_empty() {
            return None;
        }
        let mut best: Option<(TaskId, Choice, DeviceId)> = None;
        let mut gain = 0;
        for (task, owner) in self.stealable(&owners) {
            if let Some((choice, sooner)) = self.sooner_here(now, task, owner, thief).filter(|(_, g)| *g > gain) {
                gain = sooner;
                best = Some((task, choice, owner));
            }
        }
        let (task, choice, from) = best.or_else(|| self.one_to_measure_again(now, thief, &owners))?;
        self.count_bypass(thief, LOOK);
        self.leave_queue(task);
        self.enqueue(now, task, choice);
        self.note(now, || What::Moved { task, from, to: thief });
        let started = self.start(now, task);
        self.went_elsewhere(now);
        started
    }

    /// The last tasks of these queues, and where they stand.
    fn stealable(&self, owners: &[DeviceId]) -> impl Iterator<Item = (TaskId, DeviceId)> {
        owners.iter().flat_map(|&owner| {
            let last = self.device(owner).queue.iter().rev().take(STEAL_LOOK);
            last.map(move |task| (task, owner))
        })
    }

    /// What the task would cost here and by how much it would be done sooner, if it would.
    fn sooner_here(&self, now: Moment, task: TaskId, owner: DeviceId, thief: DeviceId) -> Option<(Choice, u64)> {
        let Phase::Queued { estimate: there, .. } = self.tasks.get(task)?.phase else { return None };
        let here = self.could_go(now, task, owner, thief)?;
        // It stands among the last of that queue: all of the queue, itself included, comes before its end.
        let done_there = self.device(owner).wait(now, Priority::Background);
        let done_there = done_there.max(there.occupies());
        let gain = done_there.0.checked_sub(here.estimate.finish().0)?;
        (gain > 0).then_some((here, gain))
    }

    /// What the task would cost here, if it may leave the queue that it stands in for here and could start.
    fn could_go(&self, now: Moment, task: TaskId, owner: DeviceId, thief: DeviceId) -> Option<Choice> {
        let state = self.tasks.get(task)?;
        let Phase::Queued { estimate: there, rung: queued, .. } = state.phase else { return None };
        if state.planned.is_some_and(|planned| planned.device == owner && now <= planned.valid_until) {
            return None;
        }
        if state.spec.sequence.is_some_and(|sequence| self.sequences.home(sequence) != Some(thief)) {
            return None;
        }
        let quality = state.spec.ladder.rungs()[queued].quality;
        if self.better_fits(now, state, quality) {
            return None;
        }
        let here = self.best_on(now, task, thief, quality)?;
        if here.estimate.measured != there.measured && !here.estimate.measured {
            return None;
        }
        let rung = &state.spec.ladder.rungs()[here.rung];
        let waits = self.references_on(thief, &state.spec, rung) == Presence::BeingPrepared;
        (!waits && self.shortfall(thief, &state.spec, rung).is_none()).then_some(here)
    }

    /// A device that was slow for a while gets no more work, and nobody would notice that it is fast again. Once it has
    /// been idle for long enough it takes a task that has time, to see.
    fn one_to_measure_again(
        &mut self,
        now: Moment,
        thief: DeviceId,
        owners: &[DeviceId],
    ) -> Option<(TaskId, Choice, DeviceId)> {
        let (task, choice, owner) = self.stealable(owners).find_map(|(task, owner)| {
            let here = self.could_go(now, task, owner, thief)?;
            self.is_worth_measuring_again(now, task, thief, here).then_some((task, here, owner))
        })?;
        let spec = &self.tasks.get(task)?.spec;
        let (workload, rung) = (spec.workload, spec.ladder.rungs()[choice.rung].name);
        self.workloads.cell_mut(workload, rung, thief).begins(now);
        Some((task, choice, owner))
    }

    fn is_worth_measuring_again(&self, now: Moment, task: TaskId, thief: DeviceId, here: Choice) -> bool {
        let Some(spec) = self.tasks.get(task).map(|state| &state.spec) else { return false };
        let has_time = spec.deadline.is_none() && spec.priority <= Priority::Normal;
        let cell = self.workloads.cell(spec.workload, spec.ladder.rungs()[here.rung].name, thief);
        has_time && here.estimate.measured && cell.is_some_and(|cell| cell.is_stale(now, here.estimate.occupies()))
    }

    /// Dequeues a task and gives it everything it needs.
    fn start(&mut self, now: Moment, task: TaskId) -> Option<Assignment<H>> {
        let state = self.tasks.get(task)?;
        let Phase::Queued { device, rung: at, estimate, .. } = state.phase else { return None };
        let (rung, units) = (&state.spec.ladder.rungs()[at], state.spec.units);
        let (name, value_bytes) = (rung.name, rung.value);
        let declared = self.declared(device, &state.spec, rung);
        let needs = self.needs(device, &state.spec, rung);
        let (leaves, hold) = (state.leaves, state.spec.sequence.filter(|_| state.spec.holds));
        let why = state.spec.explain.then(|| self.why_started(now, task, Choice { rung: at, device, estimate }));
        let mut discards = Discards::default();
        let Some(lease) = self.reserve(now, device, &needs, &mut discards) else {
            self.discarded.extend(discards);
            return None;
        };
        self.dequeue(task);
        if !estimate.measured {
            // Counted as under way until it settles.
            let workload = self.tasks.get(task)?.spec.workload;
            self.workloads.cell_mut(workload, name, device).exploring += 1;
            if self.tasks.get(task).is_some_and(|state| state.set.is_some()) {
                self.more_is_known();
            }
        }
        let (held, session) = self.hold_session(task, at, device, &needs);
        let references = self.hold_references(task, device, &needs);
        let (values, reads) = self.hold_values(task, device);
        let value_lease = (value_bytes > Bytes::ZERO)
            .then(|| self.ledger.reserve(device, value_bytes).expect("the whole footprint was checked before"));
        let run = RunId(self.runs.insert(Run {
            tasks: smallvec![task],
            device,
            epoch: self.device(device).epoch,
            lease,
            session: held,
            task_bytes: needs.task,
            references: needs.references,
            reads,
            value_bytes,
            value_lease,
            hold,
            had_state: hold.is_some() && !matches!(session, SessionTurn::Open(_)),
            units,
            started_at: now,
            expected_end: now + estimate.occupies(),
            estimate,
            declared,
            overdue: false,
        }));
        self.device_mut(device).began(now + estimate.occupies());
        self.uses_held(run, hold);
        let hits = references.iter().filter(|turn| matches!(turn, ReferenceTurn::Ready(_))).count() as u16;
        let warm = matches!(session, SessionTurn::Warm(_));
        let warmth = Warmth { warm, hits, misses: references.len() as u16 - hits };
        let job = self.is_under_way(now, task, run, name, device, warmth)?;
        if let (Some(why), Some(state)) = (why, self.tasks.get_mut(task)) {
            state.why = why;
        }
        let on = self.device(device);
        if on.has_free_slot() && !on.queue.is_empty() {
            self.wakes = self.wakes.with(device);
        }
        let value = self.value_made_by(task);
        Some(Assignment { run, task, job, rung: at, discards, session, leaves, references, values, value, estimate })
    }

    /// A task is part of a run from now on: it counts there, and everybody hears of it.
    fn is_under_way(
        &mut self,
        now: Moment,
        task: TaskId,
        run: RunId,
        rung: &'static str,
        device: DeviceId,
        warmth: Warmth,
    ) -> Option<H::Job> {
        let state = self.tasks.get_mut(task)?;
        state.phase = Phase::Running { run };
        state.short = None;
        let (waited, is_retry, job) = (now.since(state.ready_at), state.is_retry(), state.job.clone());
        let stats = &mut self.device_mut(device).stats;
        stats.dispatched += 1;
        stats.retried += u64::from(is_retry);
        if self.events.is_some() {
            let Warmth { warm, hits, misses } = warmth;
            let (bytes, promised) = (self.runs.get(run.0)?.declared, self.ledger.promised(device));
            self.note(now, || What::Started { task, rung, device, waited, bytes, promised, warm, hits, misses });
        }
        Some(job)
    }

    /// The task's own lease: its bytes and all that had to be evicted beyond what was missing.
    fn reserve(
        &mut self,
        now: Moment,
        device: DeviceId,
        needs: &Needs,
        discards: &mut Discards<H>,
    ) -> Option<crate::ledger::LeaseId> {
        let total = needs.total();
        let missing = total - self.ledger.free(device);
        let freed = self.evict_idle(now, device, total, needs, discards);
        self.ledger.check(device, total).ok()?;
        let spare = (freed - missing).min(self.ledger.free(device) - total);
        self.ledger.reserve(device, needs.task + spare).ok()
    }

    fn hold_session(
        &mut self,
        task: TaskId,
        at: usize,
        device: DeviceId,
        needs: &Needs,
    ) -> (HeldSession, SessionTurn<H::Session, H::State>) {
        let key = needs.session_key;
        let spec = |scheduler: &Self| scheduler.tasks.get(task).expect("it is being started").spec.clone();
        if needs.is_held {
            let spec = spec(self);
            let rung = spec.ladder.rungs()[at].clone();
            if let Some((held, turn)) = self.take_held(&spec, &rung, device) {
                let held = held.unwrap_or_else(|| self.hold_new(device, needs));
                return (held, turn);
            }
        }
        let on = self.device_mut(device);
        on.sessions_busy.push(key);
        if let Some(warm) = on.sessions.take(&key) {
            let held = HeldSession { id: warm.id, key, bytes: warm.bytes, lease: warm.lease };
            return (held, SessionTurn::Warm(warm.session));
        }
        self.things_changed();
        (self.hold_new(device, needs), SessionTurn::Open(spec(self).ladder.rungs()[at].clone()))
    }

    /// The promise for a session that is to be opened.
    fn hold_new(&mut self, device: DeviceId, needs: &Needs) -> HeldSession {
        let id = SessionId(self.next_use());
        let bytes = needs.session.unwrap_or_default();
        let lease = self.ledger.reserve(device, bytes).expect("the whole footprint was checked just before");
        HeldSession { id, key: needs.session_key, bytes, lease }
    }

    fn hold_references(
        &mut self,
        task: TaskId,
        device: DeviceId,
        needs: &Needs,
    ) -> SmallVec<[ReferenceTurn<H::Prepared>; 1]> {
        let tick = self.next_use();
        let mut turns = SmallVec::new();
        for (at, key) in needs.references.iter().enumerate() {
            if let Some(prepared) = self.device_mut(device).cache.hit(key, tick) {
                turns.push(ReferenceTurn::Ready(prepared));
                continue;
            }
            let pinned = self.pins.contains_key(&key.content)
                || self.tasks.get(task).is_some_and(|state| state.spec.references[at].pinned);
            let lease = self.ledger.reserve(device, needs.reference).expect("the whole footprint was checked before");
            self.device_mut(device).cache.miss(*key, needs.reference, lease, pinned, tick);
            turns.push(ReferenceTurn::Prepare);
        }
        turns
    }

    /// A run has prepared one of its references: others may use it from now on.
    pub fn prepared(&mut self, run: RunId, at: usize, prepared: H::Prepared) {
        let Some(state) = self.runs.get(run.0) else { return };
        let (device, epoch) = (state.device, state.epoch);
        let Some(key) = state.references.get(at).copied() else { return };
        self.device_mut(device).cache.ready(&key, epoch, prepared);
        self.wakes = DeviceSet::with(self.wakes, device);
    }

    /// The cheapest rung for a task on one device that gives at least this quality.
    fn best_on(&self, now: Moment, task: TaskId, device: DeviceId, quality: Quality) -> Option<Choice> {
        let ladder = &self.tasks.get(task)?.spec.ladder;
        let choices = self.choices_on(now, task, device).into_iter();
        let good = choices.filter(|choice| ladder.rungs()[choice.rung].quality >= quality);
        good.min_by_key(|choice| choice.estimate.finish())
    }
}

/// The first task of each level that a slot found on its way through a queue and that has to prepare a reference.
#[derive(Default)]
struct ToPrepare([Option<(usize, TaskId)>; Priority::LEVELS]);

impl ToPrepare {
    fn add(&mut self, level: usize, at: usize, task: TaskId) {
        self.0[level].get_or_insert((at, task));
    }

    fn first(&self) -> Option<(usize, TaskId)> {
        self.0.iter().flatten().min_by_key(|(at, _)| *at).copied()
    }

    /// The first that is more urgent than a task of this level.
    #[inline]
    fn before(&self, level: usize) -> Option<(usize, TaskId)> {
        self.0[level + 1..].iter().flatten().min_by_key(|(at, _)| *at).copied()
    }
}

/// What a task found ready when it started.
#[derive(Copy, Clone, Debug)]
struct Warmth {
    warm: bool,
    hits: u16,
    misses: u16,
}

/// What a free slot finds in its device's queue.
enum Next {
    Start(TaskId),
    Nothing,
    /// A task was passed over so often that nothing else starts before it.
    Starving,
}

/// Whether a queued task can start now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Startable {
    Now,
    AfterPreparing,
    NotNow,
}
