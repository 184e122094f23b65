//! Whoever can start and comes first starts first. What does not fit is passed over, but not for ever.
//! The order is worked out here from what callers said, not asked of the scheduler.

use plimsoll_core::{Bytes, DeviceId, Moment, Nanos, Priority, TaskId};
use rustc_hash::FxHashMap;

use super::BeforeTake;
use super::promises::KnownPeaks;
use crate::sim::world::{Flight, World, prepared_key};

/// How often a task that would fit once our own runs are done may be passed over.
pub(super) const BYPASS_MAX: u32 = 64;
/// How much later a task one level more urgent may come and still go first.
const AGEING_STEP: Nanos = Nanos::seconds(2);

/// How much older than its item a stage counts for each stage before it.
const STAGE_STEP: Nanos = Nanos::millis(100);

/// Who was passed over how often.
#[derive(Default)]
pub(super) struct OrderWatch(FxHashMap<TaskId, Passes>);

#[derive(Copy, Clone, Debug, Default)]
struct Passes {
    /// By tasks that come later, while it would have fitted but for our own runs.
    unfair: u32,
    /// By anybody.
    all: u32,
}

/// A task's place in the order, as far as a caller can tell.
#[derive(Copy, Clone, Debug)]
pub(super) struct Rank {
    is_critical: bool,
    /// Its turn lies between these two: a deadline lifts a task by one level at the most.
    earliest: i128,
    latest: i128,
    /// The order of submission; a plan may give the tasks of a set another.
    order: Option<u64>,
}

impl Rank {
    fn of(world: &World, job: usize) -> Self {
        let task = &world.tasks()[job];
        let order = task.order.filter(|_| !task.in_set);
        let item = task.spec.item.filter(|_| task.spec.priority != Priority::Critical);
        let asked_at = item.map_or(task.submitted_at, |item| item.since);
        let rank = Self::new(asked_at, task.spec.priority, task.spec.deadline.is_some(), order);
        let lift = item.map_or(0, |item| i128::from(STAGE_STEP.0) * i128::from(item.stage));
        Self { earliest: rank.earliest - lift, latest: rank.latest - lift, ..rank }
    }

    pub(super) fn new(asked_at: Moment, priority: Priority, has_deadline: bool, order: Option<u64>) -> Self {
        let levels_below = (Priority::LEVELS - 1 - priority.level()) as i128;
        let latest = i128::from(asked_at.0) + levels_below * i128::from(AGEING_STEP.0);
        let lift = if has_deadline { i128::from(AGEING_STEP.0) } else { 0 };
        Self { is_critical: priority == Priority::Critical, earliest: latest - lift, latest, order }
    }

    /// Whether this one comes before the other, beyond doubt.
    pub(super) fn precedes(self, other: Self) -> bool {
        if self.is_critical != other.is_critical {
            return self.is_critical;
        }
        let same_turn = self.latest == other.earliest && self.earliest == other.latest;
        match (self.order, other.order) {
            (Some(ours), Some(theirs)) if same_turn => ours < theirs,
            _ => self.latest < other.earliest,
        }
    }
}

impl OrderWatch {
    /// A task was taken: who stood before it and could have started? Who was passed over once too often?
    pub(super) fn check(
        &mut self,
        world: &World,
        peaks: &KnownPeaks,
        before: &BeforeTake,
        taken: TaskId,
    ) -> Result<(), String> {
        let Some(job) = world.job(taken) else {
            // Nobody asked for it, but it was started before these.
            before.still_queued(world).for_each(|(task, _)| self.0.entry(task).or_default().all += 1);
            return Ok(());
        };
        let device = before.device;
        let own = before.queue.iter().any(|(task, _)| *task == taken);
        let rank = Rank::of(world, job);
        for (task, rung) in before.still_queued(world).filter(|(task, _)| *task != taken) {
            let Some(other) = world.job(task) else { continue };
            let passes = self.0.entry(task).or_default();
            passes.all += 1;
            if !Rank::of(world, other).precedes(rank) {
                continue;
            }
            let spec = &world.tasks()[other].spec;
            let bytes = peaks.bytes(spec, rung, device) + copies(world, other, device);
            if own && may_start(world, before, (other, rung), bytes) && !goes_first_by_references(world, job, other) {
                let (first, second) = (Rank::of(world, other), rank);
                return Err(format!(
                    "order: {device} started task {job} ({second:?}) although task {other} ({first:?}) comes first and fits"
                ));
            }
            let ledger = world.core().ledger();
            if bytes <= ledger.line(device) - ledger.lasting(device) - ledger.values(device) {
                passes.unfair += 1;
                if passes.unfair > BYPASS_MAX {
                    return Err(format!("bypass: task {other} was passed over {} times on {device}", passes.unfair));
                }
            }
        }
        Ok(())
    }

    /// Whether the device may be waiting for this task alone.
    pub(super) fn may_be_waited_for(&self, task: TaskId) -> bool {
        self.0.get(&task).is_some_and(|passes| passes.all >= BYPASS_MAX)
    }
}

fn may_start(world: &World, before: &BeforeTake, (job, rung): (usize, usize), bytes: Bytes) -> bool {
    bytes <= before.free[before.device.index()]
        && !waits_for_reference(world, job, rung, before.device)
        && !waits_for_session(world, job)
}

/// Bytes of the values that a task would have to copy to a device.
pub(super) fn copies(world: &World, job: usize, device: DeviceId) -> Bytes {
    let makers = world.tasks()[job].takes.iter().map(|&maker| &world.tasks()[maker]);
    let elsewhere =
        makers.filter(|maker| maker.value.is_none_or(|(value, _)| world.core().value_lies_on(value) != Some(device)));
    elsewhere.map(|maker| maker.value_bytes()).sum()
}

/// Whether a run uses the session that this task needs.
pub(super) fn waits_for_session(world: &World, job: usize) -> bool {
    let spec = &world.tasks()[job].spec;
    let uses = |flight: &Flight| {
        let other = &world.tasks()[flight.job].spec;
        other.holds && other.sequence == spec.sequence
    };
    spec.holds && world.flights().any(uses)
}

/// Whether another run prepares a reference of this task right now: it is waited for, so that nothing is made twice.
pub(super) fn waits_for_reference(world: &World, job: usize, rung: usize, device: DeviceId) -> bool {
    let spec = &world.tasks()[job].spec;
    let prepares =
        |flight: &Flight, key| flight.device == device && flight.preparing.iter().any(|(_, other)| *other == key);
    (0..spec.references.len()).any(|place| {
        let key = prepared_key(spec, rung, place);
        world.flights().any(|flight| prepares(flight, key))
    })
}

/// One whose references are there goes before one that has to prepare some and is no more urgent, however old.
fn goes_first_by_references(world: &World, started: usize, passed: usize) -> bool {
    let (started, passed) = (&world.tasks()[started].spec, &world.tasks()[passed].spec);
    started.priority >= passed.priority && !passed.references.is_empty()
}
