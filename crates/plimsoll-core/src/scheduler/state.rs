//! What the scheduler remembers of a device, a task and a run.
//! Never decides.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::ahead::SetId;
use super::trust::Trust;
use super::{Candidate, DeviceSpec, Estimate, Host};
use crate::error::{Attempt, Setback};
use crate::health::{Ailment, Health};
use crate::ledger::LeaseId;
use crate::line::{Memory, OwnHeap};
use crate::queue::{DeviceQueue, QueueKey};
use crate::residency::{PreparedKey, ReferenceCache};
use crate::sessions::{SessionKey, Sessions};
use crate::stats::DeviceStats;
use crate::task::{Priority, TaskSpec};
use crate::width::Width;
use crate::{Bytes, DeviceId, Fault, Moment, Nanos, SequenceId, SessionId, TaskId, ValueId};

/// One attempt that is under way.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunId(pub(super) TaskId);

pub(super) struct DeviceState<H: Host> {
    pub(super) spec: DeviceSpec,
    pub(super) health: Health,
    /// Grows with every loss; what was made before belongs to a device that no longer exists.
    pub(super) epoch: u32,
    pub(super) memory: Memory,
    own_heap: OwnHeap,
    pub(super) queue: DeviceQueue,
    /// Predicted time of the queued tasks, by priority.
    pub(super) backlog: [Nanos; Priority::LEVELS],
    /// Runs under way, those included whose tasks have ended or moved. Each has a slot.
    pub(super) running: usize,
    /// Tasks that stand behind another in its run.
    behind: usize,
    /// How many slots may be busy at once.
    pub(super) width: Width<SessionKey>,
    /// Slots whose run has taken far longer than it may: nobody knows whether they come back.
    pub(super) slots_overdue: usize,
    /// When the running tasks should end, first to last.
    ends: VecDeque<Moment>,
    /// The sum of those moments.
    ends_sum: u128,
    pub(super) trust: Trust,
    pub(super) sessions: Sessions<H::Session>,
    /// Keys of the sessions that running tasks hold.
    pub(super) sessions_busy: SmallVec<[SessionKey; 8]>,
    pub(super) cache: ReferenceCache<H::Prepared>,
    /// Faults since the last run that gave a result.
    faults_in_a_row: u32,
    /// The task of the last of them: a task that fails over and over is counted once, it may be its own fault.
    blamed: Option<TaskId>,
    pub(super) stats: DeviceStats,
    /// When idle devices were last woken to steal from this one.
    pub(super) thieves_woken: Moment,
}

impl<H: Host> DeviceState<H> {
    pub(super) fn new(spec: DeviceSpec) -> Self {
        Self {
            health: Health::UNPROVEN,
            epoch: 0,
            memory: spec.memory,
            own_heap: OwnHeap::default(),
            spec,
            queue: DeviceQueue::default(),
            backlog: [Nanos::ZERO; Priority::LEVELS],
            running: 0,
            behind: 0,
            width: spec.width_first.map_or(Width::fixed(spec.slots), |first| Width::measured(first, spec.slots)),
            slots_overdue: 0,
            ends: VecDeque::new(),
            ends_sum: 0,
            trust: Trust::default(),
            sessions: Sessions::default(),
            sessions_busy: SmallVec::new(),
            cache: ReferenceCache::default(),
            faults_in_a_row: 0,
            blamed: None,
            stats: DeviceStats::default(),
            thieves_woken: Moment::START,
        }
    }

    /// The line and the ceiling after a reading of memory while at most so much was promised.
    pub(super) fn line_after(&mut self, memory: Memory, promised: Bytes) -> (Bytes, Bytes) {
        self.memory = Memory { ours: self.own_heap.ours(memory, promised), ..memory };
        (self.spec.margin.line(self.memory), self.spec.margin.ceiling(self.memory))
    }

    /// Whether a slot is free that may start something: of those that answer, no more than the width are used.
    pub(super) fn has_free_slot(&self) -> bool {
        self.running < self.slots_wanted()
    }

    /// How many slots, counted from the first, should be at work: for each one that hangs, a spare one steps in.
    pub(super) fn slots_wanted(&self) -> usize {
        (self.width.slots() + self.slots_overdue).min(self.spec.slots)
    }

    /// Whether no slot is left that could be expected to start anything.
    pub(super) fn hangs(&self) -> bool {
        self.slots_overdue >= self.spec.slots
    }

    /// Its health, with slots that hang counted in.
    pub(super) fn health_now(&self) -> Health {
        match self.health {
            Health::Well if self.hangs() => Health::Quarantined { ailment: Ailment::Stalled, retry_at: None, tries: 0 },
            health => health,
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.queue.len() + self.running + self.behind
    }

    /// How long each of the running tasks should still take.
    pub(super) fn each_left(&self, now: Moment) -> impl Iterator<Item = Nanos> + '_ {
        self.ends.iter().map(move |end| end.since(now))
    }

