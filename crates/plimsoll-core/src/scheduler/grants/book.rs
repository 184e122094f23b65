//! The book of grants: which there are, in which state, who waits in which order, what is on its way back.
//! Never decides who gets what; never counts bytes itself (the ledger does).
//! Invariants: a grant is in exactly one state; the order of waiting holds exactly those that wait; whatever changes a grant
//! changes the tally with it (`Grants::change`).

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::GrantNews;
use super::outsiders::Outsiders;
use super::returns::Returns;
use super::tally::{Mark, Tally};
use crate::grant::{GrantId, GrantPhase, GrantRung, GrantSpec};
use crate::ledger::LeaseId;
use crate::line::Memory;
use crate::scheduler::Host;
use crate::sharing;
use crate::{Bytes, DeviceId, Moment, Nanos};

/// What one grant that waits counts for at the most: more than any device has, and little enough that the sum over all
/// grants is exact.
const WAITED_MAX: Bytes = Bytes(1 << 50);

/// One grant.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) spec: GrantSpec,
    pub(super) asked_at: Moment,
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
    /// It came to its rung a moment ago: until then it stays there, unless for somebody far more urgent.
    pub(super) stays_until: Option<Moment>,
    /// How full its devices were when it was last made to step down, as long as that is remembered.
    pub(super) fell: Option<Fall>,
    /// The best rung that it had to leave for others and has not been on since.
    pub(super) fell_from: Option<usize>,
    /// While it waits: until then it leaves batches alone that have items left.
    pub(super) spares_batches_until: Option<Moment>,
    /// While it waits: until then it waits for a larger allotment rather than take a lower rung.
    pub(super) allotted_by: Option<Moment>,
    /// Its owner is being stopped.
    pub(super) stopping: bool,
    /// Items that its batch still has to do.
    pub(super) items_left: u32,
}

/// What made a grant step down.
#[derive(Copy, Clone, Debug)]
pub(super) struct Fall {
    /// What was held of the fullest of its devices and waited for there, as a share of the ceiling; more than 1 if it was
    /// more than there is.
    pub(super) share: f64,
    /// When that is forgotten.
    pub(super) until: Moment,
}

impl Grant {
    pub(super) fn is_held(&self) -> bool {
        matches!(self.phase, GrantPhase::Held | GrantPhase::Recalled { .. })
    }

    /// Whether it was asked to step down or to leave, and still has time.
    pub(super) fn is_coming_down(&self) -> bool {
        !self.overdue && matches!(self.phase, GrantPhase::Recalled { .. })
    }

    /// When something of it is due next, but for the end of its leaving batches alone: that only counts beside one.
    pub(super) fn due(&self) -> Option<Moment> {
        let waits = self.waits_until.into_iter().chain(self.allotted_by).filter(|_| self.phase == GrantPhase::Waiting);
        let recall = match self.phase {
            GrantPhase::Recalled { until, .. } if !self.overdue => Some(until),
            _ => None,
        };
        let fell = self.fell.map(|fell| fell.until);
        waits.chain(recall).chain(self.rises_from).chain(self.stays_until).chain(fell).min()
    }

    /// Whether its owner should hear when a better rung fits.
    pub(super) fn wants_to_rise(&self) -> bool {
        self.phase == GrantPhase::Held
            && self.spec.may_rise
            && !self.told_to_rise
            && self.rises_from.is_none()
            && self.stays_until.is_none()
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
        let devices =
            |rung: &GrantRung| rung.portions().iter().map(|(device, _)| *device).collect::<SmallVec<[_; 4]>>();
        let (here, before) = (devices(&self.spec.ladder[rung]), &self.spec.ladder[..rung]);
        self.rung = Some(before.iter().filter(|rung| devices(rung) == here).count());
        self.spec.ladder.retain(|rung| devices(rung) == here);
    }

