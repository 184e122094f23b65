//! Describes an orchestrator, checks the description, and starts it.
//! Never leaves a thread behind if it cannot start.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_core::balancer::Strategy;
use plimsoll_core::line::{Margin, Memory};
use plimsoll_core::profile::Hardware;
use plimsoll_core::scheduler::{Config, DeviceSpec};
use plimsoll_core::{Bytes, DeviceId, DeviceKind, Nanos, Scheduler};

use crate::clock::{Clock, today};
use crate::cpu::CpuDevice;
use crate::device::Device;
use crate::keeper::Keeper;
use crate::learnt::{Learning, SOFTWARE, device_keys, machine_of};
use crate::memory_reader::{ANSWER_WAIT_MAX, Reading};
use crate::opening::{self, How, OPEN_WAIT_MAX};
use crate::orchestrator::{Limits, Orchestrator};
use crate::profile_file::ProfileFile;
use crate::shared::{DeviceWaits, Listener, Opened, Shared};
use crate::task_path::{Slot, panic_message};
use crate::watchdog;

/// How long a GPU may take beyond its prediction before its work is moved. The GPU's own time limit comes first.
const GPU_STALL: Nanos = Nanos::seconds(90);

/// Describes an orchestrator.
#[must_use = "nothing starts before `build`"]
pub struct Builder {
    devices: Vec<Arc<dyn Device>>,
    weights: Vec<(usize, f64)>,
    config: Config,
    margin: Margin,
    submit_wait_max: Duration,
    window: usize,
    inbox_limit: Option<usize>,
    device_waits: DeviceWaits,
    stall_after: Option<Nanos>,
    listeners: Vec<Box<dyn Listener>>,
    profile: Option<(ProfileFile, Option<Hardware>)>,
    anew: bool,
    alone: bool,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            devices: Vec::new(),
            weights: Vec::new(),
            config: Config { software: SOFTWARE.to_owned(), ..Config::default() },
            margin: Margin::default(),
            submit_wait_max: Duration::from_secs(60),
            window: 1024,
            inbox_limit: None,
            device_waits: DeviceWaits { open_max: OPEN_WAIT_MAX, reading_max: ANSWER_WAIT_MAX },
            stall_after: None,
            listeners: Vec::new(),
            profile: None,
            anew: false,
            alone: false,
        }
    }

    /// Adds a device. Without any, [`Builder::build`] adds the CPU.
    pub fn device(mut self, device: Arc<dyn Device>) -> Self {
        self.devices.push(device);
        self
    }

    /// Adds devices.
    pub fn devices(mut self, devices: impl IntoIterator<Item = Arc<dyn Device>>) -> Self {
        self.devices.extend(devices);
        self
    }

    /// Adds a CPU pool with this many slots.
    pub fn cpu(self, slots: usize) -> Self {
        self.device(Arc::new(CpuDevice::builder().slots(slots).build()))
    }

    /// How to pick among devices.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.config.strategy = strategy;
        self
    }

    /// The share of the `at`-th device under the weighted strategy.
    pub fn weight(mut self, at: usize, weight: f64) -> Self {
        self.weights.push((at, weight));
        self
    }

    /// Tasks taken in and not yet ended, at the most. A full queue refuses.
    pub fn queue_limit(mut self, tasks: usize) -> Self {
        self.config.queue_limit = tasks.max(1);
        self
    }

    /// Tasks that one `run_all` has under way at the most.
    pub fn window(mut self, tasks: usize) -> Self {
        self.window = tasks.max(1);
        self
    }

    /// From this many tasks of one inbox on that were submitted and not taken out, it refuses more while results lie in
    /// it that its caller could have taken out before. Twice the queue's limit unless set.
    pub fn inbox_limit(mut self, tasks: usize) -> Self {
        self.inbox_limit = Some(tasks.max(1));
        self
    }

    /// How long `submit` waits for room in a full queue.
    pub fn submit_wait_max(mut self, span: Duration) -> Self {
        self.submit_wait_max = span;
        self
    }

    /// How long a task waits for memory that no task here will give back.
    pub fn memory_wait_max(mut self, span: Duration) -> Self {
        self.config.memory_wait_max = span.into();
        self
    }

    /// How long a size that ran out of memory is not tried again, the first time; 2 s unless set. Each further time it is
    /// twice as long, up to an hour; clearly more free memory, a success, or [`Orchestrator::forget_failures`] ends it.
    pub fn memory_retry_first(mut self, span: Duration) -> Self {
        self.config.memory_retry_first = span.into();
        self
    }

    /// How long a task waits for a device that could take it to come back.
    pub fn device_wait_max(mut self, span: Duration) -> Self {
        self.config.device_wait_max = span.into();
        self
    }

    /// How long the owner of a grant has to step down when something more urgent needs its bytes; 10 s unless set.
    pub fn recall_within(mut self, span: Duration) -> Self {
        let sharing = &mut self.config.sharing;
        (sharing.step_within, sharing.leave_within) = (span.into(), span.into());
        self
    }

    /// How long bytes that another program gave back stay promised without being seen to be free; 10 s unless set. Then
    /// what the driver says is believed.
    pub fn return_wait_max(mut self, span: Duration) -> Self {
        self.config.return_wait_max = span.into();
        self
    }

    /// How long a device may take to be opened and to give its known answer; 30 s unless set. One that takes longer is
    /// left out, and comes in when it answers.
    pub fn open_wait_max(mut self, span: Duration) -> Self {
        self.device_waits.open_max = span;
        self
    }

    /// How long the first task after a pause waits for a device to say how much memory is free; 5 ms unless set. A device
    /// that takes longer counts with what it said last.
    pub fn reading_wait_max(mut self, span: Duration) -> Self {
        self.device_waits.reading_max = span;
        self
    }

    /// The share of what others leave free that may be promised; 0.85 unless set.
    pub fn margin(mut self, share: f64) -> Self {
        self.margin.share = share.clamp(0.0, 1.0);
        self
    }

    /// Never promise more than this on any device.
    pub fn memory_limit(mut self, limit: impl Into<Option<Bytes>>) -> Self {
        self.margin.limit = limit.into();
        self
    }

    /// Simulated schedules tried before a known set of tasks is committed to; 0 plans nothing ahead.
    pub fn lookahead(mut self, simulations: u32) -> Self {
        self.config.lookahead = simulations;
        self
    }

    /// How long beyond its prediction a run may take on any device before its task is moved elsewhere. Without it, only
    /// GPUs are watched: a CPU task may be as long as its caller likes.
    pub fn stall_after(mut self, span: Duration) -> Self {
        self.stall_after = Some(span.into());
        self
    }

    /// Hears every event. Without listeners no event is ever made.
    pub fn listener(mut self, listener: impl Listener + 'static) -> Self {
        self.listeners.push(Box::new(listener));
        self
    }

    /// Starts from this profile and saves what is learnt into it. `machine` names the whole machine if the devices
    /// here are only a part of it.
    pub fn profile(mut self, file: ProfileFile, machine: Option<Hardware>) -> Self {
        self.profile = Some((file, machine));
        self
    }

    /// Measures anew: the profile given is not loaded, and what is learnt takes the place of what it holds of the same
    /// workloads, rungs and devices. What it holds of others stays.
    pub fn measure_anew(mut self) -> Self {
        self.anew = true;
        self
    }

    /// Keeps to itself: devices that could share their memory with other orchestrators by the [book](crate::book) do not.
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Starts it. Every device is opened, all at the same time, and has to give its known answer before it is given work;
    /// one that cannot, or takes too long, is left out and tried again later.
    pub fn build(mut self) -> Orchestrator {
        if self.devices.is_empty() {
            self.devices.push(Arc::new(CpuDevice::open()));
        }
        let clock = Clock::start();
        let learning = self.learning();
        let id = Shared::next_id();
        self.config.owner = (id % u64::from(u16::MAX)) as u16;
        let scheduler = self.scheduler(clock, learning.as_ref());
        let limits = self.limits();
        let shared = Arc::new(Shared::new(id, scheduler, self.devices, clock, self.device_waits, self.listeners));
        let readers = start_readers(&shared, self.margin);
        let mut threads = start(&shared);
        if !self.alone {
            threads.extend(start_keeper(&shared));
        }
        for at in 0..shared.devices.len() {
            opening::begin(&shared, DeviceId(at as u16), How::First);
        }
        opening::wait_for_all(&shared);
        Orchestrator { shared, threads, readers, limits, learning }
    }

    fn limits(&self) -> Limits {
        let inbox = self.inbox_limit.unwrap_or(self.config.queue_limit.saturating_mul(2));
        Limits { submit_wait_max: self.submit_wait_max, window: self.window, inbox }
    }

    fn learning(&mut self) -> Option<Learning> {
        let (file, machine) = self.profile.take()?;
        let machine = machine.unwrap_or_else(|| machine_of(self.devices.iter().map(|device| device.facts())));
        Some(Learning::new(file, machine, device_keys(&self.devices), self.anew))
    }

    fn scheduler(&self, clock: Clock, learning: Option<&Learning>) -> crate::Core {
        let mut scheduler = Scheduler::new(self.config.clone(), clock.now());
        for (at, device) in self.devices.iter().enumerate() {
            let facts = device.facts();
            let mut spec = DeviceSpec::new(facts.kind, facts.slots, Bytes::ZERO);
            // Nobody knows yet: its first reading says, and it is given no work before that.
            (spec.memory, spec.margin) = (Memory::default(), self.margin);
            spec.weight = self.weights.iter().find(|(of, _)| *of == at).map(|(_, weight)| *weight);
            spec.width_first = device.width_first();
            spec.stall_after = self.stall_after.or((facts.kind == DeviceKind::Gpu).then_some(GPU_STALL));
            scheduler.add_device(spec);
        }
        scheduler.listen(!self.listeners.is_empty());
        if let Some(profile) = learning.and_then(Learning::load) {
            scheduler.load(clock.now(), today(), Arc::new(profile), device_keys(&self.devices));
        }
        scheduler
    }
}

