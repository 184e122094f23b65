//! What every thread of an orchestrator shares: the scheduler behind its lock, the devices, the clock.
//! Never runs a task or a callback under the lock.
//!
//! Lock order: the scheduler's lock is never held while another lock is taken or a caller's code runs. The lock of a
//! completion queue, those of the memory readers and the listeners' are taken alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

use plimsoll_core::event::Event;
use plimsoll_core::scheduler::{Discards, Ending, Order};
use plimsoll_core::{DeviceId, DeviceSet, Moment, Nanos, Scheduler};

use crate::book::Wakeup;
use crate::clock::Clock;
use crate::device::Device;
use crate::grant::{self, Calls, Mailboxes};
use crate::job::{Job, Runtime};
use crate::memory_reader::{Ask, MemoryReader};
use crate::monitor::{Guard, LockTimes, Monitor};
use crate::opening::Try;
use crate::submission::SpaceWaiters;
use crate::sync::{Mutex, lock};
use crate::wait::Wait;

/// How long ago readings of memory were asked for when they are asked for again: while there is work, this often.
pub(crate) const MEMORY_AGE_MAX: Nanos = Nanos::millis(200);
/// From this age on readings are so old that whoever places a task waits a moment for new ones. While there is work the
/// watchdog asks more often; so this is the first task after a pause.
const MEMORY_STALE: Nanos = Nanos::millis(300);

/// Counts the orchestrators of this process.
static ORCHESTRATORS: AtomicU64 = AtomicU64::new(0);

/// Hears every event. Called on the thread that caused it, outside all locks of the scheduler; keep it short.
///
/// Batches from two threads may arrive in another order than they happened: each event says when it was. A listener
/// must not hand in work or call the orchestrator: it would wait for itself.
pub trait Listener: Send {
    /// Some events, oldest first.
    fn hear(&mut self, events: &[Event]);
}

impl<F: FnMut(&[Event]) + Send> Listener for F {
    fn hear(&mut self, events: &[Event]) {
        self(events);
    }
}

/// A device and how often it was opened.
pub(crate) struct Opened {
    pub(crate) device: Arc<dyn Device>,
    /// Grows when it is reopened: backends made before are of no use.
    pub(crate) generation: AtomicU32,
    /// Reads its memory.
    pub(crate) memory: Arc<MemoryReader>,
}

pub(crate) struct State {
    pub(crate) scheduler: Scheduler<Runtime>,
    pub(crate) stage: Stage,
    pub(crate) orders: Vec<Order>,
    /// Where the try to open each device is.
    pub(crate) tries: Vec<Try>,
    /// Futures that wait for queue space.
    pub(crate) space_waiters: SpaceWaiters,
    /// What owners of grants have not heard yet.
    pub(crate) mailboxes: Mailboxes,
    /// The devices of which the keeper knows that more is wanted.
    pub(crate) keeper_knows: DeviceSet,
    /// The watchdog sleeps without a time limit: wake it when work arrives.
    pub(crate) watchdog_dozes: bool,
    /// How many slots of each device should ask for work, as of when the lock was last released.
    slots_wanted: Vec<usize>,
}

/// How far along the orchestrator is in its life.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Working,
    /// Everything has ended; threads may go.
    Closing,
}

/// How long devices are waited for.
#[derive(Copy, Clone, Debug)]
pub(crate) struct DeviceWaits {
    pub(crate) open_max: Duration,
    pub(crate) reading_max: Duration,
}

pub(crate) struct Shared {
    /// Tells this orchestrator from every other of the process.
    pub(crate) id: u64,
    registrations: AtomicU64,
    state: Monitor<State>,
    pub(crate) devices: Vec<Opened>,
    pub(crate) clock: Clock,
    /// How long a try to open a device may take.
    pub(crate) open_wait_max: Duration,
    /// How long whoever places a task after a pause waits for a reading of memory.
    reading_wait_max: Duration,
    listeners: Mutex<Vec<Box<dyn Listener>>>,
    memory_asked_at: AtomicU64,
    /// Wakes the keeper of the book, if there is one.
    keeper: OnceLock<Arc<Wakeup>>,
}

/// What happened under the lock and is to be followed up outside it.
#[must_use]
struct News {
    endings: Vec<Ending<Arc<dyn Job>>>,
    discards: Discards<Runtime>,
    calls: Calls,
    events: Vec<Event>,
}

