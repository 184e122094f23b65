//! Give: who of those that wait is given bytes, and what is kept for whom.
//! Never gives a part: every portion of a rung is promised in one step, or none.
//! Invariants: nobody is given bytes of a device that somebody before it waits for; what becomes free is kept for the
//! first in line as long as no task before it waits on that device.

use smallvec::SmallVec;

use super::super::evict::Needs;
use super::super::state::Phase;
use super::super::take::LOOK;
use super::super::{Discards, Host, Scheduler};
use super::GrantNews;
use super::recall::Asker;
use crate::event::{GrantEdge, What};
use crate::grant::{GrantError, GrantId, GrantOwner, GrantPhase, GrantRung, Portions, bytes_on};
use crate::ledger::{Ledger, ShortfallError};
use crate::{Bytes, DeviceId, DeviceSet, Moment, Priority};

impl<H: Host> Scheduler<H> {
    /// Looks at everybody who waits, first to last, and gives what can be given.
    pub(super) fn give_out(&mut self, now: Moment) {
        let kept_before: SmallVec<[Bytes; 8]> = self.device_ids().map(|device| self.ledger.kept(device)).collect();
        self.device_ids().for_each(|device| self.ledger.keep(device, Bytes::ZERO));
        let waiting: SmallVec<[GrantId; 8]> = self.grants.waiting.iter().map(|(_, id)| *id).collect();
        let mut taken_before = DeviceSet::NONE;
        for id in waiting {
            match self.fitting_rung(id, taken_before) {
                Fitting::Now(rung) => self.give(now, id, rung),
                Fitting::Never(shortfall) => self.refuse_grant(now, id, GrantError::NeverFits(shortfall)),
                Fitting::Later => {
                    self.wait_for_runs_or_recall(now, id, taken_before);
                    taken_before = self.devices_of(id).fold(taken_before, DeviceSet::with);
                }
                // Nobody here is troubled for what others may give in a moment.
                Fitting::ForAllotment => taken_before = self.devices_of(id).fold(taken_before, DeviceSet::with),
            }
        }
        self.grants.keeps = self.device_ids().any(|device| self.ledger.kept(device) > Bytes::ZERO);
        for (device, before) in self.device_ids().zip(kept_before) {
            if self.ledger.kept(device) < before && !self.device(device).queue.is_empty() {
                self.wakes = self.wakes.with(device);
            }
        }
        self.tell_who_may_rise(now);
        self.want_allotment_for_grants();
    }

    /// The allotment of a device with which the first grant that waits would be given its best rung there is; or else one
    /// with which a grant that stepped down could rise, which nobody else is troubled for.
    pub(in crate::scheduler) fn wanted_by_grants(&self, device: DeviceId) -> Option<(Bytes, Priority)> {
        let lacks = |more: &[(DeviceId, Bytes)]| {
            let missing = bytes_on(more, device) - self.free_for_grants(device);
            (missing > Bytes::ZERO && self.could_be_allotted(device, missing))
                .then(|| self.allotment_with(device, missing))
        };
        let mut waiting = self.grants.waiting.iter().filter_map(|(_, id)| self.grants.get(*id));
        let wanted = |grant: &super::book::Grant| {
            let line = grant.spec.ladder.iter().find_map(|rung| lacks(rung.portions()))?;
            Some((line, grant.spec.priority))
        };
        let mut rising = self.grants.tally.rising();
        let to_rise = |id: GrantId| {
            let rungs_above = 0..self.grants.get(id)?.rung.unwrap_or(0);
            let line = rungs_above.into_iter().find_map(|rung| lacks(&self.more_than_held(id, rung)))?;
            Some((line, Priority::Background))
        };
        waiting.find_map(wanted).or_else(|| rising.find_map(to_rise))
    }

    /// Every device that a grant could use.
    fn devices_of(&self, id: GrantId) -> impl Iterator<Item = DeviceId> + use<H> {
        let rungs = self.grants.get(id).into_iter().flat_map(|grant| &grant.spec.ladder);
        rungs.flat_map(|rung| rung.portions()).map(|(device, _)| *device).collect::<SmallVec<[_; 8]>>().into_iter()
    }

    /// The best rung that a grant can be given now, of those that it should have.
    fn fitting_rung(&self, id: GrantId, taken_before: DeviceSet) -> Fitting {
        let Some(grant) = self.grants.get(id) else { return Fitting::Later };
        let (turn, owner) = (grant.turn, grant.spec.owner);
        let mut never = None;
        let mut can_ever = false;
        let to_have = self.rungs_to_have(id, grant);
        for (at, rung) in grant.spec.ladder.iter().enumerate() {
            match self.never_fits(rung) {
                Some(shortfall) => never = Some(shortfall),
                None => {
                    can_ever = true;
                    if to_have.contains(at) && self.fits_now(rung.portions(), owner, turn, taken_before) {
                        return Fitting::Now(at);
                    }
                    if to_have.contains(at) && grant.allotted_by.is_some() && self.lacks_allotment(rung.portions()) {
                        return Fitting::ForAllotment;
                    }
                }
            }
        }
        never.filter(|_| !can_ever).map_or(Fitting::Later, Fitting::Never)
    }

