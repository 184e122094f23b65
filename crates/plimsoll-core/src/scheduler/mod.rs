//! The scheduler: the whole life of a task, as decisions.
//!
//! | file | question |
//! |---|---|
//! | `submit.rs` | is there queue space, and is the task ready? |
//! | `choose.rs` | which rung on which device finishes first? |
//! | `memo.rs` | was the same question answered a moment ago? |
//! | `sequences.rs` | on which device is a sequence at home? |
//! | `holds.rs` | which session does a sequence own, and what was not yet drained of it? |
//! | `place.rs` | into which device's queue, and what if nobody can take it? |
//! | `take.rs` | what does a free slot start, and with which leases? |
//! | `allotments.rs` | how much of a line may be promised here, and is more wanted? |
//! | `evict.rs` | which idle session or reference is evicted for a promise? |
//! | `grants.rs` | who holds bytes for longer than a task, and who must give them back? |
//! | `settle.rs` | what did it cost, and who was waiting for it? |
//! | `widths.rs` | how many slots of a device are used at once? |
//! | `recover.rs` | it failed: step down, move, or report? |
//! | `trust.rs` | may this device's results be believed? |
//! | `yielding.rs` | which held sessions step down for others, and when do they rise? |
//! | `values.rs` | where do outputs lie that stay, and who still reads them? |
//! | `quality.rs` | is a lower quality needed? |
//! | `ahead.rs` | the whole set is known: which order and devices end it first? |
//! | `learnt.rs` | what of all this outlives the process? |
//! | `devices.rs` | which devices work, and where are their lines? |
//! | `tick.rs` | what is due: deadlines, stalls, tries, waits that have lasted too long? |
//!
//! Never starts a thread, reads a clock, or looks into a job: facts come in with the time, decisions go out.
//! Invariant: a task that was taken in ends exactly once (`testkit::fuzz`).

mod ahead;
mod allotments;
mod choose;
mod devices;
mod evict;
mod failed_lately;
mod grants;
mod holds;
mod invariants;
mod learnt;
mod memo;
mod place;
mod quality;
mod recover;
mod sequences;
mod settle;
mod state;
mod submit;
mod take;
mod tick;
mod trust;
mod values;
mod widths;
mod yielding;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

pub use ahead::{Outlook, RefusedSet, SetPlan, SetTask};
pub use choose::{Candidate, Estimate};
pub use devices::DeviceSpec;
pub use evict::Discards;
pub use grants::{GRANTS_MAX, GrantNews};
pub use holds::Undrained;
pub use settle::{BatchOutcome, Measured, Outcome, Report, Settled};
pub use state::RunId;
pub use submit::{NotTaken, Workloads};
pub use take::{Assignment, Behind, ReferenceTurn, SessionTurn};
pub use trust::Suspicion;
pub use values::{Moved, ValueTurn};

use rustc_hash::FxHashMap;

use crate::balancer::{Balancer, Strategy};
use crate::event::{Event, What};
use crate::ledger::Ledger;
use crate::sharing::Sharing;
use crate::task::TaskTable;
use crate::{ContentKey, DeviceId, DeviceSet, Moment, Nanos, TaskError, TaskId};
use state::{DeviceState, Run, TaskState};

/// What the scheduler carries for its host without looking at it.
pub trait Host {
    /// A task's payload. Cloned to the worker that runs it.
    type Job: Clone;
    /// An open session.
    type Session;
    /// A prepared reference.
    type Prepared: Clone;
    /// An output that stays where it was made.
    type Value: Clone;
    /// What a session held, in host memory.
    type State;
}

/// The limits and habits of a scheduler.
#[derive(Clone, Debug)]
pub struct Config {
    /// Tasks taken in and not yet ended. A full queue refuses; it never grows.
    pub queue_limit: usize,
    /// How to pick among devices.
    pub strategy: Strategy,
    /// How long a task waits for memory that nobody here will give back before its rung counts as refused.
    pub memory_wait_max: Nanos,
    /// How long a size that ran out of memory is not tried again, the first time. Each further time it is twice as long,
    /// up to an hour; clearly more free memory ends it sooner.
    pub memory_retry_first: Nanos,
    /// How long a task waits for a device that could take it to come back before it ends with every reason.
    pub device_wait_max: Nanos,
    /// How long bytes that another program gave back stay promised without being seen to be free.
    pub return_wait_max: Nanos,
    /// How holders of grants share a device when there is less than they want.
    pub sharing: Sharing,
    /// Simulated schedules tried before a known set of tasks is committed to; 0 plans nothing ahead.
    pub lookahead: u32,
    /// Tells this scheduler's tasks from those of others in the same process; only the lowest ten bits count.
    pub owner: u16,
    /// The version of this software, kept with every learnt failure.
    pub software: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            queue_limit: 16_384,
            strategy: Strategy::default(),
            memory_wait_max: Nanos::seconds(30),
            memory_retry_first: crate::profile::FAILURE_WAIT_FIRST,
            device_wait_max: Nanos::seconds(60),
            return_wait_max: Nanos::seconds(10),
            sharing: Sharing::default(),
            lookahead: crate::lookahead::SIMULATIONS_DEFAULT,
            owner: 0,
            software: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Something the host has to do.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Open it (again), run its known-answer check, and report with `device_opened` or `device_failed_to_open`.
    Reopen(DeviceId),
    /// Plan what [`Scheduler::next_outlook`] gives, outside any lock, until it gives nothing more.
    Plan,
}

