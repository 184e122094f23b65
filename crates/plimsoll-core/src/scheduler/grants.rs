//! Grants: promises that last, from asking to being free. `grants/README.md` has the states and why nothing deadlocks.
//! Never takes bytes away: an owner is asked to step down, and what it gives back counts when it is known to be free.
//! Invariant: a grant ends exactly once; on every edge the ledger promises what grants hold (`check_grants`).
//!
//! | file | question |
//! |---|---|
//! | `grants.rs` | what may an owner do: ask, step, return? |
//! | `book.rs` | which grants are there, and in which state? |
//! | `tally.rs` | what is known of all of them together? |
//! | `returns.rs` | what was given back, and nobody knows to be free? |
//! | `give.rs` | who is given bytes, and what is kept for whom? |
//! | `pressure.rs` | how full are devices, and what quality does that leave to whom? |
//! | `recall.rs` | who has to step down for whom? |
//! | `steps.rs` | how far does one of them go? |
//! | `strangers.rs` | what if programs without a grant take what was promised? |
//! | `rise.rs` | who may go up again? |
//! | `control.rs` | what may be changed of a grant that is there? |
//! | `wait.rs` | why does a grant wait? |
//! | `outsiders.rs` | what do other programs really have, and is it free again? |
//! | `by_owner.rs` | and if the driver tells what each of them uses? |
//! | `programs.rs` | which grants outlive their scheduler, or go on with another program? |

mod book;
mod by_owner;
mod control;
mod give;
mod outsiders;
mod pressure;
mod programs;
mod recall;
mod returns;
mod rise;
mod steps;
mod strangers;
mod take_in;
mod tally;
mod wait;

pub(super) use book::Grants;

use super::{Discards, Host, Scheduler};
use crate::arbiter;
use crate::event::{GrantEdge, GrantEnd, What};
use crate::grant::{
    GrantError, GrantId, GrantOwner, GrantPhase, GrantRung, GrantSpec, GrantStatus, Portions, StepError, bytes_on,
};
use crate::ledger::{Holder, ShortfallError};
use crate::{Bytes, DeviceId, Moment, Nanos, Priority};
use book::Grant;
use returns::Receding;

/// Grants at once, in whatever state: each is looked at when memory comes back, and an owner has one or a few.
pub const GRANTS_MAX: usize = 4_096;
/// How many times as long as going to a rung took an owner it stays there at the least: moving takes at most a fifth of
/// its time.
const STAYS_PER_SWITCH: u64 = 4;

/// What an owner has to hear.
#[derive(Debug)]
pub enum GrantNews<H: Host> {
    /// It holds this rung from now on. Drop what is to be discarded before the bytes are used.
    Granted {
        /// Which.
        grant: GrantId,
        /// Which rung.
        rung: usize,
        /// Drop these first: their bytes are promised to this grant.
        discards: Discards<H>,
    },
    /// It should step down, or leave.
    Recalled {
        /// Which.
        grant: GrantId,
        /// The rung to step down to; `None` to leave.
        to: Option<usize>,
        /// Until when.
        until: Moment,
        /// Drop these before the bytes that the lower rung needs elsewhere are used.
        discards: Discards<H>,
    },
    /// The time of its recall is over. What happens now is its owner's policy.
    Overdue {
        /// Which.
        grant: GrantId,
    },
    /// It has not left in time, and its owner said that it may be stopped: stop it. Its bytes count as free when it has
    /// been returned, and seen to be.
    Stop {
        /// Which.
        grant: GrantId,
        /// When it should be gone.
        until: Moment,
    },
    /// A better rung fits now. Begin the step, if it is wanted.
    MayRise {
        /// Which.
        grant: GrantId,
        /// To which rung.
        rung: usize,
    },
    /// It is not given. It is over.
    Refused {
        /// Which.
        grant: GrantId,
        /// Why.
        refusal: GrantError,
    },
}

impl<H: Host> Scheduler<H> {
    /// Asks for a grant. What comes of it is in [`Scheduler::drain_grant_news`]; it may be there at once.
    ///
    /// # Errors
    /// Why it cannot be given at all, or not now if it has no patience.
    pub fn request(&mut self, now: Moment, spec: GrantSpec) -> Result<GrantId, GrantError> {
        self.may_request(&spec)?;
        let turn = arbiter::turn(now, spec.priority, spec.deadline, Nanos::ZERO, 0);
        let (waits_until, owner) = (book::wait_end(now, spec.patience, spec.deadline), spec.owner);
        let spares_batches_until = now + self.config.sharing.batch_wait_max;
        let allotted_by = self.waits_for_allotment(now, waits_until);
        let terms = book::WaitTerms { asked_at: now, turn, until: waits_until, spares_batches_until, allotted_by };
        let id = self.grants.enter(spec, terms);
        self.note(now, || What::Grant { grant: id, edge: GrantEdge::Asked { owner } });
        self.give_out(now);
        if waits_until.is_some_and(|until| until <= now) && self.is_waiting(id) {
            let refusal = GrantError::NotInTime(self.shortage(id));
            self.end_grant(now, id, GrantEnd::Refused);
            self.memory_freed(now);
            return Err(refusal);
        }
        Ok(id)
    }

