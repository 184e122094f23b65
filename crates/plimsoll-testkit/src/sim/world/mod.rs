//! The world: a clock, virtual devices with their faults, callers, and a scheduler that knows of none of them.
//! Never lets the scheduler see a fault before it happens, and never lets a slot look for work that was not woken.
//! Invariant: after every step everything in `World::check` holds (looked at after every step, unless told otherwise).
//!
//! | file | what it pretends |
//! |---|---|
//! | `virtual_gpu.rs` | devices, what goes wrong on them, what is on them |
//! | `slots.rs` | the runtime's threads, and who is woken |
//! | `flight.rs` | attempts: open, prepare, run, settle |
//! | `mishap.rs` | how an attempt goes wrong |
//! | `landing.rs` | what a slot does with an attempt that is over |
//! | `callers.rs` | those who hand in tasks, and hold handles |
//! | `owners.rs` | those who hold grants, in this process and outside |
//! | `holders.rs` | those whose sequence owns its session |
//! | `stages.rs` | those who hold values, and hand in what reads them |
//! | `watchdog.rs` | ticks, memory readings, reopening |

mod callers;
mod flight;
mod holders;
mod landing;
mod mishap;
mod owners;
mod slots;
mod stages;
mod virtual_gpu;
mod watchdog;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use plimsoll_core::profile::Profile;
use plimsoll_core::rng::Rng;
use plimsoll_core::scheduler::{Config, DeviceSpec, Discards, Host, SetPlan};
use plimsoll_core::{
    Bytes, DeviceId, Moment, Nanos, Quality, Scheduler, TaskError, TaskId, TaskSpec, UnixSeconds, WorkloadId,
};
use rustc_hash::FxHashMap;

use super::checks::{BeforeTake, Checks};
use super::truth::{Allocation, Held, VirtualSession, VirtualValue};
pub use super::truth::{Cost, TaskTruth};
use callers::{Handle, Set};
pub(crate) use flight::{Errand, Flight, Taken, prepared_key};
pub(crate) use holders::Holder;
pub(crate) use owners::Owner;
pub use owners::Wish;
pub(crate) use virtual_gpu::VirtualState;
pub use virtual_gpu::{Faults, VirtualGpu};
pub(crate) use watchdog::ROUND;
use watchdog::Watchdog;

/// Steps after which a run counts as hung.
const STEPS_MAX: usize = 2_000_000;
/// Virtual time after which a box must have come to rest: the work is seconds, the ageing of priorities is seconds, the
/// longest stall minutes.
const REST_MAX: Moment = Moment(3_600_000_000_000);

/// What the scheduler carries in simulation.
#[derive(Debug)]
pub struct Pretend;

impl Host for Pretend {
    type Job = usize;
    type Session = VirtualSession;
    type Prepared = Rc<Allocation>;
    type Value = Rc<VirtualValue>;
    type State = Held;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Submit(usize),
    SubmitSet(usize),
    Cancel(usize),
    Ask(usize),
    Leave(usize),
    Answer(usize),
    Rise(usize, usize),
    Free(usize),
    RecallByHand(usize),
    BatchDone(usize),
    ChangePriority(usize),
    Pin(usize),
    LetGo(usize),
    GiveUpValue(usize),
    RecallSession(usize, usize),
    Restart(usize),
    Close(usize),
    ShutDown,
    Prepared { flight: usize, at: usize },
    Land(usize),
    Checked(usize),
    Lose(DeviceId, u32),
    Reopened(DeviceId, bool),
    Others(DeviceId, Bytes),
    MemoryRead(DeviceId),
    Watchdog(u64),
    Planned(usize),
}

