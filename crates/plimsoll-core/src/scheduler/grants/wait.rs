//! Wait: why a grant is not given yet, who holds what it needs, and when that may end.
//! Never decides anything; it says what `give` and `recall` have decided.

use super::super::{Host, Scheduler};
use super::book::Grant;
use crate::grant::{GrantId, GrantPhase, GrantWait, WaitReason, bytes_on};
use crate::{Bytes, DeviceId, Moment};

impl<H: Host> Scheduler<H> {
    /// Where a grant that waits stands, why it is not given, and when it may be; nothing if it does not wait.
    pub fn wait_of(&self, id: GrantId) -> Option<GrantWait> {
        let grant = self.grants.get(id).filter(|grant| grant.phase == GrantPhase::Waiting)?;
        let before = || self.grants.waiting.range(..(grant.turn, id)).map(|(_, other)| *other);
        let (device, wanted) = self.scarcest(id, grant);
        let free = self.free_for_grants(device);
        let first = before().find(|other| self.could_use(*other, device));
        let reason = match first {
            Some(other) if wanted <= free => WaitReason::Behind(other),
            _ => self.reason_on(device, wanted),
        };
        Some(GrantWait {
            before: before().count(),
            reason,
            device,
            wanted,
            free,
            strangers: self.grants.outsiders[device.index()].strangers(),
            holders: self.holders_of(device),
            expected: self.last_due(device),
            until: grant.waits_until,
        })
    }

    /// The portion of the lowest rung that it may be given of which most is missing.
    fn scarcest(&self, id: GrantId, grant: &Grant) -> (DeviceId, Bytes) {
        let rungs = self.rungs_to_have(id, grant);
        let ladder = grant.spec.ladder.iter().enumerate().filter(|(at, _)| rungs.contains(*at));
        let possible = ladder.map(|(_, rung)| rung).rfind(|rung| self.never_fits(rung).is_none());
        let portions = possible.or(grant.spec.ladder.last()).map_or(&[][..], |rung| rung.portions());
        let missing = |(device, wanted): &&(DeviceId, Bytes)| *wanted - self.free_for_grants(*device);
        portions.iter().max_by_key(missing).copied().unwrap_or((DeviceId(0), Bytes::ZERO))
    }

    fn could_use(&self, id: GrantId, device: DeviceId) -> bool {
        let ladder = self.grants.get(id).into_iter().flat_map(|grant| &grant.spec.ladder);
        ladder.into_iter().any(|rung| rung.on(device) > Bytes::ZERO)
    }

    fn reason_on(&self, device: DeviceId, wanted: Bytes) -> WaitReason {
        let (line, lasting) = (self.ledger.line(device), self.ledger.lasting(device));
        if wanted + lasting <= line {
            WaitReason::Runs
        } else if wanted + lasting <= line + self.coming_back(device) {
            WaitReason::ComingBack
        } else if wanted > line {
            WaitReason::Strangers
        } else {
            WaitReason::Grants
        }
    }

    /// Who holds most of a device, by grants and what they have not been seen to free.
    fn holders_of(&self, device: DeviceId) -> Vec<(GrantId, Bytes)> {
        let held = |(id, grant): (&GrantId, &Grant)| {
            let own = grant.lease.map_or(Bytes::ZERO, |lease| bytes_on(self.ledger.portions(lease), device));
            let receding = self.grants.receding.of(*id);
            (*id, own + receding.map(|each| self.ledger.held(each.lease, device)).sum())
        };
        let mut holders: Vec<_> = self.grants.all.iter().map(held).filter(|(_, bytes)| *bytes > Bytes::ZERO).collect();
        holders.sort_by_key(|(id, bytes)| (std::cmp::Reverse(*bytes), *id));
        holders.truncate(GrantWait::HOLDERS_MAX);
        holders
    }

    /// When the last of what was asked for on a device is due, or no longer waited for.
    fn last_due(&self, device: DeviceId) -> Option<Moment> {
        let coming_down = self.grants.tally.coming_down().filter_map(|id| self.grants.get(id));
        let asked = coming_down.filter_map(|grant| match grant.phase {
            GrantPhase::Recalled { to, until } => {
                let held = self.ledger.held(grant.lease?, device);
                (held > grant.bytes_at(to, device)).then_some(until)
            }
            _ => None,
        });
        let receding =
            self.grants.receding.iter().filter(|(_, each)| each.device == device).map(|(_, each)| each.until);
        asked.chain(receding).max()
    }
}
