//! Steps: how far one holder may be made to go, and how far it goes for what is missing.
//! Never decides who is asked first; that is `recall`.
//! Invariants: nobody who is pinned is asked; only for somebody `leave_levels` above does one leave, go below the quality
//! that is of use to it, or give up a batch; the next step only when the one before is overdue.

use super::super::{Host, Scheduler};
use super::book::Grant;
use super::recall::{Ask, Asker, Round, Step};
use crate::grant::{GrantId, GrantPhase, Portions, bytes_on};
use crate::sharing::{self, RungSet};
use crate::{Bytes, DeviceId, DeviceSet, Priority, Quality};

/// How far a holder may be made to go.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Reach {
    /// Not at all.
    Stays,
    /// Down to this quality.
    Down(Quality),
    /// All the way.
    Leaves,
}

impl<H: Host> Scheduler<H> {
    /// How far a grant may be made to go for somebody in one round of asking.
    pub(super) fn reach(&self, id: GrantId, grant: &Grant, asker: Asker, round: Round) -> Reach {
        if grant.spec.pinned || !grant.is_held() {
            return Reach::Stays;
        }
        let reach = match asker {
            Asker::Strangers if round == Round::Leave => Reach::Leaves,
            Asker::Strangers => Reach::Down(sharing::quality_min(grant.spec.kind)),
            Asker::Waiter { priority, .. } => self.reach_for(id, grant, priority, round),
        };
        let spared_within_batch = match asker {
            Asker::Strangers => false,
            Asker::Waiter { spares_batches, .. } => spares_batches || reach != Reach::Leaves,
        };
        if grant.is_within_batch() && spared_within_batch {
            return Reach::Stays;
        }
        let must_stay = grant.overdue || grant.stays_until.is_some() && asker != Asker::Strangers;
        if must_stay && reach != Reach::Leaves { Reach::Stays } else { reach }
    }

    fn reach_for(&self, id: GrantId, grant: &Grant, priority: Priority, round: Round) -> Reach {
        let levels = priority.level().saturating_sub(grant.spec.priority.level());
        let may_leave = levels >= usize::from(self.config.sharing.leave_levels.max(1));
        match round {
            Round::Leave if may_leave => Reach::Leaves,
            Round::Leave | Round::Step if levels > 0 => Reach::Down(sharing::quality_min(grant.spec.kind)),
            _ => self.reach_by_sharing(id, grant),
        }
    }

    /// One that has more than is recommended for it goes down to that, whoever waits.
    fn reach_by_sharing(&self, id: GrantId, grant: &Grant) -> Reach {
        let ladder = &grant.spec.ladder;
        let (to_have, now) = (self.rungs_to_have(id, grant), grant.rung.map(|rung| ladder[rung].quality));
        let best = to_have.best_quality(ladder);
        if to_have != RungSet::ALL && now > Some(best) { Reach::Down(best) } else { Reach::Stays }
    }

    /// How far one grant goes, a rung at a time, until it has given what is left to give. If that is not enough it leaves,
    /// or goes as far as it may.
    pub(super) fn step_for(&self, id: GrantId, asker: Asker, reach: Reach, left: &[(DeviceId, Bytes)]) -> Option<Step> {
        let grant = self.grants.get(id)?;
        let down_to = match reach {
            Reach::Stays => return None,
            Reach::Leaves if grant.overdue => return self.next_step(id, grant, asker, left),
            Reach::Leaves => Quality::ANY,
            Reach::Down(quality) => quality,
        };
        let is_enough = |step: &Step| left.iter().all(|&(device, bytes)| bytes_on(&step.frees, device) >= bytes);
        let mut steps = self.steps_down(id, grant, down_to);
        if let Some(enough) = steps.iter().position(is_enough) {
            return Some(steps.swap_remove(enough));
        }
        let most = match reach {
            Reach::Leaves if asked_to_leave(grant) => None,
            Reach::Leaves => Some(Step { ask: Ask::Grant(id, None), frees: self.frees(id, None) }),
            _ => steps.into_iter().max_by_key(|step| freed(&step.frees, left)),
        };
        most.filter(|step| freed(&step.frees, left) > Bytes::ZERO)
    }

    /// The rungs below the one that a grant is on, or was asked to go to, that it could go to now.
    pub(super) fn steps_down(&self, id: GrantId, grant: &Grant, down_to: Quality) -> Vec<Step> {
        let below = match grant.phase {
            GrantPhase::Recalled { to: Some(to), .. } => to + 1,
            GrantPhase::Recalled { to: None, .. } => return Vec::new(),
            _ => grant.rung.map_or(usize::MAX, |rung| rung + 1),
        };
        let ladder = grant.spec.ladder.iter().enumerate().skip(below);
        let rungs = ladder.filter(|(_, rung)| rung.quality >= down_to).map(|(rung, _)| rung);
        let fits = |rung: &usize| {
            self.step_shortage(&self.more_than_held(id, *rung), grant.spec.owner, DeviceSet::NONE).is_none()
        };
        rungs
            .filter(fits)
            .map(|rung| Step { ask: Ask::Grant(id, Some(rung)), frees: self.frees(id, Some(rung)) })
            .collect()
    }

    /// A grant has not done in time what it was asked for: one that was to step down has to leave, one that was to leave is
    /// stopped if it may be. Nobody is stopped for programs without a grant.
    fn next_step(&self, id: GrantId, grant: &Grant, asker: Asker, left: &[(DeviceId, Bytes)]) -> Option<Step> {
        let may_be_stopped = grant.spec.may_be_stopped && !grant.stopping && asker != Asker::Strangers;
        let ask = match grant.phase {
            GrantPhase::Recalled { to: Some(_), .. } => Ask::Grant(id, None),
            GrantPhase::Recalled { to: None, .. } if may_be_stopped => Ask::Stop(id),
            _ => return None,
        };
        let frees = self.frees(id, None);
        (freed(&frees, left) > Bytes::ZERO).then_some(Step { ask, frees })
    }
}

fn asked_to_leave(grant: &Grant) -> bool {
    matches!(grant.phase, GrantPhase::Recalled { to: None, .. })
}

/// How much of what is missing comes back.
fn freed(frees: &Portions, left: &[(DeviceId, Bytes)]) -> Bytes {
    left.iter().map(|&(device, missing)| bytes_on(frees, device).min(missing)).sum()
}