/// A box in virtual time.
pub struct World {
    scheduler: Scheduler<Pretend>,
    now: Moment,
    rng: Rng,
    devices: Vec<VirtualState>,
    tasks: Vec<TaskTruth>,
    /// Which task is which to the scheduler.
    jobs: FxHashMap<TaskId, usize>,
    flights: Vec<Option<Flight>>,
    agenda: BinaryHeap<Reverse<(Moment, u64, Happening)>>,
    order: u64,
    steps: usize,
    /// How likely a slot is to take another run behind the one it took.
    batches: f64,
    /// What runs of a workload's rung really take of what they say, in eighths; all of it where nothing is said.
    peaks: FxHashMap<(WorkloadId, &'static str), u64>,
    watchdog: Watchdog,
    owners: Vec<Owner>,
    /// Nothing is taken in any more.
    is_closed: bool,
    sets: Vec<Set>,
    /// Plans that were made and not yet followed, and how long making one takes at the most.
    plans: Vec<Option<SetPlan>>,
    planning_max: Nanos,
    handles: Vec<Handle>,
    /// When each item was handed in.
    items: Vec<Option<Moment>>,
    holders: Vec<Holder>,
    /// Every value that was made and may still be there, and who made it.
    made: Vec<(usize, Weak<VirtualValue>)>,
    checks: Option<Box<Checks>>,
    /// Whether the scheduler's invariants are checked after every step, and not only in the end.
    checks_steps: bool,
}

impl World {
    /// A box with these devices, all of them well.
    pub fn new(config: Config, devices: Vec<VirtualGpu>, seed: u64) -> Self {
        let mut scheduler = Scheduler::new(config, Moment::START);
        let mut states = Vec::new();
        for gpu in devices {
            let mut spec = DeviceSpec::new(gpu.kind, gpu.slots, gpu.memory);
            spec.stall_after = gpu.stall_after;
            spec.weight = gpu.weight;
            spec.width_first = gpu.width_first;
            spec.margin = gpu.margin;
            let device = scheduler.add_device(spec);
            scheduler.device_opened(Moment::START, device);
            states.push(VirtualState::new(gpu, scheduler.slots_wanted(device)));
        }
        Self {
            scheduler,
            now: Moment::START,
            rng: Rng::new(seed),
            devices: states,
            tasks: Vec::new(),
            jobs: FxHashMap::default(),
            flights: Vec::new(),
            agenda: BinaryHeap::new(),
            order: 0,
            steps: 0,
            batches: 0.0,
            peaks: FxHashMap::default(),
            watchdog: Watchdog::asleep(),
            owners: Vec::new(),
            is_closed: false,
            sets: Vec::new(),
            plans: Vec::new(),
            planning_max: Nanos::ZERO,
            handles: Vec::new(),
            items: Vec::new(),
            holders: Vec::new(),
            made: Vec::new(),
            checks: None,
            checks_steps: true,
        }
    }

    /// The scheduler under test.
    pub fn scheduler(&mut self) -> &mut Scheduler<Pretend> {
        &mut self.scheduler
    }

    /// The virtual time.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// From the beginning until the last task ended. The virtual time goes on a little after that: the watchdog and the
    /// memory readers have a last look.
    pub fn makespan(&self) -> Nanos {
        let last = self.tasks.iter().map(|task| task.ended_at).max();
        last.unwrap_or(Moment::START).since(Moment::START)
    }

    /// Invariants are checked in the end alone: who measures how long deciding takes would measure them, which take four
    /// times as long.
    pub fn check_only_in_the_end(&mut self) {
        self.checks_steps = false;
    }

    /// How every task went.
    pub fn tasks(&self) -> &[TaskTruth] {
        &self.tasks
    }

    /// From now on every rule in `checks` is held against what happens.
    pub fn check_everything(&mut self) {
        self.scheduler.listen(true);
        self.checks = Some(Box::new(Checks::new(self.devices.len())));
    }

    /// Starts from a profile of an earlier life. The devices are known to it by these names.
    pub fn load(&mut self, today: UnixSeconds, profile: Profile, names: Vec<String>) {
        if let Some(checks) = self.checks.as_mut().filter(|_| profile.failures().iter().next().is_some()) {
            (0..names.len() as u16).for_each(|device| checks.expect_refusals(DeviceId(device)));
        }
        self.scheduler.load(self.now, today, Arc::new(profile), names);
    }

    /// How likely a slot is to take another run behind the one it took.
    pub fn set_batches(&mut self, chance: f64) {
        self.batches = chance;
    }

    /// Planning a set again takes up to so long.
    pub fn set_planning(&mut self, at_most: Nanos) {
        self.planning_max = at_most;
    }

    /// Runs of this rung really hold this many eighths of what their footprint says.
    pub fn set_peak(&mut self, workload: WorkloadId, rung: &'static str, eighths: u64) {
        self.peaks.insert((workload, rung), eighths);
    }