    /// Whether nothing but the allotment keeps these bytes from fitting.
    fn lacks_allotment(&self, portions: &[(DeviceId, Bytes)]) -> bool {
        let missing = |&(device, bytes): &(DeviceId, Bytes)| (device, bytes - self.free_for_grants(device));
        let mut lacking = portions.iter().map(missing).filter(|(_, missing)| *missing > Bytes::ZERO).peekable();
        lacking.peek().is_some() && lacking.all(|(device, missing)| self.could_be_allotted(device, missing))
    }

    fn fits_now(&self, more: &[(DeviceId, Bytes)], owner: GrantOwner, turn: Moment, taken_before: DeviceSet) -> bool {
        more.iter().all(|&(device, bytes)| {
            !taken_before.contains(device)
                && bytes <= self.free_for_grants(device)
                && self.leaves_enough(device, bytes, owner, turn)
        })
    }

    /// Whether those tasks that stand in this device's queue before a moment still fit beside a grant of so many bytes.
    /// What a grant takes does not come back by itself: a task that had been before it could wait for ever.
    fn leaves_enough(&self, device: DeviceId, bytes: Bytes, owner: GrantOwner, turn: Moment) -> bool {
        let beside_grants = self.ledger.measured(device) - self.ledger.lasting(device);
        let before = self.device(device).queue.iter().take(LOOK).take_while(|task| {
            self.tasks
                .get(*task)
                .is_some_and(|state| matches!(state.phase, Phase::Queued { key, .. } if key.turn < turn))
        });
        let is_owners = |task: &crate::TaskId| {
            let sequence = self.tasks.get(*task).and_then(|state| state.spec.sequence);
            sequence.is_some_and(|sequence| owner == GrantOwner::Sequence(sequence))
        };
        let mut needs = before.filter(|task| !is_owners(task)).map(|task| self.queued_bytes(task));
        needs.all(|needed| needed > beside_grants || needed <= beside_grants - bytes)
    }

    /// Whether the first task in a device's queue comes before this moment.
    fn a_task_comes_before(&self, device: DeviceId, turn: Moment) -> bool {
        let first = self.device(device).queue.nth(0).and_then(|task| self.tasks.get(task));
        first.is_some_and(|state| matches!(state.phase, Phase::Queued { key, .. } if key.turn < turn))
    }

    fn give(&mut self, now: Moment, id: GrantId, rung: usize) {
        let Some(grant) = self.grants.get(id) else { return };
        let (portions, owner) = (grant.spec.ladder[rung].portions().to_vec(), grant.spec.owner);
        let stays_until = self.stays_until(now, &grant.spec.ladder[rung]);
        let mut discards = Discards::default();
        self.evict_for(now, &portions, &mut discards);
        let Ok(lease) = self.ledger.reserve_all(&portions, Self::holder_of(owner)) else {
            debug_assert!(false, "it was looked at a moment ago and fitted");
            return self.discarded.extend(discards);
        };
        self.grants.change(id, |grant| {
            (grant.phase, grant.rung, grant.lease) = (GrantPhase::Held, Some(rung), Some(lease));
            grant.stay_on_its_devices();
            (grant.stays_until, grant.spares_batches_until, grant.allotted_by) = (stays_until, None, None);
        });
        let bytes = portions.iter().map(|(_, bytes)| *bytes).sum();
        self.note(now, || What::Grant { grant: id, edge: GrantEdge::Given { rung: rung as u8, bytes } });
        self.grants.news.push(GrantNews::Granted { grant: id, rung, discards });
    }

    fn evict_for(&mut self, now: Moment, portions: &[(DeviceId, Bytes)], discards: &mut Discards<H>) {
        for &(device, wanted) in portions {
            let is_short = |ledger: &Ledger| ledger.unpromised(device) < wanted;
            self.evict_while(now, device, is_short, &Needs::nothing(), discards);
        }
    }

    /// A grant cannot be given now. If it will be once our own runs have ended, what becomes free is kept for it. If not,
    /// less urgent grants are asked to step down.
    fn wait_for_runs_or_recall(&mut self, now: Moment, id: GrantId, taken_before: DeviceSet) {
        // Nobody is troubled for somebody who does not wait.
        let waits = |grant: &&super::book::Grant| grant.waits_until.is_none_or(|until| until > now);
        let Some(grant) = self.grants.get(id).filter(waits) else { return };
        let (turn, to_have) = (grant.turn, self.rungs_to_have(id, grant));
        let asker =
            Asker::Waiter { priority: grant.spec.priority, spares_batches: grant.spares_batches_until.is_some() };
        let is_open = |(at, rung): &(usize, &GrantRung)| {
            let is_taken = rung.portions().iter().any(|(device, _)| taken_before.contains(*device));
            to_have.contains(*at) && self.never_fits(rung).is_none() && !is_taken
        };
        let open = grant.spec.ladder.iter().enumerate().filter(is_open);
        let open: SmallVec<[Portions; 4]> = open.map(|(_, rung)| rung.portions().iter().copied().collect()).collect();
        if let Some(portions) = open.iter().find(|portions| self.fits_after(portions, Waits::ForRuns)) {
            return self.keep_for(turn, portions);
        }
        // Readers of values need memory too: nothing is kept from them.
        if open.iter().any(|portions| self.fits_after(portions, Waits::ForValues)) {
            return;
        }
        for portions in &open {
            if self.recall_for(now, asker, portions) {
                return;
            }
        }
    }