    /// Time left on the running tasks, if they take what was predicted.
    fn remaining(&self, now: Moment) -> u64 {
        if self.ends.len() <= 1 {
            return self.ends.front().map_or(0, |end| end.since(now).0);
        }
        // A run that has taken longer than predicted may end at any moment; it takes nothing off the others' time.
        let late = self.ends.partition_point(|end| *end <= now);
        let late_sum: u128 = self.ends.range(..late).map(|end| u128::from(end.0)).sum();
        let elapsed_sum = u128::from(now.0) * (self.ends.len() - late) as u128;
        u64::try_from(self.ends_sum - late_sum - elapsed_sum).unwrap_or(u64::MAX)
    }

    /// How long a task of this priority would wait for a slot.
    pub(super) fn wait(&self, now: Moment, priority: Priority) -> Nanos {
        let ahead: Nanos = self.backlog[priority.level()..].iter().copied().sum();
        if ahead == Nanos::ZERO && self.has_free_slot() {
            return Nanos::ZERO;
        }
        let (left, slots) = (self.remaining(now).saturating_add(ahead.0), self.width.slots() as u64);
        // A division takes as long as all the rest of this.
        Nanos(if slots == 1 { left } else { left / slots })
    }

    /// How long until a running task gives memory back; `None` if none runs.
    pub(super) fn wait_for_memory(&self, now: Moment) -> Option<Nanos> {
        let running = self.running as u64;
        (running > 0).then(|| Nanos(self.remaining(now) / running))
    }

    pub(super) fn began(&mut self, expected_end: Moment) {
        self.running += 1;
        self.expect_end(expected_end);
    }

    /// A task stands behind others in a run that will end later by that.
    pub(super) fn stood_behind(&mut self, expected_end: Moment, later: Moment) {
        self.behind += 1;
        // Mostly it is still the last to end, and stays in its place.
        if self.ends.back() == Some(&expected_end)
            && let Some(last) = self.ends.back_mut()
        {
            *last = later;
            self.ends_sum += u128::from(later.since(expected_end).0);
            return;
        }
        self.no_longer_expect_end(expected_end);
        self.expect_end(later);
    }

    /// A run of so many tasks has ended.
    pub(super) fn ended(&mut self, expected_end: Moment, tasks: usize) {
        self.running -= 1;
        self.behind -= tasks - 1;
        self.no_longer_expect_end(expected_end);
    }

    fn expect_end(&mut self, end: Moment) {
        self.ends_sum += u128::from(end.0);
        let at = self.ends.partition_point(|other| *other <= end);
        self.ends.insert(at, end);
    }

    fn no_longer_expect_end(&mut self, end: Moment) {
        // The first of equals: runs mostly end in their order, and the front is cheapest to take from.
        let at = self.ends.partition_point(|other| *other < end);
        if self.ends.remove(at).is_some() {
            self.ends_sum -= u128::from(end.0);
        }
    }

    /// A run gave its result: whatever faults there were are over.
    pub(super) fn gave_a_result(&mut self) {
        (self.faults_in_a_row, self.blamed) = (0, None);
    }

    /// It showed a fault while it ran this task, or while it ran none.
    pub(super) fn fell_ill(&mut self, ailment: Ailment, now: Moment, task: Option<TaskId>) {
        let is_new = task.is_none() || self.blamed != task;
        self.faults_in_a_row += u32::from(is_new);
        self.blamed = task;
        self.health = self.health.after_fault(ailment, now, self.faults_in_a_row);
    }

    /// Whether a session with this key is open here, idle or in use.
    pub(super) fn is_open(&self, key: &SessionKey) -> bool {
        self.sessions.is_warm(key) || self.sessions_busy.contains(key)
    }
}

/// Where a task is in its life.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Phase {
    /// Waiting for predecessors.
    Blocked,
    /// Ready, but no device can take it now; one may later.
    Stranded,
    /// In a device's queue.
    Queued { device: DeviceId, rung: usize, key: QueueKey, estimate: Estimate },
    /// On a device.
    Running { run: RunId },
}

#[derive(Debug)]
pub(super) struct TaskState<J> {
    pub(super) spec: TaskSpec,
    pub(super) job: J,
    pub(super) phase: Phase,
    /// When it could first have started: submitted, and all predecessors done.
    pub(super) ready_at: Moment,
    pub(super) submitted_at: Moment,
    pub(super) order: u64,
    /// Predecessors that have not yet succeeded.
    pub(super) blockers: u32,
    pub(super) dependents: Vec<TaskId>,
    pub(super) attempts: Vec<Attempt>,
    /// How often a later task started before this one because this one did not fit.
    pub(super) bypassed: u16,
    /// Where it has been queued without fitting, and since when.
    pub(super) short: Option<Short>,
    /// When it was last moved because it did not fit where it was queued.
    pub(super) moved_at: Option<Moment>,
    /// Since when no device could take it.
    pub(super) stranded_since: Option<Moment>,
    /// The device that a plan made ahead gave it, and when it should be done there.
    pub(super) planned: Option<Planned>,
    /// The set that it was handed in with, if that is planned again as more is known of it.
    pub(super) set: Option<SetId>,
    /// The value that it makes again because it was lost. Nobody asked for this task: it ends without a word.
    pub(super) remakes: Option<ValueId>,
    /// It only takes what the session of its sequence holds out of it. Nobody asked for this task either.
    pub(super) leaves: bool,
    /// Why it started where it did, if that was to be kept.
    pub(super) why: Vec<Candidate>,
}