    /// The bytes that a run of this rung really holds, its session and references included.
    pub(crate) fn real_bytes(&self, spec: &TaskSpec, rung: usize) -> Bytes {
        let name = spec.ladder.rungs()[rung].name;
        let eighths = self.peaks.get(&(spec.workload, name)).copied().unwrap_or(8);
        let kept = spec.ladder.rungs()[rung].footprint;
        let kept = kept.session + Bytes(kept.reference.0 * spec.references.len() as u64);
        Bytes(spec.footprint_total(rung).0 / 8 * eighths).max(kept)
    }

    pub(super) fn core(&self) -> &Scheduler<Pretend> {
        &self.scheduler
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn devices(&self) -> &[VirtualState] {
        &self.devices
    }

    pub(super) fn device_ids(&self) -> impl Iterator<Item = DeviceId> + use<> {
        (0..self.devices.len() as u16).map(DeviceId)
    }

    pub(super) fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.flights.iter().flatten()
    }

    pub(super) fn job(&self, task: TaskId) -> Option<usize> {
        self.jobs.get(&task).copied()
    }

    fn plan(&mut self, at: Moment, happening: Happening) {
        self.order += 1;
        self.agenda.push(Reverse((at, self.order, happening)));
    }

    /// Runs until nothing is left to happen.
    ///
    /// # Errors
    /// The first broken rule, in words.
    pub fn run(&mut self) -> Result<(), String> {
        while self.step()? {}
        self.check_all_ended()
    }

    /// Woken slots take what there is, then whatever is next happens. Says whether anything did.
    ///
    /// # Errors
    /// The first broken rule, in words.
    pub fn step(&mut self) -> Result<bool, String> {
        self.dispatch()?;
        if self.checks_steps {
            self.check()?;
        }
        if self.steps > STEPS_MAX {
            return Err(format!("still running after {STEPS_MAX} steps at {:?}", self.now));
        }
        if self.now > REST_MAX && self.scheduler.unsettled() > 0 {
            let left = self.tasks.iter().position(|task| task.id.is_some() && task.end.is_none());
            return Err(format!("task {left:?} has not ended at {:?}", self.now));
        }
        self.advance()
    }

    /// Everything that happens at the next moment happens before any slot looks for work. Says whether anything did.
    fn advance(&mut self) -> Result<bool, String> {
        let Some(&Reverse((at, ..))) = self.agenda.peek() else { return Ok(false) };
        self.now = self.now.max(at);
        while self.agenda.peek().is_some_and(|Reverse((when, ..))| *when <= at) {
            let Some(Reverse((_, _, happening))) = self.agenda.pop() else { break };
            self.apply(happening)?;
            self.release()?;
            self.steps += 1;
        }
        Ok(true)
    }

    fn apply(&mut self, happening: Happening) -> Result<(), String> {
        let now = self.now;
        match happening {
            Happening::Submit(job) => return self.submit(job),
            Happening::SubmitSet(set) => return self.submit_set(set),
            Happening::Cancel(job) => self.cancel(job),
            Happening::Ask(owner) => return self.ask(owner),
            Happening::Leave(owner) => return self.leave(owner),
            Happening::Answer(owner) => return self.answer(owner),
            Happening::Rise(owner, rung) => return self.rise(owner, rung),
            Happening::Free(owner) => self.free(owner),
            Happening::RecallByHand(owner) => return self.recall_by_hand(owner),
            Happening::BatchDone(owner) => self.batch_done(owner),
            Happening::ChangePriority(owner) => return self.change_priority(owner),
            Happening::Pin(handle) => self.pin(handle),
            Happening::LetGo(handle) => self.let_go(handle),
            Happening::GiveUpValue(job) => self.give_up_value(job),
            Happening::RecallSession(holder, rung) => self.recall_session(holder, rung),
            Happening::Restart(holder) => return self.restart(holder),
            Happening::Close(holder) => self.close(holder),
            Happening::ShutDown => {
                self.is_closed = true;
                self.scheduler.stop_accepting();
                self.scheduler.end_all(now, &TaskError::ShutDown);
                self.scheduler.refuse_waiting_grants(now);
            }
            Happening::Prepared { flight, at } => self.prepared(flight, at),
            Happening::Land(flight) => return self.land(flight),
            Happening::Checked(flight) => return self.checked_after(flight),
            Happening::Lose(device, generation) => return self.lose(device, generation),
            Happening::Reopened(device, is_well) => self.reopened(device, is_well),
            Happening::Others(device, bytes) => self.devices[device.index()].others = bytes,
            Happening::MemoryRead(device) => self.memory_read(device),
            Happening::Watchdog(sleep) => return self.watchdog_round(sleep),
            Happening::Planned(plan) => self.planned(plan),
        }
        Ok(())
    }

