//! Membership: how whoever promises bytes of several devices keeps its entries in the book, and its allotments as the book says.
//! Never holds a lock of whoever promises while it reads, writes or waits for the book.
//! Invariant: what may be promised is never more than what the book says was allotted: lowered at home first and written
//! then, written first and raised at home then (`tests/book.rs`).

use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use plimsoll_core::allotment::{Other, REST_AFTER, SETTLE, SILENT_MAX, Seat, Standing, Verdict, decide};
use plimsoll_core::{Bytes, DeviceId, Priority};

use super::{Book, BookError, Entry, Member, MemberId, Warning, now, own_start};

/// How often the book is looked at while something is wanted, by us of others or by others of us.
const WANTING: Duration = Duration::from_millis(20);
/// How often while there is work: others hear what is in use.
const WORKING: Duration = Duration::from_millis(200);
/// How long it is done without a book that cannot be used before it is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Where whoever promises stands on a device, as far as it knows by itself.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// As [`plimsoll_core::Scheduler::standing`] has it.
    pub standing: Standing,
    /// What may be promised; `None` if it is alone until now.
    pub allotment: Option<Bytes>,
    /// What is wanted beyond that, and how urgently.
    pub wanted: Option<(Bytes, Priority)>,
}

/// Whoever promises bytes of devices that are in a book: an orchestrator, or a daemon.
pub trait Promiser {
    /// Asks for a fresh reading of a device's memory, and waits for it a moment.
    fn read_again(&mut self, device: DeviceId) {
        let _ = device;
    }

    /// Where it stands on a device now.
    fn stand(&mut self, device: DeviceId) -> Seen;

    /// No more than this is promised from now on; so much of what lies idle goes, and lasting holders that are less urgent
    /// than this are asked to step down. All of it is done when this returns.
    fn lower(&mut self, device: DeviceId, line: Bytes, evict: Bytes, recall: Option<Priority>);

    /// What may be promised, or is.
    fn allotted(&mut self, device: DeviceId) -> Bytes;

    /// So much may be promised: the book says so.
    fn raise(&mut self, device: DeviceId, line: Bytes);

    /// Without the book, what is free may be promised.
    fn go_alone(&mut self, device: DeviceId);

    /// The book as it was last read.
    fn saw(&mut self, entries: &[Entry]) {
        let _ = entries;
    }

    /// The book cannot be used; nothing if it can be again.
    fn warned(&mut self, warning: Option<Warning>);
}

/// The entries of whoever promises, one for each of its devices.
#[derive(Debug)]
pub struct Membership<P> {
    promiser: P,
    member: Member,
    devices: Vec<DeviceEntry>,
    alone_since: Option<Instant>,
}

impl<P: Promiser> Membership<P> {
    /// A new member of the book, without devices.
    pub fn new(book: &Book, promiser: P) -> Self {
        Self { promiser, member: book.join(), devices: Vec::new(), alone_since: None }
    }

    /// Who promises.
    pub fn promiser(&mut self) -> &mut P {
        &mut self.promiser
    }

    /// Who it is in the book.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// Writes down a device from now on, under the name that all programs call it by. `counter` is the same for members of
    /// this process that count each other's bytes as their own; on a `heap` nobody counts who has what.
    pub fn add(&mut self, device: DeviceId, name: String, counter: u64, is_heap: bool) {
        let mut hasher = rustc_hash::FxHasher::default();
        (std::process::id(), own_start(), if is_heap { 0 } else { counter }).hash(&mut hasher);
        self.devices.push(DeviceEntry {
            device,
            name,
            counter: hasher.finish(),
            is_heap,
            seat: Seat::default(),
            nap: None,
        });
    }

    /// Whether a device is written down.
    pub fn has(&self, device: DeviceId) -> bool {
        self.devices.iter().any(|entry| entry.device == device)
    }

    /// Looks at the book for every device; says when to look again unless somebody wakes it.
    pub fn look(&mut self) -> Option<Duration> {
        if let Some(since) = self.alone_since.filter(|since| since.elapsed() < TRY_AGAIN) {
            return Some(TRY_AGAIN.saturating_sub(since.elapsed()));
        }
        for device in &mut self.devices {
            if let Err(error) = device.look(&mut self.promiser, &self.member) {
                self.promiser.warned(Some(Warning::Alone(error)));
                self.go_alone();
                return Some(TRY_AGAIN);
            }
        }
        if self.alone_since.take().is_some() {
            self.promiser.warned(None);
        }
        self.devices.iter().filter_map(|entry| entry.nap).min()
    }