/// A task that ended without its worker being there to see it.
#[derive(Debug)]
pub struct Ending<J> {
    /// Which task.
    pub task: TaskId,
    /// Its payload.
    pub job: J,
    /// Why.
    pub error: TaskError,
}

/// Decides the life of every task. See the module's table for where.
pub struct Scheduler<H: Host> {
    config: Config,
    devices: Vec<DeviceState<H>>,
    workloads: Workloads,
    tasks: TaskTable<TaskState<H::Job>>,
    runs: TaskTable<Run>,
    ledger: Ledger,
    balancer: Balancer,
    deadlines: BinaryHeap<Reverse<(Moment, TaskId)>>,
    failed_lately: failed_lately::FailedLately,
    stranded: Vec<TaskId>,
    endings: Vec<Ending<H::Job>>,
    orders: Vec<Order>,
    wakes: DeviceSet,
    accepting: bool,
    order: u64,
    sets: ahead::Sets,
    sequences: sequences::Sequences,
    uses: u64,
    since: Moment,
    grants: grants::Grants<H>,
    /// How many handles hold each content.
    pins: FxHashMap<ContentKey, u32>,
    learnt: learnt::Learnt,
    memos: memo::Memos,
    values: values::Values<H>,
    holds: holds::Holds<H>,
    allotments: allotments::Allotments,
    discarded: Discards<H>,
    events: Option<Vec<Event>>,
}

impl<H: Host> fmt::Debug for Scheduler<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("devices", &self.devices.len())
            .field("tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

impl<H: Host> Scheduler<H> {
    /// A scheduler without devices or workloads.
    pub fn new(mut config: Config, now: Moment) -> Self {
        config.queue_limit = config.queue_limit.min(TaskId::PLACES_MAX);
        let (tasks, runs) = (TaskTable::new(config.owner), TaskTable::new(config.owner));
        Self {
            config,
            devices: Vec::new(),
            workloads: Workloads::default(),
            tasks,
            runs,
            ledger: Ledger::default(),
            balancer: Balancer::default(),
            deadlines: BinaryHeap::new(),
            failed_lately: Default::default(),
            stranded: Vec::new(),
            endings: Vec::new(),
            orders: Vec::new(),
            wakes: DeviceSet::NONE,
            accepting: true,
            order: 0,
            sets: Default::default(),
            sequences: Default::default(),
            uses: 0,
            since: now,
            grants: grants::Grants::default(),
            pins: FxHashMap::default(),
            learnt: Default::default(),
            memos: Default::default(),
            values: Default::default(),
            holds: Default::default(),
            allotments: Default::default(),
            discarded: Discards::default(),
            events: None,
        }
    }

    /// Its limits and habits.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Tasks taken in and not yet ended.
    pub fn unsettled(&self) -> usize {
        self.tasks.len()
    }

    /// Whether the next task would be refused for want of queue space.
    pub fn is_full(&self) -> bool {
        self.tasks.len() >= self.config.queue_limit
    }

    /// How many more tasks would be taken in.
    pub fn queue_space(&self) -> usize {
        self.config.queue_limit.saturating_sub(self.tasks.len())
    }

    /// Runs under way, those included whose tasks have ended or moved.
    pub fn running(&self) -> usize {
        self.runs.len()
    }

    /// The book of promised bytes.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Starts or stops writing events down.
    pub fn listen(&mut self, on: bool) {
        self.events = if on { Some(Vec::new()) } else { None };
    }

    /// The events since the last call.
    pub fn drain_events(&mut self) -> Vec<Event> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The tasks that ended without a result since the last call.
    pub fn drain_endings(&mut self) -> Vec<Ending<H::Job>> {
        std::mem::take(&mut self.endings)
    }

    /// Sessions and references that nobody will use again, to be dropped outside any lock.
    pub fn drain_discards(&mut self) -> Discards<H> {
        std::mem::take(&mut self.discarded)
    }

    /// Whether [`Scheduler::drain_endings`], [`Scheduler::drain_discards`], [`Scheduler::drain_orders`] or
    /// [`Scheduler::drain_grant_news`] would give something.
    pub fn has_news(&self) -> bool {
        !self.endings.is_empty() || !self.orders.is_empty() || !self.discarded.is_empty() || self.has_grant_news()
    }

    /// What the host has to do.
    pub fn drain_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// The devices whose free slots should ask for work.
    pub fn drain_wakes(&mut self) -> DeviceSet {
        std::mem::replace(&mut self.wakes, DeviceSet::NONE)
    }

    /// Breaks the ledger on purpose, to see that the invariants catch it.
    #[doc(hidden)]
    pub fn break_ledger_on_purpose(&mut self) {
        self.ledger.break_on_purpose();
    }

    #[inline]
    fn note(&mut self, at: Moment, what: impl FnOnce() -> What) {
        if let Some(events) = &mut self.events {
            events.push(Event { at, what: what() });
        }
    }

    fn device(&self, device: DeviceId) -> &DeviceState<H> {
        &self.devices[device.index()]
    }

    fn device_mut(&mut self, device: DeviceId) -> &mut DeviceState<H> {
        &mut self.devices[device.index()]
    }

    fn device_ids(&self) -> impl Iterator<Item = DeviceId> + use<H> {
        (0..self.devices.len() as u16).map(DeviceId)
    }

    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }
}