    /// The least that it needs of a device, on a rung of a quality that is of use; nothing if it can do without that device.
    pub(super) fn least_on(&self, device: DeviceId) -> Bytes {
        let minimum = sharing::quality_min(self.spec.kind);
        let useful = self.spec.ladder.iter().filter(|rung| rung.quality >= minimum);
        let least = useful.map(|rung| rung.on(device)).min();
        let least = least.or_else(|| self.spec.ladder.iter().map(|rung| rung.on(device)).min());
        least.unwrap_or_default().min(WAITED_MAX)
    }

    /// Whether it has items of a batch to do: between two of them nobody takes its bytes.
    pub(super) fn is_within_batch(&self) -> bool {
        self.items_left > 0
    }

    /// Whether it has less than before it had to step down, wants it back, and has items of a batch to do.
    pub(super) fn has_fallen_within_batch(&self) -> bool {
        let is_below = self.fell_from.is_some_and(|before| self.rung.is_some_and(|rung| rung > before));
        self.is_within_batch() && self.spec.may_rise && self.phase == GrantPhase::Held && is_below
    }

    /// What one of its rungs needs of a device; nothing if it leaves.
    pub(super) fn bytes_at(&self, rung: Option<usize>, device: DeviceId) -> Bytes {
        rung.map_or(Bytes::ZERO, |rung| self.spec.ladder[rung].on(device))
    }
}

/// All grants of a scheduler.
pub(in crate::scheduler) struct Grants<H: Host> {
    next: u64,
    pub(super) all: BTreeMap<GrantId, Grant>,
    /// Those that wait, first to be given first.
    pub(super) waiting: BTreeSet<(Moment, GrantId)>,
    pub(super) receding: Returns,
    /// What other programs have of each device.
    pub(super) outsiders: Vec<Outsiders>,
    pub(super) news: Vec<GrantNews<H>>,
    /// Bytes of some device are kept for one that waits.
    pub(super) keeps: bool,
    pub(super) tally: Tally,
    /// The least that those who wait need of each device.
    waited: Vec<Bytes>,
}

impl<H: Host> Default for Grants<H> {
    fn default() -> Self {
        Self {
            next: 0,
            all: BTreeMap::new(),
            waiting: BTreeSet::new(),
            receding: Returns::default(),
            outsiders: Vec::new(),
            news: Vec::new(),
            keeps: false,
            tally: Tally::default(),
            waited: Vec::new(),
        }
    }
}

impl<H: Host> Grants<H> {
    pub(in crate::scheduler) fn add_device(&mut self, memory: Memory) {
        self.outsiders.push(Outsiders::new(memory));
        self.waited.push(Bytes::ZERO);
    }

    /// Takes a new grant in: it waits.
    pub(super) fn enter(&mut self, spec: GrantSpec, terms: WaitTerms) -> GrantId {
        self.next += 1;
        let id = GrantId(self.next);
        let grant = Grant {
            spec,
            asked_at: terms.asked_at,
            turn: terms.turn,
            waits_until: terms.until,
            phase: GrantPhase::Waiting,
            rung: None,
            lease: None,
            overdue: false,
            told_to_rise: false,
            rises_from: None,
            stays_until: None,
            fell: None,
            fell_from: None,
            spares_batches_until: Some(terms.spares_batches_until),
            allotted_by: terms.allotted_by,
            stopping: false,
            items_left: 0,
        };
        self.tally.add(Mark::of(id, &grant));
        self.all.insert(id, grant);
        self.stand_in_line(id, terms.turn);
        id
    }

    /// Forgets a grant: its id means nothing any more.
    pub(super) fn forget(&mut self, id: GrantId) -> Option<Grant> {
        self.step_out_of_line(id);
        let grant = self.all.remove(&id)?;
        self.tally.remove(Mark::of(id, &grant));
        Some(grant)
    }

    /// Changes a grant, and what is counted of all of them.
    pub(super) fn change<T>(&mut self, id: GrantId, change: impl FnOnce(&mut Grant) -> T) -> Option<T> {
        // Out of line as it stood there: the change may be to what it waits for.
        self.step_out_of_line(id);
        let grant = self.all.get_mut(&id)?;
        let before = Mark::of(id, grant);
        let changed = change(grant);
        self.tally.replace(before, Mark::of(id, grant));
        if grant.phase == GrantPhase::Waiting {
            let turn = grant.turn;
            self.stand_in_line(id, turn);
        }
        Some(changed)
    }

