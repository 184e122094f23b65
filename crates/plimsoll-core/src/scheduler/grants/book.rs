//! The book of grants: which there are, in which state, who waits in which order, what is on its way back.
//! Never decides who gets what; never counts bytes itself (the ledger does).
//! Invariant: a grant is in exactly one state; the order of waiting holds exactly those that wait.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::GrantNews;
use super::outsiders::Outsiders;
use crate::grant::{GrantId, GrantOwner, GrantPhase, GrantRung, GrantSpec};
use crate::ledger::LeaseId;
use crate::line::Memory;
use crate::scheduler::Host;
use crate::{Bytes, DeviceId, Moment, Nanos};

/// One grant.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) spec: GrantSpec,
    /// Its place among those that wait: see [`crate::arbiter`].
    pub(super) turn: Moment,
    /// When it is refused if it still waits.
    pub(super) waits_until: Option<Moment>,
    pub(super) phase: GrantPhase,
    /// The rung it holds, or held last.
    pub(super) rung: Option<usize>,
    /// What it is promised.
    pub(super) lease: Option<LeaseId>,
    /// Its owner was told that the time of its recall is over.
    pub(super) overdue: bool,
    /// Its owner was told that a better rung fits, and has not answered.
    pub(super) told_to_rise: bool,
    /// It stepped down a moment ago: until then it is not told that it may rise.
    pub(super) rises_from: Option<Moment>,
}

impl Grant {
    pub(super) fn is_held(&self) -> bool {
        matches!(self.phase, GrantPhase::Held | GrantPhase::Recalled { .. })
    }

    /// Whether its owner should hear when a better rung fits.
    pub(super) fn wants_to_rise(&self) -> bool {
        self.phase == GrantPhase::Held
            && self.spec.may_rise
            && !self.told_to_rise
            && self.rises_from.is_none()
            && self.rung.is_some_and(|rung| rung > 0)
    }

    /// What it needs of a device while it is on a rung: for that, and for the rung that it was asked to go on to.
    pub(super) fn needs_at(&self, rung: Option<usize>, device: DeviceId) -> Bytes {
        let Some(rung) = rung else { return Bytes::ZERO };
        let goes_on = match self.phase {
            GrantPhase::Recalled { to: Some(to), .. } if rung < to => self.bytes_at(Some(to), device),
            _ => Bytes::ZERO,
        };
        self.bytes_at(Some(rung), device).max(goes_on)
    }

    /// An owner that cannot move has no use for rungs on other devices once it is on some.
    pub(super) fn stay_on_its_devices(&mut self) {
        let Some(rung) = self.rung.filter(|_| self.spec.stays) else { return };
        let devices = |rung: &GrantRung| rung.portions().iter().map(|(device, _)| *device).collect::<SmallVec<[_; 4]>>();
        let (here, before) = (devices(&self.spec.ladder[rung]), &self.spec.ladder[..rung]);
        self.rung = Some(before.iter().filter(|rung| devices(rung) == here).count());
        self.spec.ladder.retain(|rung| devices(rung) == here);
    }

    /// What one of its rungs needs of a device; nothing if it leaves.
    pub(super) fn bytes_at(&self, rung: Option<usize>, device: DeviceId) -> Bytes {
        rung.map_or(Bytes::ZERO, |rung| self.spec.ladder[rung].on(device))
    }
}

/// Bytes of a device that an owner outside has given back and that nobody knows to be free.
#[derive(Copy, Clone, Debug)]
pub(super) struct Receding {
    pub(super) grant: GrantId,
    pub(super) owner: GrantOwner,
    pub(super) device: DeviceId,
    pub(super) lease: LeaseId,
    /// When what the driver says is believed, whatever it is.
    pub(super) until: Moment,
    /// A reading of the device's memory began after they were given back.
    pub(super) is_read: bool,
}

/// All grants of a scheduler.
pub(in crate::scheduler) struct Grants<H: Host> {
    next: u64,
    pub(super) all: BTreeMap<GrantId, Grant>,
    /// Those that wait, first to be given first.
    pub(super) waiting: BTreeSet<(Moment, GrantId)>,
    /// Oldest first.
    pub(super) receding: Vec<Receding>,
    /// What other programs have of each device.
    pub(super) outsiders: Vec<Outsiders>,
    pub(super) news: Vec<GrantNews<H>>,
    /// Bytes of some device are kept for one that waits.
    pub(super) keeps: bool,
    held: usize,
    rising: usize,
}