    /// What the runtime does whenever it releases its lock: wakes slots, and follows up on everything that was decided.
    fn release(&mut self) -> Result<(), String> {
        self.notify();
        self.collect_orders();
        self.hear()?;
        self.tell_owners()?;
        let discards = self.scheduler.drain_discards();
        self.discard(discards)?;
        for ending in self.scheduler.drain_endings() {
            self.end(ending.job, Err(ending.error))?;
        }
        Ok(())
    }

    /// What nobody will use again goes.
    fn discard(&mut self, discards: Discards<Pretend>) -> Result<(), String> {
        let gone = discards.sessions.iter().try_for_each(|session| self.session_goes(session));
        drop(discards);
        gone
    }

    fn hear(&mut self) -> Result<(), String> {
        if self.checks.is_none() {
            return Ok(());
        }
        let events = self.scheduler.drain_events();
        for event in &events {
            if let plimsoll_core::event::What::Quarantined { device, ailment } = event.what {
                self.devices[device.index()].quarantined(ailment);
            }
        }
        self.checked(|checks, world| checks.hear(world, &events))
    }

    /// Asks the checks, if they are on.
    fn checked(&mut self, ask: impl FnOnce(&mut Checks, &Self) -> Result<(), String>) -> Result<(), String> {
        let Some(mut checks) = self.checks.take() else { return Ok(()) };
        let result = ask(&mut checks, self);
        self.checks = Some(checks);
        result
    }

    fn before_take(&self, device: DeviceId) -> Option<BeforeTake> {
        self.checks.is_some().then(|| BeforeTake::new(self, device))
    }

    fn after_take(&mut self, before: Option<BeforeTake>, taken: Taken) -> Result<(), String> {
        let Some(mut before) = before else { return Ok(()) };
        self.hear()?;
        let spec = &self.tasks[taken.job].spec;
        if spec.ladder.rungs()[taken.rung].quality < Quality::FULL {
            before.why = self.scheduler.why(self.now, spec);
        }
        self.checked(|checks, world| checks.taken(world, &before, taken))
    }

    fn end(&mut self, job: usize, end: Result<DeviceId, TaskError>) -> Result<(), String> {
        self.checked(|checks, world| checks.ended(world, job, &end))?;
        self.tell_holder(job, &end)?;
        let task = &mut self.tasks[job];
        task.ends += 1;
        task.end = Some(end);
        task.ended_at = self.now;
        if task.ends > 1 {
            return Err(format!("task {job} ended {} times", task.ends));
        }
        self.let_go_of_handles(job);
        self.follow_up(job)
    }

    fn check(&mut self) -> Result<(), String> {
        self.scheduler.check_invariants()?;
        self.hear()?;
        self.checked(|checks, world| checks.at_rest(world))
    }

    /// Nothing is left to happen: every task must have ended once, and nothing but warm things may hold memory.
    ///
    /// # Errors
    /// What does not hold, in words.
    pub fn check_all_ended(&mut self) -> Result<(), String> {
        for (job, task) in self.tasks.iter().enumerate() {
            if task.ends != 1 {
                return Err(format!("task {job} ended {} times", task.ends));
            }
        }
        if self.scheduler.unsettled() + self.scheduler.running() > 0 {
            return Err("the scheduler still holds tasks or runs".into());
        }
        self.check()?;
        self.checked(|checks, world| checks.all_over(world))?;
        self.check_nothing_is_kept()
    }

    /// Every grant is over: without warm things nothing is promised.
    fn check_nothing_is_kept(&mut self) -> Result<(), String> {
        self.scheduler.check_at_rest()?;
        self.scheduler.discard_warm();
        self.release()?;
        for device in self.device_ids() {
            let state = &self.devices[device.index()];
            let real = state.account.bytes() + state.programs.bytes();
            if self.scheduler.ledger().promised(device) + real > Bytes::ZERO {
                return Err(format!("{device}: something is still promised or allocated in the end"));
            }
        }
        self.scheduler.check_invariants()
    }
}
