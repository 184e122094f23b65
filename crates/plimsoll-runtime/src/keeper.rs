//! The keeper: one thread of an orchestrator that keeps its entries in the book, and its allotments as the book says.
//! Never holds the scheduler's lock while it reads, writes or waits for the book, and never makes a task wait for a file: a task
//! that lacks allotment waits in its queue, as for any memory.
//! Invariant: with nothing to do it sleeps until somebody wakes it; how it and the book go together is `book/membership.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::{Bytes, DeviceId, DeviceKind, DeviceSet, Priority};

use crate::book::{self, Membership, Promiser, Seen, Warning};
use crate::shared::{Shared, Stage, drop_quietly};
use crate::wait::Wait;

/// How long a reading of memory is waited for.
const READING_WAIT_MAX: Duration = Duration::from_millis(20);

/// Keeps one orchestrator's entries.
pub(crate) struct Keeper {
    membership: Membership<Orchestrated>,
}

impl Keeper {
    /// A keeper for those devices that are in a book; none if no device is. All are in the first one's book.
    pub(crate) fn new(shared: &Arc<Shared>) -> Option<Self> {
        let listed = || shared.devices.iter().enumerate().filter_map(|(at, opened)| Some((at, opened.device.book()?)));
        let book = listed().next()?.1.book.clone();
        let mut membership = Membership::new(&book, Orchestrated(Arc::clone(shared)));
        let mut state = shared.lock();
        for (at, place) in listed().filter(|(_, place)| place.book == book) {
            let (id, device) = (DeviceId(at as u16), &shared.devices[at].device);
            // What counts a device's bytes: the process for its heap, the device object for all others.
            let address = Arc::as_ptr(device).addr() as u64;
            membership.add(id, place.device.clone(), address, device.facts().kind == DeviceKind::Cpu);
            state.scheduler.set_allotment(shared.now(), id, Some(Bytes::ZERO));
        }
        shared.release(state);
        Some(Self { membership })
    }

    /// What wakes it when there is something for it to do.
    pub(crate) fn wakeup(&self) -> Arc<book::Wakeup> {
        Arc::clone(self.membership.member().wakeup())
    }

    /// Keeps the book until the orchestrator closes, whatever panics on the way.
    pub(crate) fn keep(mut self) {
        while catch_unwind(AssertUnwindSafe(|| self.keep_until_closing())).is_err() {
            // Nobody knows what the book says of us: better alone than stuck.
            self.membership.go_alone();
        }
    }

    fn keep_until_closing(&mut self) {
        while self.membership.promiser().0.lock().stage != Stage::Closing {
            let nap = self.membership.look();
            self.membership.member().wait(nap);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.membership.go_alone();
    }
}

/// An orchestrator, as the book knows it.
struct Orchestrated(Arc<Shared>);

impl Promiser for Orchestrated {
    fn read_again(&mut self, device: DeviceId) {
        let reader = &self.0.devices[device.index()].memory;
        reader.wait(reader.ask(), Wait::at_most(READING_WAIT_MAX));
    }

    fn stand(&mut self, device: DeviceId) -> Seen {
        let mut state = self.0.lock();
        let standing = state.scheduler.standing(device);
        let wanted = state.scheduler.wanted_allotment(device);
        let allotment = state.scheduler.ledger().allotment(device);
        if wanted.is_none() {
            state.keeper_knows = state.keeper_knows.without(device);
        }
        Seen { standing, allotment, wanted }
    }

    fn lower(&mut self, device: DeviceId, line: Bytes, evict: Bytes, recall: Option<Priority>) {
        let mut state = self.0.lock();
        let now = self.0.now();
        let line = line.min(state.scheduler.ledger().allotment(device).unwrap_or(line));
        state.scheduler.set_allotment(now, device, Some(line));
        let discards = state.scheduler.give_up_idle(now, device, evict);
        if let Some(priority) = recall {
            state.scheduler.step_down_for_others(now, device, priority);
        }
        self.0.release(state);
        // They count as promised no longer, but are free only when they are closed: before anything is written.
        drop_quietly(discards);
    }

    fn allotted(&mut self, device: DeviceId) -> Bytes {
        let state = self.0.lock();
        let ledger = state.scheduler.ledger();
        ledger.allotment(device).unwrap_or_default().max(ledger.promised(device))
    }

    fn raise(&mut self, device: DeviceId, line: Bytes) {
        let mut state = self.0.lock();
        state.keeper_knows = state.keeper_knows.without(device);
        state.scheduler.set_allotment(self.0.now(), device, Some(line));
        self.0.release(state);
    }

    fn go_alone(&mut self, device: DeviceId) {
        let mut state = self.0.lock();
        state.scheduler.set_allotment(self.0.now(), device, None);
        self.0.release(state);
    }

    fn warned(&mut self, warning: Option<Warning>) {
        warning.iter().for_each(book::warn);
    }
}

/// How long whoever takes bytes at once or not at all waits for them to be allotted.
const ALLOT_WAIT_MAX: Duration = Duration::from_millis(100);

/// Somebody is about to take these bytes, at once or not at all: has them allotted if that can be done in a moment.
pub(crate) fn have_allotted(shared: &Shared, portions: &[(DeviceId, Bytes)], priority: Priority) {
    if !shared.has_keeper() {
        return;
    }
    let wait = Wait::at_most(ALLOT_WAIT_MAX);
    let mut asked = DeviceSet::NONE;
    loop {
        let mut state = shared.lock();
        state.scheduler.asks_no_longer(asked);
        asked = state.scheduler.will_ask_for(portions, priority);
        let is_over = asked.is_empty() || wait.nap().is_none();
        if is_over {
            state.scheduler.asks_no_longer(asked);
        }
        shared.release(state);
        if is_over {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