/// A wait for memory: for this rung, in this device's queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Short {
    pub(super) device: DeviceId,
    pub(super) rung: usize,
    pub(super) since: Moment,
}

/// A step of a plan made ahead.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) device: DeviceId,
    /// Until when the plan holds; after it the task may go wherever it finishes first.
    pub(super) valid_until: Moment,
    /// When the task ends if everything goes as planned.
    pub(super) end: Moment,
}

impl<J> TaskState<J> {
    /// Whether somebody waits for its result.
    pub(super) fn was_asked_for(&self) -> bool {
        self.remakes.is_none() && !self.leaves
    }

    /// Whether this task already failed on this rung and device in a way that would repeat itself.
    pub(super) fn failed_on(&self, rung: &'static str, device: DeviceId) -> bool {
        self.setbacks(rung, device).any(|setback| match setback {
            Setback::Failed(fault) => {
                !matches!(fault, Fault::DeviceLost { .. } | Fault::Stalled { .. } | Fault::SourceLost { .. })
            }
            Setback::Refused(_) | Setback::Distrusted => false,
        })
    }

    /// Whether it has failed before.
    pub(super) fn is_retry(&self) -> bool {
        self.attempts.iter().any(|attempt| !matches!(attempt.setback, Setback::Refused(_)))
    }

    /// Whether the memory for this rung on this device was waited for, and did not come in time.
    pub(super) fn waited_in_vain(&self, rung: &'static str, device: DeviceId) -> bool {
        self.setbacks(rung, device).any(|setback| matches!(setback, Setback::Refused(_)))
    }

    fn setbacks(&self, rung: &'static str, device: DeviceId) -> impl Iterator<Item = &Setback> {
        let here = move |attempt: &&Attempt| attempt.rung == rung && attempt.device == device;
        self.attempts.iter().filter(here).map(|attempt| &attempt.setback)
    }

    /// Since when it has been waiting for memory in this device's queue.
    pub(super) fn short_since(&self, device: DeviceId) -> Option<Moment> {
        self.short.filter(|short| short.device == device).map(|short| short.since)
    }

    /// It does not fit: the wait begins, unless it has begun for this very rung.
    pub(super) fn is_short(&mut self, device: DeviceId, rung: usize, now: Moment) {
        let waits = |short: &Short| (short.device, short.rung) == (device, rung);
        if self.short.filter(waits).is_none() {
            self.short = Some(Short { device, rung, since: now });
        }
    }
}

/// An open session and what it was promised.
#[derive(Copy, Clone, Debug)]
pub(super) struct HeldSession {
    pub(super) id: SessionId,
    pub(super) key: SessionKey,
    pub(super) bytes: Bytes,
    pub(super) lease: LeaseId,
}

/// One attempt under way: what it holds, and for whom.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// One after the other on one session, in memory that is promised once: all of one kind.
    pub(super) tasks: SmallVec<[TaskId; 1]>,
    pub(super) device: DeviceId,
    pub(super) epoch: u32,
    pub(super) lease: LeaseId,
    pub(super) session: HeldSession,
    /// Bytes promised for a task of it while it runs, beyond session and references.
    pub(super) task_bytes: Bytes,
    pub(super) references: Vec<PreparedKey>,
    /// The leases of the values that it has in hand.
    pub(super) reads: SmallVec<[LeaseId; 1]>,
    /// Bytes of its output that stay, and the promise of them.
    pub(super) value_bytes: Bytes,
    pub(super) value_lease: Option<LeaseId>,
    /// The sequence that owns its session, and whether there was anything in that before.
    pub(super) hold: Option<SequenceId>,
    pub(super) had_state: bool,
    /// Units of each of its tasks.
    pub(super) units: u64,
    pub(super) started_at: Moment,
    pub(super) expected_end: Moment,
    pub(super) estimate: Estimate,
    /// The footprint that its rung declares, uncorrected.
    pub(super) declared: Bytes,
    /// It has taken far longer than it may.
    pub(super) overdue: bool,
}

impl Run {
    /// The first of its tasks: the one that is blamed if nobody knows which.
    pub(super) fn head(&self) -> TaskId {
        self.tasks[0]
    }
}