    /// A grant that waits has another place in line from now on.
    pub(super) fn stand_in_line(&mut self, id: GrantId, turn: Moment) {
        self.step_out_of_line(id);
        let Some(grant) = self.all.get_mut(&id) else { return };
        grant.turn = turn;
        self.waiting.insert((turn, id));
        for (device, waited) in (0..).map(DeviceId).zip(&mut self.waited) {
            *waited += grant.least_on(device);
        }
    }

    fn step_out_of_line(&mut self, id: GrantId) {
        let Some(grant) = self.all.get(&id) else { return };
        if self.waiting.remove(&(grant.turn, id)) {
            for (device, waited) in (0..).map(DeviceId).zip(&mut self.waited) {
                *waited -= grant.least_on(device);
            }
        }
    }

    /// The least that those who wait need of a device, one of them left out.
    pub(super) fn waited_on(&self, device: DeviceId, without: Option<GrantId>) -> Bytes {
        let own = without.and_then(|id| self.all.get(&id)).filter(|grant| grant.phase == GrantPhase::Waiting);
        let own = own.map_or(Bytes::ZERO, |grant| grant.least_on(device));
        self.waited.get(device.index()).copied().unwrap_or_default() - own
    }

    /// Whether memory that comes back is of interest to any grant, or kept for one that is gone. Asked whenever a run
    /// settles.
    #[inline]
    pub(in crate::scheduler) fn want_memory(&self) -> bool {
        !self.waiting.is_empty() || self.tally.any_rises() || self.keeps
    }

    /// Whether any grant waits.
    #[inline]
    pub(in crate::scheduler) fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether any grant could be recalled.
    #[inline]
    pub(in crate::scheduler) fn are_held(&self) -> bool {
        self.tally.are_held()
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
        self.tally.next_due().into_iter().chain(self.receding.next_due()).min()
    }

    /// Those of which something is due now, and which are meant, oldest first.
    pub(super) fn due_by(&self, now: Moment, are_meant: impl Fn(&Grant) -> bool) -> Vec<GrantId> {
        let mut due = self.tally.due_by(now);
        due.retain(|id| self.get(*id).is_some_and(&are_meant));
        due
    }

    /// Checks what is kept of all grants against counting them anew.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut anew = Tally::default();
        self.all.iter().for_each(|(id, grant)| anew.add(Mark::of(*id, grant)));
        if self.tally != anew {
            return Err(format!("the tally of grants is {:?}, counted anew {anew:?}", self.tally));
        }
        for (device, kept) in (0..).map(DeviceId).zip(&self.waited) {
            let waiting = self.waiting.iter().filter_map(|(_, id)| self.all.get(id));
            let waited: Bytes = waiting.map(|grant| grant.least_on(device)).sum();
            if *kept != waited {
                return Err(format!("{device}: {kept} are kept as waited for, counted anew {waited}"));
            }
        }
        self.receding.check()
    }

    /// How many leases grants have in the ledger.
    pub(in crate::scheduler) fn leases(&self) -> usize {
        self.all.values().filter(|grant| grant.lease.is_some()).count() + self.receding.len()
    }

    pub(super) fn get(&self, id: GrantId) -> Option<&Grant> {
        self.all.get(&id)
    }
}

/// How a grant begins to wait.
pub(super) struct WaitTerms {
    pub(super) asked_at: Moment,
    pub(super) turn: Moment,
    pub(super) until: Option<Moment>,
    pub(super) spares_batches_until: Moment,
    pub(super) allotted_by: Option<Moment>,
}

/// When a wait that begins now is over; `None` if it never is.
pub(super) fn wait_end(now: Moment, patience: Nanos, deadline: Option<Moment>) -> Option<Moment> {
    let by_patience = (patience != Nanos::MAX).then(|| now + patience);
    by_patience.into_iter().chain(deadline).min()
}
