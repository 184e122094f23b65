//! Programs: grants that outlive their scheduler or go on with another program, and what strangers hold beside them.
//! Never gives bytes: what is adopted was given before, and is taken in only if it still fits.
//! Invariant: an adopted grant is held from the first moment, so nobody else is promised its bytes.

use super::super::{Host, Scheduler};
use super::book::WaitTerms;
use crate::arbiter;
use crate::event::{GrantEdge, What};
use crate::grant::{GrantError, GrantId, GrantOwner, GrantPhase, GrantSpec};
use crate::{Bytes, DeviceId, Moment, Nanos};

impl<H: Host> Scheduler<H> {
    /// What of a device strangers hold, as far as is known: whatever programs with grants use of what they were promised is
    /// not theirs.
    pub fn strangers_on(&self, device: DeviceId) -> Bytes {
        self.grants.outsiders[device.index()].strangers()
    }

    /// Takes in a grant that an earlier scheduler gave on this rung, and that its owner still holds.
    ///
    /// # Errors
    /// Why it cannot be kept: it no longer fits, or its ladder is none.
    pub fn adopt(&mut self, now: Moment, spec: GrantSpec, rung: usize) -> Result<GrantId, GrantError> {
        self.may_request(&spec)?;
        let (rungs, limit, owner) = (spec.ladder.len(), GrantSpec::RUNGS_MAX, spec.owner);
        let held = spec.ladder.get(rung).ok_or(GrantError::BadLadder { rungs, limit })?;
        self.allot_what_is_there(held.portions());
        let lease = self.ledger.reserve_all(held.portions(), Self::holder_of(owner)).map_err(GrantError::NotInTime)?;
        let bytes = held.portions().iter().map(|(_, bytes)| *bytes).sum();
        let turn = arbiter::turn(now, spec.priority, spec.deadline, Nanos::ZERO, 0);
        let terms = WaitTerms { asked_at: now, turn, until: None, spares_batches_until: now, allotted_by: None };
        let id = self.grants.enter(spec, terms);
        self.grants.change(id, |grant| {
            (grant.phase, grant.rung, grant.lease) = (GrantPhase::Held, Some(rung), Some(lease));
            (grant.stays_until, grant.spares_batches_until) = (None, None);
        });
        self.things_changed();
        self.note(now, || What::Grant { grant: id, edge: GrantEdge::Asked { owner } });
        self.note(now, || What::Grant { grant: id, edge: GrantEdge::Given { rung: rung as u8, bytes } });
        Ok(id)
    }

    /// The program that holds a grant has another number from now on.
    pub fn hand_over(&mut self, id: GrantId, program: u64) {
        let owner = GrantOwner::Program(program);
        self.grants.change(id, |grant| {
            if grant.spec.owner.is_outside() {
                grant.spec.owner = owner;
            }
        });
        self.grants.receding.hand_over(id, owner);
    }
}