    /// Without the book, what is free may be promised.
    pub fn go_alone(&mut self) {
        self.alone_since = Some(Instant::now());
        self.devices.iter().for_each(|entry| self.promiser.go_alone(entry.device));
    }
}

/// One device, as it stands in the book.
#[derive(Debug)]
struct DeviceEntry {
    device: DeviceId,
    name: String,
    counter: u64,
    /// Nobody counts what the host's code has on the heap: only the process as a whole is measured.
    is_heap: bool,
    seat: Seat,
    nap: Option<Duration>,
}

impl DeviceEntry {
    fn look(&mut self, promiser: &mut impl Promiser, member: &Member) -> Result<(), BookError> {
        if self.needs_reading() {
            promiser.read_again(self.device);
        }
        let entries = member.book().entries()?;
        promiser.saw(&entries);
        let mut standing = self.stand(promiser);
        let verdict = self.decide(&standing, &entries, member.id());
        self.lower(promiser, &verdict);
        let (had, allotted) = (standing.allotted, promiser.allotted(self.device));
        standing.allotted = allotted;
        let (raised, others) = member.change(|entries| {
            let raised = self.decide(&standing, entries, member.id());
            let allotted = if raised.is_raised { raised.line } else { allotted };
            self.write_down(entries, &standing, allotted, member.id());
            (raised, entries.clone())
        })?;
        if raised.is_raised {
            self.seat.heed(now(), &raised);
            promiser.raise(self.device, raised.line);
        }
        let is_lowered = allotted < had;
        self.wake(&others, member, standing.wanted.is_some() && !raised.is_raised, is_lowered);
        self.rest(&standing, raised.owes || verdict.owes, raised.is_raised);
        Ok(())
    }

    fn needs_reading(&self) -> bool {
        self.seat.wants() || self.nap == Some(WANTING)
    }

    /// Where we stand on this device now.
    fn stand(&mut self, promiser: &mut impl Promiser) -> Standing {
        let Seen { standing, allotment, wanted } = promiser.stand(self.device);
        self.seat.stand(now(), Standing { counter: self.counter, ..standing }, allotment, wanted)
    }

    /// What the book says, and what follows from it.
    fn decide(&self, standing: &Standing, entries: &[Entry], me: &MemberId) -> Verdict {
        let at = now();
        let other = |entry: &Entry| Other {
            allotted: entry.allotted,
            in_use: entry.in_use,
            in_use_now: entry.in_use_now,
            strangers: (at.since(entry.written) < SETTLE).then_some(entry.strangers),
            wanted: entry.wanted.filter(|_| at.since(entry.written) < SILENT_MAX),
            limit: entry.limit,
            counter: entry.counter,
            goes_first: entry.member < *me,
        };
        let others = entries.iter().filter(|entry| entry.device == self.name && entry.member != *me);
        let others: Vec<Other> = others.map(other).collect();
        let has_twin = self.is_heap && others.iter().any(|other| other.counter == self.counter);
        // What is on the heap may be the other's: nobody can tell, so none of it counts as ours.
        let more = if has_twin { standing.ours } else { Bytes::ZERO };
        decide(at, &Standing { strangers: standing.strangers + more, ..*standing }, &others)
    }

    /// Carries out what lowers the line at home, before the book hears of it.
    fn lower(&mut self, promiser: &mut impl Promiser, verdict: &Verdict) {
        if !verdict.is_raised {
            self.seat.heed(now(), verdict);
            promiser.lower(self.device, verdict.line, verdict.evict, verdict.recall);
        }
    }

    fn write_down(&self, entries: &mut Vec<Entry>, standing: &Standing, allotted: Bytes, me: &MemberId) {
        let is_mine = |entry: &Entry| entry.member == *me && entry.device == self.name;
        let at = entries.iter().position(is_mine).unwrap_or_else(|| {
            entries.push(Entry::new(me.clone(), self.name.clone()));
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
        entry.written = now();
    }

    /// Wakes those who hold what we want, and those who want what we gave.
    fn wake(&self, entries: &[Entry], member: &Member, wants: bool, gave: bool) {
        let is_concerned = |entry: &&Entry| {
            let holds = wants && entry.allotted > Bytes::ZERO;
            entry.device == self.name && (holds || gave && entry.wanted.is_some())
        };
        member.wake(entries.iter().filter(is_concerned).map(|entry| &entry.member));
    }

    /// When to look again, unless somebody wakes it.
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
