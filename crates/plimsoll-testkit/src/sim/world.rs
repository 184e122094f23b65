//! The world: a clock, virtual devices with their faults, and a scheduler that knows of neither.
//! Never lets the scheduler see a fault before it happens.
//! Invariant: after every step everything in `World::check` holds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use plimsoll_core::line::{Margin, Memory};
use plimsoll_core::rng::Rng;
use plimsoll_core::scheduler::{
    Assignment, Config, DeviceSpec, Host, Measured, Order, Outcome, ReferenceTurn, RunId, SessionTurn, SetTask, Settled,
};
use plimsoll_core::{
    Bytes, DeviceId, DeviceKind, Fault, MemoryMoment, Moment, Nanos, Scheduler, TaskError, TaskId, TaskSpec,
};

use super::truth::{Account, Allocation};
use super::watch::SequenceWatch;

/// Steps after which a run counts as hung.
const STEPS_MAX: usize = 2_000_000;

/// What the scheduler carries in simulation.
#[derive(Debug)]
pub struct Pretend;

impl Host for Pretend {
    type Job = usize;
    type Session = Allocation;
    type Prepared = Rc<Allocation>;
}

/// A virtual device.
#[derive(Clone, Debug)]
pub struct VirtualGpu {
    /// CPU or GPU.
    pub kind: DeviceKind,
    /// Tasks at once at the most.
    pub slots: usize,
    /// Tasks at once to begin with, if how many are best is to be measured.
    pub width_first: Option<usize>,
    /// How much it gets done with 1, 2, 3 … tasks at once, as a multiple of what it gets done with one: copies of one hide
    /// behind kernels of another. Each task counts in full where nothing is said.
    pub at_once: Vec<f64>,
    /// How much faster than the reference it runs.
    pub speed: f64,
    /// Its memory.
    pub memory: Bytes,
    /// What goes wrong.
    pub faults: Faults,
    /// The patience of the scheduler with it.
    pub stall_after: Option<Nanos>,
    /// Its weight for the weighted strategy.
    pub weight: Option<f64>,
}

impl VirtualGpu {
    /// A device without faults.
    pub fn new(kind: DeviceKind, slots: usize, speed: f64, memory: Bytes) -> Self {
        let (faults, at_once) = (Faults::default(), Vec::new());
        Self { kind, slots, width_first: None, at_once, speed, memory, faults, stall_after: None, weight: None }
    }
}

/// What goes wrong on a device, as the chance per run.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Memory runs out while opening or running.
    pub out_of_memory: f64,
    /// The answer is wrong, and noticed.
    pub wrong_answer: f64,
    /// No answer comes for a long time.
    pub stall: f64,
    /// The device goes away in the middle.
    pub lost: f64,
    /// A try to reopen it fails.
    pub reopen_fails: f64,
    /// Runs take up to this many times longer than they should.
    pub jitter: f64,
}

/// How a task went in truth.
#[derive(Clone, Debug)]
pub struct TaskTruth {
    /// What the scheduler was told.
    pub spec: TaskSpec,
    /// Time per unit on a device of speed 1, by kind of device.
    pub cost: Cost,
    /// Whether the work itself fails.
    pub fails: bool,
    /// Whether it panics.
    pub panics: bool,
    /// Its id, once it was taken in.
    pub id: Option<TaskId>,
    /// The tasks that must have succeeded before.
    pub predecessors: Vec<usize>,
    /// How often it ended: once, if all is well.
    pub ends: u32,
    /// How it ended.
    pub end: Option<Result<DeviceId, TaskError>>,
    /// When it ended.
    pub ended_at: Moment,
}

/// What a task really costs.
#[derive(Copy, Clone, Debug, Default)]
pub struct Cost {
    /// On a CPU slot of speed 1.
    pub cpu: Nanos,
    /// On a GPU of speed 1.
    pub gpu: Nanos,
    /// To open a session.
    pub open: Nanos,
    /// To prepare a reference.
    pub bring: Nanos,
}

#[derive(Debug)]
struct Flight {
    run: RunId,
    job: usize,
    device: DeviceId,
    generation: u32,
    result: Result<(), Fault>,
    /// `None` if it stands behind another and uses its session.
    session: Option<Allocation>,
    /// Runs that follow it in the same slot, and land with it.
    behind: Vec<usize>,
    task_bytes: Allocation,
    held: Vec<Rc<Allocation>>,
    measured: Measured,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Submit(usize),
    Cancel(usize),
    Prepared { flight: usize, at: usize },
    Land(usize),
    Lose(DeviceId, u32),
    Reopened(DeviceId, bool),
    Others(DeviceId, Bytes),
    Tick,
}