    /// Keeps bytes for a grant, but not from tasks that come before it.
    fn keep_for(&mut self, turn: Moment, portions: &[(DeviceId, Bytes)]) {
        for &(device, bytes) in portions {
            if !self.a_task_comes_before(device, turn) {
                self.ledger.keep(device, bytes);
            }
        }
    }

    fn fits_after(&self, portions: &[(DeviceId, Bytes)], waits: Waits) -> bool {
        portions.iter().all(|&(device, bytes)| bytes <= self.left_after(device, waits))
    }

    /// The bytes of a device that will be left once what comes back by itself has, and everything idle went.
    fn left_after(&self, device: DeviceId, waits: Waits) -> Bytes {
        let stays = match waits {
            Waits::ForRuns => self.ledger.values(device),
            Waits::ForValues => Bytes::ZERO,
        };
        self.ledger.measured(device) - (self.ledger.lasting(device) + stays)
    }

    /// A task was put into this device's queue: if it comes before the grant that bytes are kept for, they are not.
    #[inline]
    pub(in crate::scheduler) fn keep_no_longer_if_before(&mut self, device: DeviceId) {
        if self.grants.wait() && self.ledger.kept(device) > Bytes::ZERO {
            let first = self.grants.waiting.iter().find(|(_, id)| self.devices_of(*id).any(|on| on == device));
            if first.is_some_and(|(turn, _)| self.a_task_comes_before(device, *turn)) {
                self.ledger.keep(device, Bytes::ZERO);
            }
        }
    }

    /// Reserves what a grant needs more for a rung. Nobody who waits is passed over by that, and no task in a queue.
    pub(super) fn reserve_for_step(
        &mut self,
        now: Moment,
        id: GrantId,
        rung: usize,
        taken_before: DeviceSet,
    ) -> Result<Discards<H>, ShortfallError> {
        let Some(grant) = self.grants.get(id) else { return Ok(Discards::default()) };
        let (Some(lease), owner) = (grant.lease, grant.spec.owner) else { return Ok(Discards::default()) };
        let portions: Portions = grant.spec.ladder[rung].portions().iter().copied().collect();
        let more = self.more_than_held(id, rung);
        if let Some(short) = self.step_shortage(&more, owner, taken_before) {
            return Err(short);
        }
        let mut discards = Discards::default();
        self.evict_for(now, &more, &mut discards);
        self.ledger.extend(lease, &portions)?;
        Ok(discards)
    }

    /// What a rung needs beyond what a grant is promised.
    pub(super) fn more_than_held(&self, id: GrantId, rung: usize) -> Portions {
        let Some(grant) = self.grants.get(id) else { return Portions::new() };
        let held = grant.lease.map_or(&[][..], |lease| self.ledger.portions(lease));
        let more = grant.spec.ladder[rung].portions().iter().map(|&(on, bytes)| (on, bytes - bytes_on(held, on)));
        more.filter(|(_, bytes)| *bytes > Bytes::ZERO).collect()
    }

    /// The devices that some grant waits for.
    pub(super) fn waited_for(&self) -> DeviceSet {
        self.grants.waiting.iter().flat_map(|(_, id)| self.devices_of(*id)).collect()
    }

    /// Where the bytes of a step are not to be had now. No task in a queue is passed over by it, whenever it came.
    pub(in crate::scheduler) fn step_shortage(
        &self,
        more: &[(DeviceId, Bytes)],
        owner: GrantOwner,
        taken_before: DeviceSet,
    ) -> Option<ShortfallError> {
        let short = more.iter().find(|portion| !self.fits_now(&[**portion], owner, Moment(u64::MAX), taken_before));
        short.map(|&(device, wanted)| match self.ledger.ceiling(device) {
            line if wanted > line => ShortfallError::NeverFits { device, wanted, line },
            _ => self.not_now(device, wanted, self.free_for_grants(device)),
        })
    }
}

/// What a grant waits for that comes back by itself.
#[derive(Copy, Clone)]
enum Waits {
    /// Runs that are under way.
    ForRuns,
    /// Those, and the readers of values that lie about.
    ForValues,
}

/// What can be said of a grant that waits.
enum Fitting {
    /// This rung fits.
    Now(usize),
    /// None does, but one may.
    Later,
    /// One would with a larger allotment, which has been asked for a moment ago.
    ForAllotment,
    /// None ever will.
    Never(ShortfallError),
}
