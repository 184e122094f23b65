//! What must hold in every seed, each rule in a file of its own and held against what is really so.
//! Never asks the scheduler for its opinion where the world knows the truth.
//!
//! | file | rule |
//! |---|---|
//! | `allowed.rs` | a task runs only where and how its caller allows, and never after its deadline |
//! | `quality.rs` | a lower quality is taken only while no better one fits, or would miss the deadline |
//! | `order.rs` | whoever can start and comes first starts first; nobody is passed over for ever |
//! | `sequences.rs` | the tasks of a sequence stay together and in order |
//! | `promises.rs` | what is allocated was promised, what was promised is under the line |
//! | `references.rs` | references that nobody holds are bounded |
//! | `refusals.rs` | no task is refused that this machine could have done |
//! | `trust.rs` | nothing is delivered from a device that is not trusted; a fault is never ignored |
//! | `grants.rs` | a grant is in one state, over once, in order, recalled only by need, free only when free |
//! | `values.rs` | a value lies where it is said to, as long as somebody reads it, and says what it should |
//! | `holds.rs` | what a held session holds that was not drained is known; nothing waits for a lost one |
//! | `idle.rs` | no slot sleeps while its device has work that could start |

mod allowed;
mod grants;
mod holds;
mod idle;
mod order;
mod promises;
mod quality;
mod references;
mod refusals;
mod sequences;
mod trust;
mod values;

use plimsoll_core::event::{Event, FaultKind, What};
use plimsoll_core::scheduler::{Candidate, Report};
use plimsoll_core::{Bytes, DeviceId, GrantId, SequenceId, TaskError, TaskId, TaskSpec};

use super::world::{Flight, Taken, World};
use grants::GrantWatch;
pub(super) use grants::{grant_refused, lease_refused};
use idle::IdleWatch;
use order::OrderWatch;
use promises::KnownPeaks;
use sequences::SequenceWatch;
use trust::Unsupported;
use values::ValueWatch;
pub(super) use values::values_at_hand;

/// Everything that is watched, and what has to be remembered for it.
pub(crate) struct Checks {
    sequences: SequenceWatch,
    order: OrderWatch,
    idle: IdleWatch,
    peaks: KnownPeaks,
    unsupported: Unsupported,
    grants: GrantWatch,
    values: ValueWatch,
}

/// A device's queue, and what was free, just before a slot asked for work.
pub(crate) struct BeforeTake {
    device: DeviceId,
    /// On each device.
    free: Vec<Bytes>,
    /// Each task with the rung it is queued for, in the queue's order.
    queue: Vec<(TaskId, usize)>,
    /// What the scheduler says of every rung and device, if the task that was taken gives less than full quality.
    pub(super) why: Vec<Candidate>,
}

impl BeforeTake {
    pub(super) fn new(world: &World, device: DeviceId) -> Self {
        let free = world.device_ids().map(|device| world.core().ledger().free(device)).collect();
        Self { device, free, queue: world.core().queued(device).collect(), why: Vec::new() }
    }

    /// Those that stood here before and still do, for the same rung.
    fn still_queued<'a>(&'a self, world: &'a World) -> impl Iterator<Item = (TaskId, usize)> + 'a {
        let now: Vec<(TaskId, usize)> = world.core().queued(self.device).collect();
        self.queue.iter().copied().filter(move |queued| now.contains(queued))
    }
}

impl Checks {
    pub(super) fn new(devices: usize) -> Self {
        Self {
            sequences: SequenceWatch::new(devices),
            order: OrderWatch::default(),
            idle: IdleWatch::new(devices),
            peaks: KnownPeaks::default(),
            unsupported: Unsupported::default(),
            grants: GrantWatch::default(),
            values: ValueWatch::default(),
        }
    }

    /// This device may refuse one task and take the next: see [`SequenceWatch::expect_refusals`].
    pub(super) fn expect_refusals(&mut self, device: DeviceId) {
        self.sequences.expect_refusals(device);
    }

    /// A task of a sequence was taken in.
    pub(super) fn joined(&mut self, task: TaskId, sequence: SequenceId) {
        self.sequences.joined(task, sequence);
    }