    fn may_request(&self, spec: &GrantSpec) -> Result<(), GrantError> {
        let (rungs, limit) = (spec.ladder.len(), GrantSpec::RUNGS_MAX);
        if rungs == 0 || rungs > limit {
            return Err(GrantError::BadLadder { rungs, limit });
        }
        if !self.accepting {
            return Err(GrantError::ShuttingDown);
        }
        if self.grants.all.len() >= GRANTS_MAX {
            return Err(GrantError::TooMany { limit: GRANTS_MAX });
        }
        match spec.ladder.iter().map(|rung| self.never_fits(rung)).reduce(|above, below| above.and(below)).flatten() {
            Some(shortfall) => Err(GrantError::NeverFits(shortfall)),
            None => Ok(()),
        }
    }

    /// Where a rung is more than its device will ever have for us.
    fn never_fits(&self, rung: &GrantRung) -> Option<ShortfallError> {
        let too_large = rung.portions().iter().find(|(device, wanted)| *wanted > self.ledger.ceiling(*device));
        too_large.map(|&(device, wanted)| ShortfallError::NeverFits {
            device,
            wanted,
            line: self.ledger.ceiling(device),
        })
    }

    /// Promises bytes of several devices to somebody in this process, at once or not at all: before everything that
    /// waits, and never to be asked back. Idle sessions and references that must go for it come back to be closed before
    /// the bytes are used.
    ///
    /// # Errors
    /// Where and why they do not fit.
    pub fn lease(
        &mut self,
        now: Moment,
        portions: &[(DeviceId, Bytes)],
    ) -> Result<(GrantId, Discards<H>), ShortfallError> {
        let ladder = vec![GrantRung::new(portions)];
        let spec = GrantSpec {
            priority: Priority::Critical,
            patience: Nanos::ZERO,
            ..GrantSpec::new(GrantOwner::Caller, ladder)
        };
        let id = self.request(now, spec).map_err(|refusal| match refusal {
            GrantError::NeverFits(shortfall) | GrantError::NotInTime(shortfall) => shortfall,
            // None left to give, or nobody there to give: as if the devices were full.
            _ => self.nothing_left(portions),
        })?;
        Ok((id, self.take_granted(id)))
    }

    fn nothing_left(&self, portions: &[(DeviceId, Bytes)]) -> ShortfallError {
        let device = portions.first().map_or(DeviceId(0), |(device, _)| *device);
        ShortfallError::NotNow { device, wanted: bytes_on(portions, device), free: Bytes::ZERO }
    }

    /// The discards of a grant that was given a moment ago, out of the news.
    fn take_granted(&mut self, id: GrantId) -> Discards<H> {
        let is_it = |news: &GrantNews<H>| matches!(news, GrantNews::Granted { grant, .. } if *grant == id);
        let at = self.grants.news.iter().position(is_it);
        match at.map(|at| self.grants.news.remove(at)) {
            Some(GrantNews::Granted { discards, .. }) => discards,
            _ => Discards::default(),
        }
    }

    /// A grant as it stands; nothing once it is free.
    pub fn grant(&self, id: GrantId) -> Option<GrantStatus> {
        let grant = self.grants.get(id)?;
        let receding = self.grants.receding.of(id);
        let returning = receding.map(|each| (each.device, self.ledger.held(each.lease, each.device)));
        Some(GrantStatus {
            owner: grant.spec.owner,
            phase: grant.phase,
            rung: grant.rung,
            promised: grant
                .lease
                .map_or_else(Portions::new, |lease| self.ledger.portions(lease).iter().copied().collect()),
            returning: crate::grant::summed(&returning.collect::<Vec<_>>()),
            kind: grant.spec.kind,
            priority: grant.spec.priority,
            pinned: grant.spec.pinned,
            overdue: grant.overdue,
            stopping: grant.stopping,
            items_left: grant.items_left,
        })
    }

