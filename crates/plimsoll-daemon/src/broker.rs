//! The heart of the daemon: which lease is which grant of the core, whose it is, and who has to hear of what. It takes facts
//! with their time and gives back effects, so it runs in virtual time as well as in real.
//! Never decides who gets memory (the core does), reads a clock, a file or a socket, or signals a process.
//! Invariant: every grant of the core has exactly one lease here, and every lease that is not over one grant
//! (`Broker::check`).
//!
//! | file | question |
//! |---|---|
//! | `table.rs` | which leases are there, and how is one found? |
//! | `ladder.rs` | which rungs of the core does a request mean? |
//! | `ask.rs` | what may a client ask, and what is the answer? |
//! | `news.rs` | what has the core decided, and who hears of it? |
//! | `owners.rs` | who is gone, and what becomes of what they held? |
//! | `readings.rs` | what do drivers say, and who uses more than was promised? |
//! | `members.rs` | which other programs of the user share the book, and what is left beside them? |
//! | `engines.rs` | which programs that asked nobody can be asked to give memory back? |
//! | `adopt.rs` | what is kept of a lease for the next daemon? |
//! | `show.rs` | how does everything stand, and why? |

mod adopt;
mod ask;
mod engines;
mod ladder;
mod members;
mod news;
mod owners;
mod readings;
mod show;
mod table;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use adopt::{StoredLease, StoredOwner};
pub use ask::Asker;
pub use engines::EngineView;
use ladder::Offer;
use plimsoll_core::scheduler::{Config, Host, Scheduler};
use plimsoll_core::sharing::Sharing;
use plimsoll_core::{Bytes, DeviceId, GrantId, Moment, Nanos};

use crate::process::{Process, Stop};
use crate::truth::DeviceTruth;
use crate::wire::{Event, LeaseId, LeaseRequest, Recall, Sample, Say};

/// Events that are kept in memory.
pub const EVENTS_MAX: usize = 4_096;
/// Samples of a device that are kept: fifteen minutes, one a second.
pub const SAMPLES_MAX: usize = 900;
/// Bytes of a lease's name.
pub const NAME_MAX: usize = 128;
/// The shortest and the longest time that a lease lives without a heartbeat.
pub const TTL_MIN: Nanos = Nanos::seconds(1);
/// See [`TTL_MIN`].
pub const TTL_MAX: Nanos = Nanos::seconds(3_600);

/// The daemon's grants have no tasks beside them.
#[derive(Debug)]
pub struct NoTasks;

impl Host for NoTasks {
    type Job = ();
    type Session = ();
    type Prepared = ();
    type Value = ();
    type State = ();
}

/// A connection, by a number that is never used again while the daemon lives.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// How the broker shares.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The daemon's version.
    pub version: String,
    /// Who gives way, how long who has time.
    pub sharing: Sharing,
    /// The share of what strangers leave of a device that may be promised.
    pub margin: f64,
    /// What of each device is left to the desktop, unless a device has its own.
    pub reserve: Bytes,
    /// What of single devices is left to the desktop, by their names.
    pub reserves: BTreeMap<String, Bytes>,
    /// How long bytes that were given back stay promised without being seen to be free.
    pub return_wait_max: Nanos,
    /// How long a lease whose connection went with the last daemon waits to be claimed.
    pub claim_within: Nanos,
    /// Milliseconds since 1970 at [`Moment::START`], by the clock on the wall as it was set when the broker began.
    pub wall_start_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sharing: Sharing::between_programs(),
            margin: 0.95,
            reserve: Bytes::ZERO,
            reserves: BTreeMap::new(),
            return_wait_max: Nanos::seconds(10),
            claim_within: Nanos::seconds(60),
            wall_start_ms: 0,
        }
    }
}

/// What has to happen outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A connection hears this.
    Tell {
        /// Which.
        client: ClientId,
        /// What.
        say: Say,
    },
    /// The keeper of an engine hears this.
    TellEngine {
        /// Which, by its name.
        engine: String,
        /// What.
        say: Say,
    },
    /// A process is stopped: it had agreed to that.
    Stop {
        /// Which lease.
        lease: LeaseId,
        /// Which process.
        process: Process,
        /// How.
        how: Stop,
    },
}

