//! Pressure: how full devices are, and what quality that leaves to each grant.
//! Never asks anybody for anything; that is `recall`.
//!
//! What a grant holds itself is no pressure on it, what others hold and wait for is: one that is alone on a device is
//! recommended the same before it was given its bytes and after.
//! Invariant: by [`SharePolicy::Fixed`] everything is allowed, and nothing of this is computed.

use super::super::{Host, Scheduler};
use super::book::Grant;
use crate::grant::{GrantId, GrantKind, GrantRung};
use crate::sharing::{self, Pressure, RungSet, SharePolicy};
use crate::{Bytes, DeviceId, Priority, Quality};

impl<H: Host> Scheduler<H> {
    /// The share of a device's line that is promised, or that programs without a grant use. What is idle and would go if
    /// somebody needed its bytes does not count.
    pub fn pressure(&self, device: DeviceId) -> Pressure {
        Pressure::new(self.share_of(device, self.used(device)))
    }

    /// The quality recommended for a grant now: on the rung that it holds, or on its best one.
    pub fn recommended_quality(&self, id: GrantId) -> Option<Quality> {
        let grant = self.grants.get(id)?;
        let rung = &grant.spec.ladder[grant.rung.unwrap_or(0)];
        Some(self.recommended_on(id, grant, rung))
    }

    /// The quality recommended for somebody of this kind and priority who would ask for bytes of a device now.
    pub fn recommended_quality_for(&self, kind: GrantKind, priority: Priority, device: DeviceId) -> Quality {
        let waited = self.grants.waited_on(device, None);
        let pressure = Pressure::new(self.share_of(device, self.used(device) + waited));
        self.config.sharing.policy.recommended(kind, priority, Quality::FULL, pressure)
    }

    /// The rungs that a grant should have as things are: whether it waits, stays or rises.
    pub(super) fn rungs_to_have(&self, id: GrantId, grant: &Grant) -> RungSet {
        if self.config.sharing.policy == SharePolicy::Fixed {
            return RungSet::ALL;
        }
        let minimum = sharing::quality_min(grant.spec.kind);
        sharing::rungs_to_have(&grant.spec.ladder, minimum, |rung| self.recommended_on(id, grant, rung))
    }

    fn recommended_on(&self, id: GrantId, grant: &Grant, rung: &GrantRung) -> Quality {
        let shares =
            rung.portions().iter().map(|(device, _)| self.share_of(*device, self.wanted_by_others(id, *device)));
        let pressure = Pressure::new(shares.fold(0.0, f64::max));
        let spec = &grant.spec;
        self.config.sharing.policy.recommended(spec.kind, spec.priority, spec.quality_target, pressure)
    }

    /// What everybody but this grant holds of a device, or waits for.
    fn wanted_by_others(&self, id: GrantId, device: DeviceId) -> Bytes {
        let lease = self.grants.get(id).and_then(|grant| grant.lease);
        let own = lease.map_or(Bytes::ZERO, |lease| self.ledger.held(lease, device));
        self.used(device) + self.grants.waited_on(device, Some(id)) - own
    }

    /// How full the fullest device of a rung is with all that is held and waited for there, and so much more: more than 1 if
    /// that is more than there is.
    pub(super) fn fullest(&self, rung: &GrantRung, more: &[(DeviceId, Bytes)]) -> f64 {
        let share = |device: DeviceId| {
            let more = crate::grant::bytes_on(more, device);
            self.share_of(device, self.used(device) + self.grants.waited_on(device, None) + more)
        };
        rung.portions().iter().map(|(device, _)| share(*device)).fold(0.0, f64::max)
    }

    /// What is promised of a device, or used by programs without a grant: more than its ceiling, if those took what was
    /// promised.
    fn used(&self, device: DeviceId) -> Bytes {
        // By the line as it was measured: what was not allotted here yet is in nobody's use.
        let strangers = self.ledger.ceiling(device) - self.ledger.measured(device);
        strangers + self.ledger.promised(device) - self.idle_bytes(device)
    }

    fn share_of(&self, device: DeviceId, bytes: Bytes) -> f64 {
        let ceiling = self.ledger.ceiling(device);
        if ceiling == Bytes::ZERO { 1.0 } else { bytes.0 as f64 / ceiling.0 as f64 }
    }
}