impl<H: Host> Default for Grants<H> {
    fn default() -> Self {
        Self {
            next: 0,
            all: BTreeMap::new(),
            waiting: BTreeSet::new(),
            receding: Vec::new(),
            outsiders: Vec::new(),
            news: Vec::new(),
            keeps: false,
            held: 0,
            rising: 0,
        }
    }
}

impl<H: Host> Grants<H> {
    pub(in crate::scheduler) fn add_device(&mut self, memory: Memory) {
        self.outsiders.push(Outsiders::new(memory));
    }

    /// Takes a new grant in: it waits.
    pub(super) fn enter(&mut self, spec: GrantSpec, turn: Moment, waits_until: Option<Moment>) -> GrantId {
        self.next += 1;
        let id = GrantId(self.next);
        let grant = Grant {
            spec,
            turn,
            waits_until,
            phase: GrantPhase::Waiting,
            rung: None,
            lease: None,
            overdue: false,
            told_to_rise: false,
            rises_from: None,
        };
        self.all.insert(id, grant);
        self.waiting.insert((turn, id));
        id
    }

    /// Forgets a grant: its id means nothing any more.
    pub(super) fn forget(&mut self, id: GrantId) -> Option<Grant> {
        let grant = self.all.remove(&id)?;
        self.waiting.remove(&(grant.turn, id));
        self.recount();
        Some(grant)
    }

    /// Changes a grant, and what is counted of all of them.
    pub(super) fn change<T>(&mut self, id: GrantId, change: impl FnOnce(&mut Grant) -> T) -> Option<T> {
        let grant = self.all.get_mut(&id)?;
        let changed = change(grant);
        if grant.phase != GrantPhase::Waiting {
            self.waiting.remove(&(grant.turn, id));
        }
        self.recount();
        Some(changed)
    }

    /// There are few grants, and they change seldom: counting anew cannot go wrong.
    fn recount(&mut self) {
        self.held = self.all.values().filter(|grant| grant.is_held()).count();
        self.rising = self.all.values().filter(|grant| grant.wants_to_rise()).count();
    }

    /// Whether memory that comes back is of interest to any grant, or kept for one that is gone. Asked whenever a run
    /// settles.
    #[inline]
    pub(in crate::scheduler) fn want_memory(&self) -> bool {
        !self.waiting.is_empty() || self.rising > 0 || self.keeps
    }

    /// Whether any grant waits.
    #[inline]
    pub(in crate::scheduler) fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether any grant could be recalled.
    #[inline]
    pub(in crate::scheduler) fn are_held(&self) -> bool {
        self.held > 0
    }

    /// Whether readings of memory are needed although no task is there.
    pub(in crate::scheduler) fn need_readings(&self) -> bool {
        !self.waiting.is_empty() || !self.receding.is_empty()
    }

    /// Whether an owner has something to hear.
    pub(in crate::scheduler) fn have_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// When something is due next.
    pub(in crate::scheduler) fn due(&self) -> Option<Moment> {
        let each = self.all.values().flat_map(|grant| {
            let wait = grant.waits_until.filter(|_| grant.phase == GrantPhase::Waiting);
            let recall = match grant.phase {
                GrantPhase::Recalled { until, .. } if !grant.overdue => Some(until),
                _ => None,
            };
            wait.into_iter().chain(recall).chain(grant.rises_from)
        });
        each.chain(self.receding.iter().map(|receding| receding.until)).min()
    }

    /// How many leases grants have in the ledger.
    pub(in crate::scheduler) fn leases(&self) -> usize {
        self.all.values().filter(|grant| grant.lease.is_some()).count() + self.receding.len()
    }

    pub(super) fn get(&self, id: GrantId) -> Option<&Grant> {
        self.all.get(&id)
    }
}

/// When a wait that begins now is over; `None` if it never is.
pub(super) fn wait_end(now: Moment, patience: Nanos, deadline: Option<Moment>) -> Option<Moment> {
    let by_patience = (patience != Nanos::MAX).then(|| now + patience);
    by_patience.into_iter().chain(deadline).min()
}
