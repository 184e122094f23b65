//! Rise: who hears that a better rung fits again.
//! Never reserves anything: it is a hint, and `begin_step` asks again.
//! Invariants: nobody rises into what somebody waits for; nor, while that is remembered, to where its devices would be
//! nearly as full as they were when it had to step down.

use smallvec::SmallVec;

use super::super::{Host, Scheduler};
use super::GrantNews;
use super::book::{Fall, Grant};
use crate::event::{GrantEdge, What};
use crate::grant::GrantId;
use crate::{Bytes, DeviceId, DeviceSet, Moment, Nanos};

/// How far below the share that made a grant step down its devices have to stay if it rises, in parts of the ceiling.
const RISE_DISTANCE: f64 = 0.05;
/// How many times the least time on a rung it is remembered what made a grant step down. Then it may try again.
const FALL_REMEMBERED: u64 = 8;

impl<H: Host> Scheduler<H> {
    /// Tells the most urgent grant that asked for it that a better rung fits, if one does. Batches with items left come first,
    /// and what they had before they had to step down is left for them.
    pub(super) fn tell_who_may_rise(&mut self, now: Moment) {
        let below: SmallVec<[GrantId; 8]> = self.grants.tally.below().collect();
        if below.is_empty() {
            return;
        }
        let mut taken = self.waited_for();
        for id in below {
            let Some(grant) = self.grants.get(id) else { continue };
            match grant.wants_to_rise().then(|| self.rung_to_rise_to(id, grant, taken)).flatten() {
                Some(rung) => {
                    self.grants.change(id, |grant| grant.told_to_rise = true);
                    self.note(now, || What::Grant { grant: id, edge: GrantEdge::MayRise { rung: rung as u8 } });
                    self.grants.news.push(GrantNews::MayRise { grant: id, rung });
                    return;
                }
                None => taken = self.kept_for_batch(id, grant).fold(taken, DeviceSet::with),
            }
        }
    }

    fn rung_to_rise_to(&self, id: GrantId, grant: &Grant, taken: DeviceSet) -> Option<usize> {
        let rungs = self.rungs_to_have(id, grant);
        let mut above = (0..grant.rung?).filter(|rung| rungs.contains(*rung));
        above.find(|&rung| {
            let more = self.more_than_held(id, rung);
            self.step_shortage(&more, grant.spec.owner, taken).is_none() && self.is_clear_of_fall(grant, rung, &more)
        })
    }

    fn is_clear_of_fall(&self, grant: &Grant, rung: usize, more: &[(DeviceId, Bytes)]) -> bool {
        let after = || self.fullest(&grant.spec.ladder[rung], more);
        grant.fell.is_none_or(|fell| after() <= fell.share - RISE_DISTANCE)
    }

    /// The devices on which nobody else rises because a batch had more of them before it had to step down.
    fn kept_for_batch(&self, id: GrantId, grant: &Grant) -> impl Iterator<Item = DeviceId> + use<H> {
        let fell_from = grant.fell_from.filter(|_| grant.has_fallen_within_batch());
        let more = fell_from.map(|rung| self.more_than_held(id, rung)).unwrap_or_default();
        more.into_iter().map(|(device, _)| device)
    }

    /// A grant is asked to step down: what its devices are filled by now is remembered.
    pub(super) fn remember_fall(&mut self, now: Moment, id: GrantId) {
        let Some((rung, held)) = self.grants.get(id).and_then(|grant| Some((grant.rung?, grant))) else { return };
        let share = self.fullest(&held.spec.ladder[rung], &[]);
        let span = Nanos(self.config.sharing.residency_min.0.saturating_mul(FALL_REMEMBERED));
        let fell = (span > Nanos::ZERO).then(|| Fall { share, until: now + span });
        self.grants.change(id, |grant| {
            grant.fell = fell;
            grant.fell_from = Some(grant.fell_from.map_or(rung, |before| before.min(rung)));
        });
    }
}
