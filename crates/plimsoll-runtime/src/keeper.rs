//! The keeper: one thread of an orchestrator that keeps its entries in the book, and its allotments as the book says.
//! Never holds the scheduler's lock while it reads, writes or waits for the book, and never makes a task wait for a file: a task
//! that lacks allotment waits in its queue, as for any memory.
//! Invariant: what the scheduler may promise is never more than what the book says it was allotted: lowered here first and
//! written then, written first and raised here then. With nothing to do it sleeps until somebody rings.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::allotment::{Other, REST_AFTER, SETTLE, SILENT_MAX, Seat, Standing, Verdict, decide};
use plimsoll_core::{Bytes, DeviceId, DeviceKind, DeviceSet, Priority};

use crate::book::{self, BookError, Entry, Member, MemberId, Place, Warning};
use crate::shared::{Shared, Stage, drop_quietly};
use crate::wait::Wait;

/// How often the book is looked at while something is wanted, by us of others or by others of us.
const WANTING: Duration = Duration::from_millis(20);
/// How often while there is work: others hear what is in use.
const WORKING: Duration = Duration::from_millis(200);
/// How long it is done without a book that cannot be used before it is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// How long a reading of memory is waited for.
const READING_WAIT_MAX: Duration = Duration::from_millis(20);

/// Keeps one orchestrator's entries.
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    member: Member,
    desks: Vec<Desk>,
    alone_since: Option<Instant>,
}

/// One device of an orchestrator, as its keeper knows it.
struct Desk {
    device: DeviceId,
    place: Place,
    counter: u64,
    /// Nobody counts what the host's code has on the heap: only the process as a whole is measured.
    is_heap: bool,
    seat: Seat,
    nap: Option<Duration>,
}

impl Keeper {
    /// A keeper for those devices that are in a book; none if no device is. All are in the first one's book.
    pub(crate) fn new(shared: &Arc<Shared>) -> Option<Self> {
        let mut desks: Vec<Desk> = Vec::new();
        for (at, opened) in shared.devices.iter().enumerate() {
            let Some(place) = opened.device.book() else { continue };
            if desks.first().is_some_and(|first| first.place.book != place.book) {
                continue;
            }
            desks.push(Desk::new(DeviceId(at as u16), place.clone(), Arc::as_ptr(&opened.device).addr()));
        }
        let book = desks.first()?.place.book.clone();
        desks.iter_mut().for_each(|desk| desk.find_counter(shared));
        let mut state = shared.lock();
        for desk in &desks {
            state.scheduler.set_allotment(shared.now(), desk.device, Some(Bytes::ZERO));
        }
        shared.release(state);
        Some(Self { shared: Arc::clone(shared), member: book.join(), desks, alone_since: None })
    }

    /// What rings when there is something for it to do.
    pub(crate) fn bell(&self) -> Arc<book::Bell> {
        Arc::clone(self.member.bell())
    }

    /// Keeps the book until the orchestrator closes, whatever panics on the way.
    pub(crate) fn keep(mut self) {
        while catch_unwind(AssertUnwindSafe(|| self.keep_until_closing())).is_err() {
            // Nobody knows what the book says of us: better alone than stuck.
            self.go_alone();
        }
    }

    fn keep_until_closing(&mut self) {
        loop {
            if self.shared.lock().stage == Stage::Closing {
                return;
            }
            let nap = match self.alone_since {
                Some(since) if since.elapsed() < TRY_AGAIN => Some(TRY_AGAIN.saturating_sub(since.elapsed())),
                _ => self.look(),
            };
            self.member.wait(nap);
        }
    }

    /// Looks at the book for every device; says when to look again unless somebody rings.
    fn look(&mut self) -> Option<Duration> {
        for at in 0..self.desks.len() {
            if let Err(error) = self.look_at(at) {
                book::warn(&Warning::Alone(error));
                self.go_alone();
                return Some(TRY_AGAIN);
            }
        }
        self.alone_since = None;
        self.desks.iter().filter_map(|desk| desk.nap).min()
    }

    /// Without the book, what is free may be promised.
    fn go_alone(&mut self) {
        self.alone_since = Some(Instant::now());
        let mut state = self.shared.lock();
        let now = self.shared.now();
        for desk in &self.desks {
            state.scheduler.set_allotment(now, desk.device, None);
        }
        self.shared.release(state);
    }

    fn look_at(&mut self, at: usize) -> Result<(), BookError> {
        let (shared, member) = (&self.shared, &self.member);
        let desk = &mut self.desks[at];
        if desk.needs_reading() {
            let reader = &shared.devices[desk.device.index()].memory;
            reader.wait(reader.ask(), Wait::at_most(READING_WAIT_MAX));
        }
        let entries = member.book().entries()?;
        let mut standing = desk.stand(shared);
        let verdict = desk.decide(&standing, &entries, member.id());
        desk.lower(shared, &standing, &verdict);
        let (had, allotted) = (standing.allotted, desk.allotted(shared));
        standing.allotted = allotted;
        let (raised, others) = member.change(|entries| {
            let raised = desk.decide(&standing, entries, member.id());
            let allotted = if raised.is_raised { raised.line } else { allotted };
            desk.write_down(entries, &standing, allotted, member.id());
            (raised, entries.clone())
        })?;
        if raised.is_raised {
            desk.raise(shared, &raised);
        }
        let is_lowered = allotted < had;
        desk.ring(&others, member, standing.wanted.is_some() && !raised.is_raised, is_lowered);
        desk.rest(&standing, raised.owes || verdict.owes, raised.is_raised);
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.go_alone();
    }
}