struct VirtualState {
    gpu: VirtualGpu,
    account: Account,
    generation: u32,
    others: Bytes,
    /// Slots with a run on them.
    flying: usize,
}

impl VirtualState {
    /// How much longer a run takes because of those beside it.
    fn crowding(&self) -> f64 {
        let at_once = self.flying.max(1);
        self.gpu.at_once.get(at_once - 1).map_or(1.0, |gain| at_once as f64 / gain)
    }
}

/// A box in virtual time.
pub struct World {
    scheduler: Scheduler<Pretend>,
    now: Moment,
    rng: Rng,
    devices: Vec<VirtualState>,
    tasks: Vec<TaskTruth>,
    flights: Vec<Option<Flight>>,
    agenda: BinaryHeap<Reverse<(Moment, u64, Happening)>>,
    order: u64,
    tick_at: Option<Moment>,
    steps: usize,
    bites: f64,
    watch: Option<SequenceWatch>,
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
            spec.margin = Margin { share: 1.0, limit: None };
            let device = scheduler.add_device(spec);
            scheduler.device_opened(Moment::START, device);
            let (account, others) = (Account::default(), Bytes::ZERO);
            states.push(VirtualState { gpu, account, generation: 0, others, flying: 0 });
        }
        Self {
            scheduler,
            now: Moment::START,
            rng: Rng::new(seed),
            devices: states,
            tasks: Vec::new(),
            flights: Vec::new(),
            agenda: BinaryHeap::new(),
            order: 0,
            tick_at: None,
            steps: 0,
            bites: 0.0,
            watch: None,
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

    /// How every task went.
    pub fn tasks(&self) -> &[TaskTruth] {
        &self.tasks
    }

    /// A task that arrives at this moment, to run after others that arrived before.
    pub fn arrive(&mut self, at: Moment, spec: TaskSpec, cost: Cost, predecessors: Vec<usize>) -> usize {
        let job = self.add(spec, cost);
        self.tasks[job].predecessors = predecessors;
        self.plan(at, Happening::Submit(job));
        job
    }

    /// A task that the caller of the world hands in itself.
    pub fn add(&mut self, spec: TaskSpec, cost: Cost) -> usize {
        let job = self.tasks.len();
        self.tasks.push(TaskTruth {
            spec,
            cost,
            fails: false,
            panics: false,
            predecessors: Vec::new(),
            id: None,
            ends: 0,
            end: None,
            ended_at: Moment::START,
        });
        job
    }

    /// Makes a task's work fail, or panic.
    pub fn sabotage(&mut self, job: usize, panics: bool) {
        let task = &mut self.tasks[job];
        task.panics = panics;
        task.fails = !panics;
    }

    /// The caller cancels a task at this moment.
    pub fn cancel_at(&mut self, at: Moment, job: usize) {
        self.plan(at, Happening::Cancel(job));
    }

    /// Other programs hold this much of a device from this moment on.
    pub fn others_at(&mut self, at: Moment, device: DeviceId, bytes: Bytes) {
        self.plan(at, Happening::Others(device, bytes));
    }

    /// A device goes away at this moment.
    pub fn lose_at(&mut self, at: Moment, device: DeviceId) {
        let generation = self.devices[device.index()].generation;
        self.plan(at, Happening::Lose(device, generation));
    }

    /// From now on it is checked that sequences stay together.
    pub fn watch_sequences(&mut self) {
        self.scheduler.listen(true);
        self.watch = Some(SequenceWatch::new(self.devices.len()));
    }

    fn plan(&mut self, at: Moment, happening: Happening) {
        self.order += 1;
        self.agenda.push(Reverse((at, self.order, happening)));
    }

    /// Runs until nothing is left to happen.
    ///
    /// # Errors
    /// The first broken invariant, in words.
    pub fn run(&mut self) -> Result<(), String> {
        while self.step()? {}
        self.check_all_ended()
    }

    /// Free slots take what there is, then whatever is next happens. Says whether anything did.
    ///
    /// # Errors
    /// The first broken invariant, in words.
    pub fn step(&mut self) -> Result<bool, String> {
        self.dispatch()?;
        self.check()?;
        if self.steps > STEPS_MAX {
            return Err(format!("still running after {STEPS_MAX} steps at {:?}", self.now));
        }
        Ok(self.advance())
    }

    /// Everything that happens at the next moment happens before any slot asks for work. Says whether anything did.
    fn advance(&mut self) -> bool {
        let Some(&Reverse((at, ..))) = self.agenda.peek() else { return false };
        self.now = self.now.max(at);
        while self.agenda.peek().is_some_and(|Reverse((when, ..))| *when <= at) {
            let Some(Reverse((_, _, happening))) = self.agenda.pop() else { break };
            self.apply(happening);
            self.follow_up();
            self.steps += 1;
        }
        true
    }

    /// Hands in a whole set at once; the jobs are those that [`World::add`] gave.
    ///
    /// # Errors
    /// The scheduler's refusal, in words.
    pub fn submit_all(&mut self, set: Vec<SetTask<usize>>) -> Result<(), String> {
        let jobs: Vec<usize> = set.iter().map(|task| task.job).collect();
        let ids = self.scheduler.submit_all(self.now, set).map_err(|(refusal, _)| refusal.to_string())?;
        for (job, id) in jobs.into_iter().zip(ids) {
            self.tasks[job].id = Some(id);
        }
        Ok(())
    }

    /// Free slots take what there is, until nobody takes anything.
    fn dispatch(&mut self) -> Result<(), String> {
        loop {
            self.follow_up();
            let mut took = false;
            for at in 0..self.devices.len() {
                let device = DeviceId(at as u16);
                while let Some(assignment) = self.scheduler.take(self.now, device) {
                    took = true;
                    let head = assignment.run;
                    let (flight, lands_at) = self.fly(device, assignment)?;
                    let behind = self.follow(device, head, flight)?;
                    self.plan(lands_at + behind, Happening::Land(flight));
                }
            }
            if !took {
                break;
            }
        }
        self.follow_up();
        self.plan_tick();
        Ok(())
    }

    /// Sometimes a slot takes several runs at once. Returns how long those behind the first take.
    fn follow(&mut self, device: DeviceId, head: RunId, flight: usize) -> Result<Nanos, String> {
        let mut together = Nanos::ZERO;
        while self.rng.chance(self.bites) {
            let Some(assignment) = self.scheduler.take_behind(self.now, head) else { break };
            let (behind, lands_at) = self.fly(device, assignment)?;
            together += lands_at.since(self.now);
            if let Some(head) = &mut self.flights[flight] {
                head.behind.push(behind);
            }
        }
        Ok(together)
    }

    /// How likely a slot is to take another run behind the one it took.
    pub fn set_bites(&mut self, chance: f64) {
        self.bites = chance;
    }

    /// Endings, orders and wakes: the scheduler's side effects.
    fn follow_up(&mut self) {
        self.scheduler.drain_wakes();
        drop(self.scheduler.drain_discards());
        for ending in self.scheduler.drain_endings() {
            self.end(ending.job, Err(ending.error));
        }
        for Order::Reopen(device) in self.scheduler.drain_orders() {
            let fails = self.rng.chance(self.devices[device.index()].gpu.faults.reopen_fails);
            let takes = Nanos::millis(self.rng.within(1, 50));
            self.plan(self.now + takes, Happening::Reopened(device, !fails));
        }
    }

    fn plan_tick(&mut self) {
        let due = self.scheduler.next_tick().map(|at| at.max(self.now));
        if let Some(at) = due.filter(|at| self.tick_at.is_none_or(|planned| *at < planned || planned <= self.now)) {
            self.tick_at = Some(at);
            self.plan(at, Happening::Tick);
        }
    }

    fn apply(&mut self, happening: Happening) {
        let now = self.now;
        match happening {
            Happening::Submit(job) => self.submit(job),
            Happening::Cancel(job) => {
                if let Some(id) = self.tasks[job].id {
                    self.scheduler.cancel(now, id);
                }
            }
            Happening::Prepared { flight, at } => self.prepared(flight, at),
            Happening::Land(flight) => self.land(flight),
            Happening::Lose(device, generation) => self.lose(device, generation),
            Happening::Reopened(device, true) => self.scheduler.device_opened(now, device),
            Happening::Reopened(device, false) => self.scheduler.device_failed_to_open(now, device),
            Happening::Others(device, bytes) => self.others(device, bytes),
            Happening::Tick => {
                self.tick_at = None;
                self.scheduler.tick(now);
            }
        }
    }

    fn submit(&mut self, job: usize) {
        let mut spec = self.tasks[job].spec.clone();
        let before: Option<_> = self.tasks[job].predecessors.iter().map(|&before| self.tasks[before].id).collect();
        // A full queue, or a predecessor that is itself still waiting to be taken in: the caller comes back.
        let come_back = self.now + Nanos::millis(100);
        let Some(after) = before else { return self.plan(come_back, Happening::Submit(job)) };
        spec.after = after;
        match self.scheduler.submit(self.now, spec, job) {
            Ok(id) => {
                self.tasks[job].id = Some(id);
                if let (Some(watch), Some(sequence)) = (&mut self.watch, self.tasks[job].spec.sequence) {
                    watch.joined(id, sequence);
                }
            }
            Err(_) => self.plan(come_back, Happening::Submit(job)),
        }
    }

    /// Starts an attempt and decides, unseen by the scheduler, how it will go.
    fn fly(&mut self, device: DeviceId, assignment: Assignment<Pretend>) -> Result<(usize, Moment), String> {
        let Assignment { run, job, rung, discards, session, references, .. } = assignment;
        drop(discards);
        let task = &self.tasks[job];
        if task.end.is_some() {
            return Err(format!("task {job} was started after it had ended"));
        }
        let rung = &task.spec.ladder.rungs()[rung];
        let (footprint, cost) = (rung.footprint, task.cost);
        let account = self.devices[device.index()].account.clone();
        let opens = matches!(session, SessionTurn::Open(_));
        let session = match session {
            SessionTurn::Warm(session) => Some(session),
            SessionTurn::Open(_) => Some(account.allocate(footprint.session)),
            SessionTurn::Behind => None,
        };
        let speed = self.devices[device.index()].gpu.speed;
        let mut held = Vec::new();
        let mut clock = self.now + if opens { cost.open.scaled(1.0 / speed) } else { Nanos::ZERO };
        let flight = self.flights.len();
        let mut brought = 0;
        for (at, reference) in references.into_iter().enumerate() {
            match reference {
                ReferenceTurn::Ready(prepared) => held.push(prepared),
                ReferenceTurn::Prepare => {
                    brought += 1;
                    clock = clock + cost.bring.scaled(1.0 / speed);
                    held.push(Rc::new(account.allocate(footprint.reference)));
                    self.plan(clock, Happening::Prepared { flight, at });
                }
            }
        }
        let task_bytes = account.allocate(footprint.task);
        self.devices[device.index()].flying += usize::from(session.is_some());
        let (took, result) = self.fate(device, job);
        let bring = clock.since(self.now) - if opens { cost.open.scaled(1.0 / speed) } else { Nanos::ZERO };
        let measured = Measured {
            open: opens.then(|| cost.open.scaled(1.0 / speed)),
            bring,
            brought,
            run: took,
            peak: Some(footprint.total(held.len())),
        };
        let generation = self.devices[device.index()].generation;
        let behind = Vec::new();
        let flown = Flight { run, job, device, generation, result, session, behind, task_bytes, held, measured };
        self.flights.push(Some(flown));
        self.check_line(device)?;
        Ok((flight, clock + took))
    }

    /// How long an attempt takes and how it ends.
    fn fate(&mut self, device: DeviceId, job: usize) -> (Nanos, Result<(), Fault>) {
        let state = &self.devices[device.index()];
        let task = &self.tasks[job];
        let base = match state.gpu.kind {
            DeviceKind::Cpu => task.cost.cpu,
            DeviceKind::Gpu => task.cost.gpu,
        };
        let (faults, generation) = (state.gpu.faults.clone(), state.generation);
        let mut took = base.scaled(state.crowding() / state.gpu.speed);
        if faults.jitter > 0.0 {
            took = took.scaled(1.0 + faults.jitter * self.rng.below(1000) as f64 / 1000.0);
        }
        if task.fails {
            return (took, Err(Fault::work(format!("work {job}"))));
        }
        if task.panics {
            return (took, Err(Fault::Panicked { message: format!("work {job}") }));
        }
        if self.rng.chance(faults.out_of_memory) {
            let moment = if self.rng.chance(0.5) { MemoryMoment::Open } else { MemoryMoment::Run };
            return (took.scaled(0.3), Err(Fault::OutOfMemory { moment, wanted: Bytes(1) }));
        }
        if self.rng.chance(faults.wrong_answer) {
            return (took, Err(Fault::WrongAnswer { detail: "simulated".into() }));
        }
        if self.rng.chance(faults.stall) {
            // It comes back long after everyone has stopped waiting, and claims success.
            return (took + Nanos::seconds(self.rng.within(20, 200)), Ok(()));
        }
        if self.rng.chance(faults.lost) {
            let at = self.now + Nanos(self.rng.within(1, took.0.max(2)));
            self.plan(at, Happening::Lose(device, generation));
        }
        (took, Ok(()))
    }

    fn prepared(&mut self, flight: usize, at: usize) {
        let Some(Some(state)) = self.flights.get(flight) else { return };
        if state.generation == self.devices[state.device.index()].generation {
            let (run, prepared) = (state.run, Rc::clone(&state.held[at]));
            self.scheduler.prepared(run, at, prepared);
        }
    }

    fn land(&mut self, flight: usize) {
        let Some(state) = self.flights[flight].take() else { return };
        let Flight { run, job, device, result, session, behind, task_bytes, held, measured, .. } = state;
        drop((task_bytes, held));
        self.devices[device.index()].flying -= usize::from(session.is_some());
        let session = session.filter(|_| result.is_ok());
        for follower in behind {
            match session {
                Some(_) => self.land(follower),
                // The session died with the head: who stood behind it was never started.
                None => self.ground(follower),
            }
        }
        let outcome = Outcome { result, session, measured };
        if let Settled::Done(report) = self.scheduler.settle(self.now, run, outcome) {
            debug_assert_eq!(report.device, device);
            self.end(job, Ok(device));
        }
    }

    fn ground(&mut self, flight: usize) {
        if let Some(state) = self.flights[flight].take() {
            let run = state.run;
            drop(state);
            self.scheduler.put_back(self.now, run);
        }
    }

    /// The device goes away: whatever runs on it fails now, whatever was on it is gone.
    fn lose(&mut self, device: DeviceId, generation: u32) {
        if self.devices[device.index()].generation != generation {
            return;
        }
        self.devices[device.index()].generation += 1;
        for at in 0..self.flights.len() {
            let Some(flight) = &mut self.flights[at] else { continue };
            if flight.device == device && flight.session.is_some() {
                flight.result = Err(Fault::DeviceLost { detail: "simulated".into() });
                self.land(at);
            }
        }
    }

    fn others(&mut self, device: DeviceId, bytes: Bytes) {
        let state = &mut self.devices[device.index()];
        state.others = bytes;
        let capacity = state.gpu.memory;
        let ours = state.account.bytes();
        let memory = Memory { capacity, free: capacity - bytes - ours, ours, resident: None };
        self.scheduler.set_memory(self.now, device, memory);
    }

    fn end(&mut self, job: usize, end: Result<DeviceId, TaskError>) {
        let task = &mut self.tasks[job];
        task.ends += 1;
        task.end = Some(end);
        task.ended_at = self.now;
    }

    /// A promise was just made: the bytes promised and the bytes really there must both be under the line.
    fn check_line(&self, device: DeviceId) -> Result<(), String> {
        let ledger = self.scheduler.ledger();
        let (line, promised) = (ledger.line(device), ledger.promised(device));
        let real = self.devices[device.index()].account.bytes();
        if promised > line {
            return Err(format!("{device}: {promised} promised past the line of {line}"));
        }
        if real > promised {
            return Err(format!("{device}: {real} allocated, but only {promised} promised"));
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        self.scheduler.check_invariants()?;
        if let Some(watch) = &mut self.watch {
            self.scheduler.drain_events().iter().try_for_each(|event| watch.hear(&event.what))?;
        }
        for (at, state) in self.devices.iter().enumerate() {
            let promised = self.scheduler.ledger().promised(DeviceId(at as u16));
            let real = state.account.bytes();
            if real > promised {
                return Err(format!("device {at}: {real} allocated, but only {promised} promised"));
            }
        }
        Ok(())
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
        self.check()
    }
}