    /// What a grant is promised of a device, with what it has given back and nobody knows to be free; nothing once it is free.
    pub fn promised_to_grant(&self, id: GrantId, device: DeviceId) -> Bytes {
        let Some(grant) = self.grants.get(id) else { return Bytes::ZERO };
        let returning = self.grants.receding.of(id).map(|each| each.lease);
        grant.lease.into_iter().chain(returning).map(|lease| self.ledger.held(lease, device)).sum()
    }

    /// Every grant that is not free, oldest first.
    pub fn grants(&self) -> impl Iterator<Item = GrantId> + '_ {
        self.grants.all.keys().copied()
    }

    /// What owners have to hear since the last call, in order.
    pub fn drain_grant_news(&mut self) -> Vec<GrantNews<H>> {
        std::mem::take(&mut self.grants.news)
    }

    /// Whether there is something to hear.
    pub fn has_grant_news(&self) -> bool {
        self.grants.have_news()
    }

    /// Whether memory should be read although no task is there: a grant waits for it, or its return has to be seen.
    pub fn needs_readings(&self) -> bool {
        self.grants.need_readings()
    }

    fn is_waiting(&self, id: GrantId) -> bool {
        self.grants.get(id).is_some_and(|grant| grant.phase == GrantPhase::Waiting)
    }

    /// Its owner no longer wants a grant that waits. Says whether it still did.
    pub fn cancel_grant(&mut self, now: Moment, id: GrantId) -> bool {
        let waits = self.is_waiting(id);
        if waits {
            self.end_grant(now, id, GrantEnd::Cancelled);
            self.memory_freed(now);
        }
        waits
    }

    /// Refuses every grant that still waits: nothing is given out any more.
    pub fn refuse_waiting_grants(&mut self, now: Moment) {
        let waiting: Vec<GrantId> = self.grants.waiting.iter().map(|(_, id)| *id).collect();
        for id in waiting {
            self.refuse_grant(now, id, GrantError::ShuttingDown);
        }
        self.memory_freed(now);
    }

    fn refuse_grant(&mut self, now: Moment, id: GrantId, refusal: GrantError) {
        self.end_grant(now, id, GrantEnd::Refused);
        self.grants.news.push(GrantNews::Refused { grant: id, refusal });
    }

    fn end_grant(&mut self, now: Moment, id: GrantId, end: GrantEnd) {
        if self.grants.forget(id).is_some() {
            self.note(now, || What::Grant { grant: id, edge: GrantEdge::Ended(end) });
        }
    }

    /// Its owner has left, or no longer waits. Another program's bytes are free when the driver says so. A second return
    /// changes nothing, and says so.
    pub fn return_grant(&mut self, now: Moment, id: GrantId) -> bool {
        match self.grants.get(id).map(|grant| grant.phase) {
            None | Some(GrantPhase::Returning) => false,
            Some(GrantPhase::Waiting) => self.cancel_grant(now, id),
            Some(GrantPhase::Held | GrantPhase::Recalled { .. }) => {
                self.give_up_beyond(now, id, None);
                let lease = self.grants.change(id, |grant| {
                    grant.phase = GrantPhase::Returning;
                    grant.lease.take()
                });
                lease.flatten().into_iter().for_each(|lease| self.give_back(lease));
                self.note(now, || What::Grant { grant: id, edge: GrantEdge::Left });
                self.end_if_free(now, id);
                self.memory_freed(now);
                true
            }
        }
    }

    /// A grant whose owner has left is free when nothing of it is on its way back any more.
    fn end_if_free(&mut self, now: Moment, id: GrantId) {
        let has_left = self.grants.get(id).is_some_and(|grant| grant.phase == GrantPhase::Returning);
        if has_left && !self.grants.receding.any_of(id) {
            self.end_grant(now, id, GrantEnd::Returned);
        }
    }

    /// Takes out of a grant's lease what it does not need on this rung, nor on the one that it was asked to go to.
    fn give_up_beyond(&mut self, now: Moment, id: GrantId, rung: Option<usize>) {
        let Some((lease, owner)) = self.grants.get(id).and_then(|grant| Some((grant.lease?, grant.spec.owner))) else {
            return;
        };
        let portions: Portions = self.ledger.portions(lease).iter().copied().collect();
        for (device, _) in portions {
            let keep = self.grants.get(id).map_or(Bytes::ZERO, |grant| grant.needs_at(rung, device));
            let Some(rest) = self.ledger.split(lease, device, keep) else { continue };
            if owner.is_outside() {
                let until = now + self.config.return_wait_max;
                let receding = Receding { grant: id, owner, device, lease: rest, until, is_read: false };
                self.grants.receding.push(receding);
            } else {
                self.give_back(rest);
            }
        }
    }

    /// Reserves what a held grant needs more on another rung of its ladder, beside what it has: for a step up, or one down
    /// to another device. [`Scheduler::stepped_to`] then gives back what the old rung had more. Drop what comes back
    /// before the bytes are used.
    ///
    /// # Errors
    /// Why it cannot, or where it does not fit now.
    pub fn begin_step(&mut self, now: Moment, id: GrantId, rung: usize) -> Result<Discards<H>, StepError> {
        let grant = self.grants.get(id).ok_or(StepError::NotHeld)?;
        if grant.phase != GrantPhase::Held {
            return Err(StepError::NotHeld);
        }
        if rung >= grant.spec.ladder.len() {
            return Err(StepError::NoStep { rung });
        }
        let reserved = self.reserve_for_step(now, id, rung, self.waited_for());
        self.grants.change(id, |grant| grant.told_to_rise = false);
        reserved.map_err(StepError::DoesNotFit)
    }

    /// The owner of a held or recalled grant is on this rung of its ladder now, and has given back what it had more.
    ///
    /// # Errors
    /// Why that cannot be.
    pub fn stepped_to(&mut self, now: Moment, id: GrantId, rung: usize) -> Result<(), StepError> {
        let grant = self.grants.get(id).filter(|grant| grant.is_held()).ok_or(StepError::NotHeld)?;
        let lease = grant.lease.ok_or(StepError::NotHeld)?;
        let step = grant.spec.ladder.get(rung).ok_or(StepError::NoStep { rung })?;
        let missing = step.portions().iter().find(|(device, bytes)| *bytes > self.ledger.held(lease, *device));
        if let Some(&(device, _)) = missing {
            return Err(StepError::NotReserved { device });
        }
        let is_down = grant.rung.is_some_and(|before| rung > before);
        let has_moved = grant.rung != Some(rung);
        let stays_until = self.stays_until(now, step);
        let rise_pause = self.config.sharing.rise_pause;
        self.give_up_beyond(now, id, Some(rung));
        self.grants.change(id, |grant| {
            grant.rung = Some(rung);
            grant.told_to_rise = false;
            grant.rises_from = is_down.then(|| now + rise_pause);
            if has_moved {
                grant.stays_until = stays_until;
            }
            grant.fell_from = grant.fell_from.filter(|before| *before < rung);
            if let GrantPhase::Recalled { to: Some(to), .. } = grant.phase
                && rung >= to
            {
                (grant.phase, grant.overdue) = (GrantPhase::Held, false);
            }
        });
        self.note(now, || What::Grant { grant: id, edge: GrantEdge::Stepped { rung: rung as u8 } });
        self.memory_freed(now);
        Ok(())
    }

    /// Until when who comes to a rung now stays there; `None` if it may be moved at once.
    fn stays_until(&self, now: Moment, rung: &GrantRung) -> Option<Moment> {
        let by_cost = Nanos(rung.switch_cost.0.saturating_mul(STAYS_PER_SWITCH));
        let stays = self.config.sharing.residency_min.max(by_cost);
        (stays > Nanos::ZERO).then(|| now + stays)
    }

    /// Memory came back, or somebody who was before others has gone.
    #[inline]
    pub(super) fn offer_memory_to_grants(&mut self, now: Moment) {
        if self.grants.want_memory() {
            self.give_out(now);
        }
    }

    /// What is due because time has passed: waits that are over, recalls that are, returns that nobody has seen.
    pub(super) fn tick_grants(&mut self, now: Moment) {
        if self.grants.due().is_none_or(|due| due > now) {
            return;
        }
        let late = |grant: &book::Grant| {
            grant.phase == GrantPhase::Waiting && grant.waits_until.is_some_and(|until| until <= now)
        };
        for id in self.grants.due_by(now, late) {
            let refusal = GrantError::NotInTime(self.shortage(id));
            self.refuse_grant(now, id, refusal);
        }
        let overdue = |grant: &book::Grant| {
            !grant.overdue && matches!(grant.phase, GrantPhase::Recalled { until, .. } if until <= now)
        };
        for id in self.grants.due_by(now, overdue) {
            self.grants.change(id, |grant| grant.overdue = true);
            self.note(now, || What::Grant { grant: id, edge: GrantEdge::Overdue });
            self.grants.news.push(GrantNews::Overdue { grant: id });
        }
        self.forget_what_has_passed(now);
        self.believe_the_driver(now);
        self.yield_to_strangers(now);
        self.memory_freed(now);
    }

    /// Pauses that are over.
    fn forget_what_has_passed(&mut self, now: Moment) {
        let has_passed = |at: Option<Moment>| at.is_some_and(|at| at <= now);
        let any_has = |grant: &book::Grant| {
            let fell = grant.fell.map(|fell| fell.until);
            let others = [grant.stays_until, grant.spares_batches_until, grant.allotted_by, fell];
            has_passed(grant.rises_from) || others.into_iter().any(has_passed)
        };
        for id in self.grants.due_by(now, any_has) {
            self.grants.change(id, |grant| {
                let Grant { rises_from, stays_until, spares_batches_until, allotted_by, .. } = grant;
                for pause in [rises_from, stays_until, spares_batches_until, allotted_by] {
                    *pause = pause.filter(|until| *until > now);
                }
                grant.fell = grant.fell.filter(|fell| fell.until > now);
            });
        }
    }

    fn those(&self, are_meant: impl Fn(&book::Grant) -> bool) -> Vec<GrantId> {
        self.grants.all.iter().filter(|(_, grant)| are_meant(grant)).map(|(id, _)| *id).collect()
    }

    /// Why a grant that waits is not given: where its lowest rung does not fit.
    fn shortage(&self, id: GrantId) -> ShortfallError {
        let lowest = self.grants.get(id).and_then(|grant| grant.spec.ladder.last());
        let short = lowest.and_then(|rung| {
            let does_not_fit = |(device, wanted): &&(DeviceId, Bytes)| *wanted > self.free_for_grants(*device);
            rung.portions().iter().find(does_not_fit).or_else(|| rung.portions().first())
        });
        let (device, wanted) = short.copied().unwrap_or((DeviceId(0), Bytes::ZERO));
        self.not_now(device, wanted, self.free_for_grants(device))
    }

    /// Bytes do not fit now. If they would but for grants, the largest is named.
    pub(super) fn not_now(&self, device: DeviceId, wanted: Bytes, free: Bytes) -> ShortfallError {
        let held_by = |grant: &book::Grant| grant.lease.map_or(Bytes::ZERO, |lease| self.ledger.held(lease, device));
        let held = self.grants.all.values().map(|grant| (held_by(grant), grant.spec.owner));
        let receding = self.grants.receding.iter().map(|(_, each)| (self.ledger.held(each.lease, device), each.owner));
        match held.chain(receding).max_by_key(|(bytes, _)| *bytes) {
            Some((granted, owner)) if granted > Bytes::ZERO && wanted <= self.ledger.measured(device) => {
                ShortfallError::Granted { device, wanted, free, owner, granted }
            }
            _ => ShortfallError::NotNow { device, wanted, free },
        }
    }

    fn holder_of(owner: GrantOwner) -> Holder {
        if owner.is_outside() { Holder::Program } else { Holder::Grant }
    }

    /// Checks the book of grants against the ledger.
    pub(super) fn check_grants(&self) -> Result<(), String> {
        if self.grants.all.len() > GRANTS_MAX {
            return Err(format!("{} grants beyond the limit of {GRANTS_MAX}", self.grants.all.len()));
        }
        for (id, grant) in &self.grants.all {
            let waits = self.grants.waiting.contains(&(grant.turn, *id));
            if waits != (grant.phase == GrantPhase::Waiting) || grant.lease.is_some() != grant.is_held() {
                return Err(format!("{id} is {:?}, in line {waits}, with lease {:?}", grant.phase, grant.lease));
            }
            let (Some(lease), Some(rung)) = (grant.lease, grant.rung) else { continue };
            let needs = grant.spec.ladder[rung].portions();
            if let Some((device, bytes)) = needs.iter().find(|(on, bytes)| self.ledger.held(lease, *on) < *bytes) {
                return Err(format!("{id} is on rung {rung}, but not promised {bytes} of {device}"));
            }
        }
        if self.grants.waiting.len() > self.grants.all.len() {
            return Err("more grants in line than there are".into());
        }
        self.grants.check()?;
        for device in self.device_ids() {
            let leases = self.grants.all.values().filter_map(|grant| grant.lease);
            let leases = leases.chain(self.grants.receding.iter().map(|(_, each)| each.lease));
            let held: Bytes = leases.map(|lease| self.ledger.held(lease, device)).sum();
            if held != self.ledger.outside(device) {
                return Err(format!("{device}: grants hold {held}, the ledger says {}", self.ledger.outside(device)));
            }
        }
        Ok(())
    }
}