/// Whose a lease is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A connection's: it ends with it.
    Client(ClientId),
    /// A client's over HTTP: it lives from heartbeat to heartbeat.
    Http,
    /// A process's whose connection is gone: it ends with the process, or when nobody claims it in time.
    Process {
        /// When it must have been claimed; `None` if it need not be.
        claim_until: Option<Moment>,
    },
    /// An engine's, by its name: the daemon asks it to give memory back.
    Engine(String),
}

/// One lease.
#[derive(Clone, Debug)]
struct Lease {
    grant: GrantId,
    request: LeaseRequest,
    /// What each rung of the core's ladder means; once it is given only those on its devices are left.
    offers: Vec<Offer>,
    owner: Owner,
    process: Option<Process>,
    /// Its process is not the one that asked: the lease lives as long as that does.
    is_attached: bool,
    secret: String,
    asked_at: Moment,
    held_since: Option<Moment>,
    /// When it ends without a heartbeat.
    expires: Option<Moment>,
    /// What it was asked last.
    recall: Option<Recall>,
    /// When its process is killed if it has not ended by then.
    kill_at: Option<Moment>,
    /// Its owner was told that it uses more than it was promised.
    told_over: bool,
}

/// A device as the broker knows it.
#[derive(Clone, Debug)]
struct Device {
    id: DeviceId,
    truth: DeviceTruth,
    reserve: Bytes,
    samples: VecDeque<Sample>,
    sampled: Option<Moment>,
    readings: Readings,
    /// What each lease really uses, as last read; `None` if the source does not say.
    used: Option<BTreeMap<LeaseId, Bytes>>,
    /// What processes of members of the book use, as last read.
    used_by_members: BTreeMap<u32, Bytes>,
    /// Programs without a lease, as last read.
    strangers: Vec<readings::Stranger>,
}

/// Which reading of a device counts.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// So many have begun.
    pub begun: u64,
    /// The last that has ended began as the so-manieth.
    pub ended: u64,
}

/// Whose leases are whose, beside the core that decides. See the module's table.
#[derive(Debug)]
pub struct Broker {
    settings: Settings,
    scheduler: Scheduler<NoTasks>,
    devices: Vec<Device>,
    leases: table::Table,
    by_grant: BTreeMap<GrantId, LeaseId>,
    /// Leases whose owners have left and whose bytes nobody knows to be free.
    returning: BTreeMap<GrantId, (LeaseId, Lease)>,
    /// Leases of an earlier daemon whose devices no driver has told of yet.
    unadopted: Vec<StoredLease>,
    members: members::Members,
    next_lease: u64,
    events: VecDeque<Event>,
    next_event: u64,
    effects: Vec<Effect>,
    /// Leases that changed and that the next daemon has to know of.
    changed: BTreeSet<LeaseId>,
    /// What is wrong, by what it is about.
    warnings: BTreeMap<String, String>,
}

impl Broker {
    /// A broker without devices: [`Broker::read`] brings them. Leases and events are counted from these numbers on.
    pub fn new(now: Moment, settings: Settings, next_lease: u64, next_event: u64) -> Self {
        let config =
            Config { sharing: settings.sharing, return_wait_max: settings.return_wait_max, ..Config::default() };
        let mut scheduler = Scheduler::new(config, now);
        scheduler.listen(true);
        Self {
            settings,
            scheduler,
            devices: Vec::new(),
            leases: table::Table::default(),
            by_grant: BTreeMap::new(),
            returning: BTreeMap::new(),
            unadopted: Vec::new(),
            members: members::Members::default(),
            next_lease: next_lease.max(1),
            events: VecDeque::new(),
            next_event: next_event.max(1),
            effects: Vec::new(),
            changed: BTreeSet::new(),
            warnings: BTreeMap::new(),
        }
    }

    /// What has to happen outside since the last call, in order.
    pub fn drain_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Whether something has to happen outside.
    pub fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// Leases that wait or are held.
    pub fn lease_count(&self) -> usize {
        self.leases.len()
    }