impl Shared {
    /// A number that no other orchestrator of this process has.
    pub(crate) fn next_id() -> u64 {
        ORCHESTRATORS.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn new(
        id: u64,
        scheduler: Scheduler<Runtime>,
        devices: Vec<Arc<dyn Device>>,
        clock: Clock,
        waits: DeviceWaits,
        listeners: Vec<Box<dyn Listener>>,
    ) -> Self {
        let condvars = 3 * devices.len() + 3;
        let slots_wanted = (0..devices.len()).map(|at| scheduler.slots_wanted(DeviceId(at as u16))).collect();
        let tries = vec![Try::Idle; devices.len()];
        let (stage, orders) = (Stage::Working, Vec::new());
        let mailboxes = Mailboxes::new();
        let space_waiters = SpaceWaiters::default();
        let watchdog_dozes = false;
        let keeper_knows = DeviceSet::NONE;
        let state = State {
            scheduler,
            stage,
            orders,
            tries,
            space_waiters,
            mailboxes,
            keeper_knows,
            watchdog_dozes,
            slots_wanted,
        };
        let opened = |device| Opened { device, generation: AtomicU32::new(0), memory: MemoryReader::new() };
        Self {
            id,
            registrations: AtomicU64::new(0),
            state: Monitor::new(state, condvars),
            devices: devices.into_iter().map(opened).collect(),
            clock,
            open_wait_max: waits.open_max,
            reading_wait_max: waits.reading_max,
            listeners: Mutex::new(listeners),
            memory_asked_at: AtomicU64::new(clock.now().0),
            keeper: OnceLock::new(),
        }
    }

    /// Who waits for room in the queue, or for everything to end, sleeps here.
    pub(crate) fn queue_space_condvar(&self) -> usize {
        self.devices.len()
    }

    pub(crate) fn watchdog_condvar(&self) -> usize {
        self.devices.len() + 1
    }

    /// Slots beyond those in use sleep here until more are wanted: a notification of work never reaches one that may not take
    /// any.
    pub(crate) fn spare_condvar(&self, device: DeviceId) -> usize {
        self.devices.len() + 2 + device.index()
    }

    /// Slots with a result of a suspect device wait here until it has been checked.
    pub(crate) fn checked_condvar(&self, device: DeviceId) -> usize {
        2 * self.devices.len() + 2 + device.index()
    }

    /// Owners of grants sleep here until they have something to hear.
    pub(crate) fn grants_condvar(&self) -> usize {
        3 * self.devices.len() + 2
    }

    pub(crate) fn condvar_count(&self) -> usize {
        3 * self.devices.len() + 3
    }

    pub(crate) fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn lock_times(&self) -> LockTimes {
        self.state.held()
    }

    /// Releases the lock, wakes whom the scheduler wants awake, and follows up on everything it decided.
    pub(crate) fn release(&self, mut state: Guard<'_, State>) {
        let news = self.notify_and_collect(&mut state);
        drop(state);
        if let Some(news) = news {
            self.follow_up(news);
        }
    }

    /// As [`Shared::release`], but sleeps at a condvar instead of leaving; says whether there was something to follow up,
    /// in which case it did that instead of sleeping.
    pub(crate) fn release_to_wait<'a>(
        &'a self,
        mut state: Guard<'a, State>,
        condvar: usize,
        at_most: Option<Duration>,
    ) -> Guard<'a, State> {
        match self.notify_and_collect(&mut state) {
            None if !state.wakes_later() => state.wait(condvar, at_most),
            news => {
                drop(state);
                news.into_iter().for_each(|news| self.follow_up(news));
                self.lock()
            }
        }
    }

    fn notify_and_collect(&self, state: &mut Guard<'_, State>) -> Option<News> {
        let wakes = state.scheduler.drain_wakes();
        if !wakes.is_empty() {
            for device in (0..self.devices.len()).filter(|at| wakes.contains(DeviceId(*at as u16))) {
                state.notify_one(device);
                self.notify_if_width_changed(state, DeviceId(device as u16));
            }
        }
        self.tell_keeper(state);
        let events = state.scheduler.drain_events();
        if !state.scheduler.has_news() && events.is_empty() {
            return None;
        }
        let orders = state.scheduler.drain_orders();
        if !orders.is_empty() {
            state.orders.extend(orders);
            let condvar = self.watchdog_condvar();
            state.notify_one(condvar);
        }
        let endings = state.scheduler.drain_endings();
        if !endings.is_empty() {
            self.notify_queue_space(state);
        }
        let mut discards = state.scheduler.drain_discards();
        let calls = self.deliver_to_owners(state, &mut discards);
        Some(News { endings, discards, calls, events })
    }

    /// More is wanted of a device than was allotted: the keeper hears of it once, and looks until it is no longer so.
    #[inline]
    fn tell_keeper(&self, state: &mut Guard<'_, State>) {
        let wanted = state.scheduler.drain_wants();
        if !wanted.is_empty() && !state.keeper_knows.contains_all(wanted) {
            state.keeper_knows = state.keeper_knows.union(wanted);
            self.ring_keeper();
        }
    }

    /// There is something for the keeper of the book to do.
    pub(crate) fn ring_keeper(&self) {
        if let Some(wakeup) = self.keeper.get() {
            wakeup.wake();
        }
    }

    pub(crate) fn has_keeper(&self) -> bool {
        self.keeper.get().is_some()
    }

    pub(crate) fn set_keeper(&self, wakeup: Arc<Wakeup>) {
        let _ = self.keeper.set(wakeup);
    }

    /// Owners of grants have something to hear: they wake, and so does the watchdog, for something new may be due.
    fn deliver_to_owners(&self, state: &mut Guard<'_, State>, discards: &mut Discards<Runtime>) -> Calls {
        if !state.scheduler.has_grant_news() {
            return Calls::default();
        }
        let calls = grant::deliver(self, state, discards);
        state.notify_all(self.grants_condvar());
        state.notify_one(self.watchdog_condvar());
        calls
    }

    /// Who may take work is another question now: every slot of the device asks it again.
    fn notify_if_width_changed(&self, state: &mut Guard<'_, State>, device: DeviceId) {
        let wanted = state.scheduler.slots_wanted(device);
        if std::mem::replace(&mut state.slots_wanted[device.index()], wanted) != wanted {
            state.notify_all(device.index());
            state.notify_all(self.spare_condvar(device));
        }
    }

    /// Tasks ended: who waits for room should look.
    pub(crate) fn notify_queue_space(&self, state: &mut Guard<'_, State>) {
        state.notify_all(self.queue_space_condvar());
        if !state.space_waiters.is_empty() {
            let space = state.scheduler.queue_space();
            let woken: Vec<Waker> = state.space_waiters.take_first(space).collect();
            state.wake_later(woken);
        }
    }

    fn follow_up(&self, news: News) {
        drop_quietly(news.discards);
        news.calls.make();
        for Ending { task, job, error } in news.endings {
            quietly(move || {
                job.stop();
                job.deliver(task, Err(error), false);
            });
        }
        if !news.events.is_empty() {
            for listener in lock(&self.listeners).iter_mut() {
                quietly(|| listener.hear(&news.events));
            }
        }
    }

    /// A number for a workload that no other workload of this orchestrator has.
    pub(crate) fn next_registration(&self) -> u64 {
        self.registrations.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Asks for new readings of every device's memory if the last were asked for too long ago. Nobody waits for them.
    pub(crate) fn ask_for_memory(&self) {
        drop(self.ask_if_old());
    }

    /// How long until readings are to be asked for again.
    pub(crate) fn memory_due(&self, now: Moment) -> Nanos {
        MEMORY_AGE_MAX - now.since(Moment(self.memory_asked_at.load(Ordering::Relaxed)))
    }

    /// As [`Shared::ask_for_memory`]; after a long pause it also waits a moment for the answers, so that the first task
    /// is placed by what is free now. A device that does not answer in time is placed by its last reading.
    pub(crate) fn refresh_memory(&self) {
        let Some((age, asks)) = self.ask_if_old() else { return };
        if age < MEMORY_STALE {
            return;
        }
        let wait = Wait::at_most(self.reading_wait_max);
        let answering = self.devices.iter().zip(asks).filter(|(_, ask)| !ask.hangs);
        answering.for_each(|(opened, ask)| opened.memory.wait(ask, wait));
    }

    /// Asks every reader, unless somebody has lately: one thread at a time does it. Says how long ago the last ask was.
    fn ask_if_old(&self) -> Option<(Nanos, Vec<Ask>)> {
        let (now, asked_at) = (self.now(), self.memory_asked_at.load(Ordering::Relaxed));
        let age = now.since(Moment(asked_at));
        if age < MEMORY_AGE_MAX {
            return None;
        }
        let claimed = self.memory_asked_at.compare_exchange(asked_at, now.0, Ordering::Relaxed, Ordering::Relaxed);
        claimed.ok().map(|_| (age, self.devices.iter().map(|opened| opened.memory.ask()).collect()))
    }
}

/// Runs a caller's code (a drop, a waker, a listener) whose panic must cost nobody else anything. The panic itself was
/// already reported where it happened.
pub(crate) fn quietly(act: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(act));
}

/// Closes what has to go, one by one.
pub(crate) fn drop_quietly(discards: Discards<Runtime>) {
    discards.sessions.into_iter().for_each(|session| quietly(move || drop(session)));
    discards.references.into_iter().for_each(|reference| quietly(move || drop(reference)));
    discards.values.into_iter().for_each(|value| quietly(move || drop(value)));
    discards.jobs.into_iter().for_each(|job| quietly(move || drop(job)));
    discards.states.into_iter().for_each(|state| quietly(move || drop(state)));
}