    /// What happened, in order.
    pub(super) fn hear(&mut self, world: &World, events: &[Event]) -> Result<(), String> {
        for event in events {
            self.note_surprise(world, &event.what);
            self.note_quality(world, &event.what);
            self.unsupported.hear(world, &event.what);
            self.sequences.hear(&event.what)?;
            self.values.hear(world, event);
        }
        self.grants.hear(world, events)?;
        trust::stalls_count(world, events)
    }

    /// Somebody is about to ask the owner of this grant by hand to step down.
    pub(super) fn recalls_by_hand(&mut self, grant: GrantId) {
        self.grants.recalls_by_hand(grant);
    }

    /// Nothing is left to happen.
    pub(super) fn all_over(&self, world: &World) -> Result<(), String> {
        if world.core().values() > 0 {
            return Err(format!("values: {} are left in the end", world.core().values()));
        }
        self.grants.all_over()
    }

    /// A device on which a run was measured to take more than was known may refuse the next task of a sequence.
    fn note_surprise(&mut self, world: &World, what: &What) {
        let What::Ran { task, rung, device, peak, .. } = *what else { return };
        let Some(spec) = world.job(task).map(|job| &world.tasks()[job].spec) else { return };
        let at = spec.ladder.rungs().iter().position(|known| known.name == rung);
        if at.is_some_and(|at| peak > self.peaks.bytes(spec, at, device)) {
            self.sequences.trouble(device);
        }
    }

    fn note_quality(&mut self, world: &World, what: &What) {
        let What::Placed { task, rung, .. } = *what else { return };
        let Some(spec) = world.job(task).map(|job| &world.tasks()[job].spec) else { return };
        let rung = spec.ladder.rungs().iter().find(|known| known.name == rung);
        rung.into_iter().for_each(|rung| self.sequences.note_quality(task, rung.quality));
    }

    /// A slot took a task.
    pub(super) fn taken(&mut self, world: &World, before: &BeforeTake, taken: Taken) -> Result<(), String> {
        let job = taken.job;
        allowed::check(world, taken, before.device)?;
        trust::taken(world, job, before.device)?;
        self.unsupported.taken(world, job, taken.rung, before.device)?;
        quality::check(world, &self.peaks, before, job, taken.rung)?;
        self.order.check(world, &self.peaks, before, taken.task)?;
        let is_leave = world.job(taken.task).is_none() && world.tasks()[job].spec.holds;
        // It is promised nothing, and may start where a line has moved below what was.
        if is_leave { Ok(()) } else { promises::under_the_line(world, before.device) }
    }

    /// A run gave a result that counts.
    pub(super) fn delivered(&mut self, world: &World, flight: &Flight, report: &Report) -> Result<(), String> {
        self.peaks.learn(world, flight);
        allowed::reported(world, flight, report)?;
        trust::delivered(world, flight)
    }

    /// A run ended without a result that counts.
    pub(super) fn dropped(&self, world: &World, flight: &Flight, fault: Option<FaultKind>) -> Result<(), String> {
        trust::fault_counts(world, flight, fault)
    }

    /// A task ended.
    pub(super) fn ended(&mut self, world: &World, job: usize, end: &Result<DeviceId, TaskError>) -> Result<(), String> {
        allowed::ended_in_time(world, job, end)?;
        match end {
            Err(error @ (TaskError::NeverFits { .. } | TaskError::Exhausted { .. })) => {
                refusals::check(world, &self.peaks, job, error)
            }
            Err(error) => self.values.ended(world, &self.peaks, job, error),
            _ => Ok(()),
        }
    }

    /// Every slot has what it could get, and time is about to pass.
    pub(super) fn at_rest(&mut self, world: &World) -> Result<(), String> {
        promises::allocated_was_promised(world)?;
        references::check(world)?;
        ValueWatch::at_rest(world)?;
        holds::at_rest(world)?;
        self.grants.at_rest(world)?;
        self.idle.check(world, &self.peaks, &self.order)
    }

    /// What a run of this rung takes on a device, as far as the scheduler can know.
    pub(super) fn known_bytes(&self, spec: &TaskSpec, rung: usize, device: DeviceId) -> Bytes {
        self.peaks.bytes(spec, rung, device)
    }
}