    /// Leases that changed since the last call: each as it is to be kept, or nothing if it is over.
    pub fn drain_changed(&mut self) -> Vec<(LeaseId, Option<StoredLease>)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|id| (id, self.stored(id))).collect()
    }

    /// The number of the next lease.
    pub fn next_lease(&self) -> u64 {
        self.next_lease
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Moment) {
        self.scheduler.tick(now);
        self.end_expired(now);
        self.kill_overdue(now);
        self.hear(now);
    }

    /// When something is due next, unless something happens before.
    pub fn next_tick(&self) -> Option<Moment> {
        self.leases.next_due().into_iter().chain(self.scheduler.next_tick()).min()
    }

    /// Whether drivers should be asked at once: somebody waits, or has given something back.
    pub fn needs_readings(&self) -> bool {
        self.scheduler.needs_readings()
    }

    /// The clock on the wall was set anew, or the machine has slept: so many milliseconds since 1970 were
    /// [`Moment::START`]. Nothing but what people read as a time depends on it.
    pub fn set_wall_start(&mut self, wall_start_ms: u64) {
        self.settings.wall_start_ms = wall_start_ms;
    }

    /// Something that people should know, about one thing; nothing if it is well again.
    pub fn warn(&mut self, now: Moment, about: &str, warning: Option<String>) {
        let before = self.warnings.get(about);
        if before == warning.as_ref() {
            return;
        }
        match warning {
            Some(text) => {
                self.note(now, About { text: text.clone(), ..About::of("warning") });
                self.warnings.insert(about.to_owned(), text);
            }
            None => drop(self.warnings.remove(about)),
        }
    }

    /// The daemon has begun: with or without what an earlier one left.
    pub fn started(&mut self, now: Moment) {
        let (count, plural) = (self.devices.len(), if self.devices.len() == 1 { "" } else { "s" });
        let text = format!("plimsoll {} shares {count} device{plural}", self.settings.version);
        self.note(now, About { text, ..About::of("restarted") });
    }

    /// Events after this one, oldest first.
    pub fn events_since(&self, since: u64) -> impl Iterator<Item = &Event> {
        let first = self.events.partition_point(|event| event.id <= since);
        self.events.range(first..)
    }

    /// Events that an earlier daemon wrote down.
    pub fn remember(&mut self, events: Vec<Event>) {
        let skip = events.len().saturating_sub(EVENTS_MAX);
        self.events = events.into_iter().skip(skip).collect();
        self.next_event = self.next_event.max(self.events.back().map_or(0, |event| event.id) + 1);
    }

    /// The number of the last event.
    pub fn last_event(&self) -> u64 {
        self.next_event - 1
    }

    fn note(&mut self, now: Moment, about: About) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        let event = Event {
            id: self.next_event,
            at_ms: self.wall_ms(now),
            what: about.what.to_owned(),
            lease: about.lease,
            name: about.name,
            device: about.device,
            bytes: about.bytes,
            text: about.text,
        };
        self.next_event += 1;
        self.events.push_back(event);
    }

    fn wall_ms(&self, at: Moment) -> u64 {
        self.settings.wall_start_ms + at.0 / 1_000_000
    }

    fn device_name(&self, id: DeviceId) -> &str {
        self.devices.iter().find(|device| device.id == id).map_or("?", |device| device.truth.name.as_str())
    }

    /// Checks the table of leases against the core's grants.
    ///
    /// # Errors
    /// What does not agree.
    pub fn check(&self) -> Result<(), String> {
        self.scheduler.check_invariants()?;
        self.leases.check()?;
        let known: BTreeSet<GrantId> = self.by_grant.keys().chain(self.returning.keys()).copied().collect();
        let granted: BTreeSet<GrantId> = self.scheduler.grants().collect();
        if known != granted {
            return Err(format!("leases know {known:?}, the core has {granted:?}"));
        }
        if self.by_grant.len() != self.leases.len() {
            return Err(format!("{} leases for {} grants", self.leases.len(), self.by_grant.len()));
        }
        Ok(())
    }
}

/// What an event is about.
#[derive(Default)]
struct About {
    what: &'static str,
    lease: Option<LeaseId>,
    name: String,
    device: Option<String>,
    bytes: Option<u64>,
    text: String,
}

impl About {
    fn of(what: &'static str) -> Self {
        Self { what, ..Self::default() }
    }

    fn lease(what: &'static str, id: LeaseId, lease: &Lease, text: String) -> Self {
        Self { lease: Some(id), name: lease.request.name.clone(), text, ..Self::of(what) }
    }
}