impl Desk {
    fn new(device: DeviceId, place: Place, address: usize) -> Self {
        Self { device, place, counter: address as u64, is_heap: false, seat: Seat::default(), nap: None }
    }

    /// What counts this device's bytes: the process for its heap, the device object for all others.
    fn find_counter(&mut self, shared: &Shared) {
        self.is_heap = shared.devices[self.device.index()].device.facts().kind == DeviceKind::Cpu;
        let mut hasher = rustc_hash::FxHasher::default();
        (std::process::id(), book::own_start(), if self.is_heap { 0 } else { self.counter }).hash(&mut hasher);
        self.counter = hasher.finish();
    }

    fn needs_reading(&self) -> bool {
        self.seat.wants() || self.nap == Some(WANTING)
    }

    /// Where the orchestrator stands on this device now.
    fn stand(&mut self, shared: &Shared) -> Standing {
        let mut state = shared.lock();
        let mut standing = state.scheduler.standing(self.device);
        let wanted = state.scheduler.wanted_allotment(self.device);
        let allotment = state.scheduler.ledger().allotment(self.device);
        if wanted.is_none() {
            state.keeper_knows = state.keeper_knows.without(self.device);
        }
        drop(state);
        standing.counter = self.counter;
        self.seat.stand(book::now(), standing, allotment, wanted)
    }

    /// What the book says, and what follows from it.
    fn decide(&self, standing: &Standing, entries: &[Entry], me: &MemberId) -> Verdict {
        let now = book::now();
        let other = |entry: &Entry| Other {
            allotted: entry.allotted,
            in_use: entry.in_use,
            in_use_now: entry.in_use_now,
            strangers: (now.since(entry.written) < SETTLE).then_some(entry.strangers),
            wanted: entry.wanted.filter(|_| now.since(entry.written) < SILENT_MAX),
            limit: entry.limit,
            counter: entry.counter,
            goes_first: entry.member < *me,
        };
        let others = entries.iter().filter(|entry| entry.device == self.place.device && entry.member != *me);
        let others: Vec<Other> = others.map(other).collect();
        let has_twin = self.is_heap && others.iter().any(|other| other.counter == self.counter);
        // What is on the heap may be the other's: nobody can tell, so none of it counts as ours.
        let more = if has_twin { standing.ours } else { Bytes::ZERO };
        decide(now, &Standing { strangers: standing.strangers + more, ..*standing }, &others)
    }

    /// Carries out what lowers the line here, before the book hears of it.
    fn lower(&mut self, shared: &Shared, standing: &Standing, verdict: &Verdict) {
        if verdict.is_raised {
            return;
        }
        self.seat.heed(book::now(), verdict);
        let mut state = shared.lock();
        let now = shared.now();
        let line = verdict.line.min(state.scheduler.ledger().allotment(self.device).unwrap_or(standing.allotted));
        state.scheduler.set_allotment(now, self.device, Some(line));
        let discards = state.scheduler.give_up_idle(now, self.device, verdict.evict);
        if let Some(priority) = verdict.recall {
            state.scheduler.step_down_for_others(now, self.device, priority);
        }
        shared.release(state);
        // They count as promised no longer, but are free only when they are closed: before anything is written.
        drop_quietly(discards);
    }

    /// What the book has to say: all that may be promised here, or is.
    fn allotted(&self, shared: &Shared) -> Bytes {
        let state = shared.lock();
        let ledger = state.scheduler.ledger();
        ledger.allotment(self.device).unwrap_or_default().max(ledger.promised(self.device))
    }

    fn write_down(&self, entries: &mut Vec<Entry>, standing: &Standing, allotted: Bytes, me: &MemberId) {
        let is_mine = |entry: &Entry| entry.member == *me && entry.device == self.place.device;
        let at = entries.iter().position(is_mine).unwrap_or_else(|| {
            entries.push(Entry::new(me.clone(), self.place.device.clone()));
            entries.len() - 1
        });
        let entry = &mut entries[at];
        entry.allotted = allotted;
        entry.in_use = standing.in_use.min(allotted);
        entry.in_use_now = standing.ours.min(allotted);
        entry.strangers = standing.strangers;
        entry.counter = standing.counter;
        entry.limit = standing.limit;
        entry.wanted = standing.wanted.filter(|want| want.bytes > allotted);
        entry.written = book::now();
    }

    fn raise(&mut self, shared: &Shared, verdict: &Verdict) {
        self.seat.heed(book::now(), verdict);
        let mut state = shared.lock();
        state.keeper_knows = state.keeper_knows.without(self.device);
        state.scheduler.set_allotment(shared.now(), self.device, Some(verdict.line));
        shared.release(state);
    }

    /// Wakes those who hold what we want, and those who want what we gave.
    fn ring(&self, entries: &[Entry], member: &Member, wants: bool, gave: bool) {
        let is_concerned = |entry: &&Entry| {
            let holds = wants && entry.allotted > Bytes::ZERO;
            entry.device == self.place.device && (holds || gave && entry.wanted.is_some())
        };
        member.ring(entries.iter().filter(is_concerned).map(|entry| &entry.member));
    }

    /// When to look again, unless somebody rings.
    fn rest(&mut self, standing: &Standing, owes: bool, is_raised: bool) {
        let wants = standing.wanted.is_some() && !is_raised;
        let works = is_raised || standing.urgency.is_some();
        self.nap = if wants || owes {
            Some(WANTING)
        } else if works {
            Some(WORKING)
        } else {
            (!standing.rests).then_some(REST_AFTER.into())
        };
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