fn start_readers(shared: &Arc<Shared>, margin: Margin) -> Vec<JoinHandle<()>> {
    let reader = |(at, opened): (usize, &Opened)| {
        let (reader, device) = (Arc::clone(&opened.memory), Arc::clone(&opened.device));
        let reading = Reading { shared: Arc::downgrade(shared), device, id: DeviceId(at as u16), margin };
        if opened.device.answers_at_once() {
            reader.read_at_once(reading);
            return None;
        }
        let thread = spawn(format!("plimsoll-memory-{at}"), move || reading.read_until_closing(&reader));
        if thread.is_none() {
            // Nobody will ever answer: who waits for its memory should know.
            opened.memory.close();
        }
        thread
    };
    shared.devices.iter().enumerate().filter_map(reader).collect()
}

/// Without its thread nobody would ever allot anything: then there is no keeper.
fn start_keeper(shared: &Arc<Shared>) -> Option<JoinHandle<()>> {
    let keeper = Keeper::new(shared)?;
    shared.set_keeper(keeper.wakeup());
    spawn("plimsoll-book".to_owned(), move || keeper.keep())
}

fn start(shared: &Arc<Shared>) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    for (at, opened) in shared.devices.iter().enumerate() {
        for slot in 0..opened.device.facts().slots.max(1) {
            let shared = Arc::clone(shared);
            let work = move || work_whatever_happens(Slot::new(shared, DeviceId(at as u16), slot));
            threads.extend(spawn(format!("plimsoll-{at}.{slot}"), work));
        }
    }
    let attended = Arc::clone(shared);
    threads.extend(spawn("plimsoll-watchdog".to_owned(), move || watchdog::attend(&attended)));
    threads
}

/// A thread that cannot be started is one slot less; the others still work.
fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(work).ok()
}

/// A worker whose own code panics gives back what it had in hand and goes on.
fn work_whatever_happens(mut slot: Slot) {
    while let Err(panic) = catch_unwind(AssertUnwindSafe(|| slot.work())) {
        slot.give_up_what_is_in_hand(&panic_message(&*panic));
    }
}
