//! Takes in: a program that uses memory without having asked is given a grant for it, so that it can be asked to give it
//! back. What it uses was strangers' until then, and is promised from then on: the line rises by as much as is promised.
//! Never gives anybody else a chance at those bytes in between.
//! Invariant: what is promised and what strangers hold is the same sum before and after.

use super::super::{Host, Scheduler};
use super::book::WaitTerms;
use crate::arbiter;
use crate::event::{GrantEdge, GrantEnd, What};
use crate::grant::{GrantError, GrantId, GrantOwner, GrantPhase, GrantSpec};
use crate::{Bytes, DeviceId, Moment, Nanos};

impl<H: Host> Scheduler<H> {
    /// What of a program's use of a device could be promised if it were taken in, with all that it holds now in one grant.
    /// What is promised of it is no stranger's any more, so the line rises with it; by less, if there is a margin.
    pub fn room_to_take_in(&self, device: DeviceId, program: u64, used: Bytes) -> Bytes {
        let own = self.promised_to(GrantOwner::Program(program), device);
        let others = self.ledger.promised(device) - own;
        let fits = |bytes: Bytes| {
            let mut outsiders = self.grants.outsiders[device.index()].clone();
            outsiders.take_from_strangers(bytes - bytes.min(own));
            others + bytes <= self.device(device).spec.margin.line(outsiders.for_the_line())
        };
        if fits(used) {
            return used;
        }
        // Less always fits if more does: the line rises by at most what is promised.
        let (mut room, mut too_much) = (0, used.0);
        while room + 1 < too_much {
            let middle = room.midpoint(too_much);
            *(if fits(Bytes(middle)) { &mut room } else { &mut too_much }) = middle;
        }
        Bytes(room)
    }

    /// Gives a program a grant for what the driver says it uses of a device, instead of all grants that it has. The first
    /// rung of its ladder, on this device alone, is what it holds.
    ///
    /// # Errors
    /// Why it cannot: it does not fit beside what others were promised, or its ladder is none. Then nothing has changed.
    pub fn take_in(
        &mut self,
        now: Moment,
        spec: GrantSpec,
        device: DeviceId,
        used: Bytes,
    ) -> Result<GrantId, GrantError> {
        self.may_request(&spec)?;
        let (rungs, limit) = (spec.ladder.len(), GrantSpec::RUNGS_MAX);
        let GrantOwner::Program(program) = spec.owner else { return Err(GrantError::BadLadder { rungs, limit }) };
        let portions = spec.ladder.first().map(|rung| rung.portions());
        let Some(&[(on, bytes)]) = portions else { return Err(GrantError::BadLadder { rungs, limit }) };
        if on != device || bytes > self.room_to_take_in(device, program, used) {
            return Err(GrantError::BadLadder { rungs, limit });
        }
        self.forget_grants_of(now, device, program, used, bytes.min(used));
        let held = spec.ladder[0].portions().to_vec();
        self.allot_what_is_there(&held);
        let lease = self.ledger.reserve_all(&held, Self::holder_of(spec.owner)).map_err(GrantError::NotInTime)?;
        let turn = arbiter::turn(now, spec.priority, spec.deadline, Nanos::ZERO, 0);
        let terms = WaitTerms { asked_at: now, turn, until: None, spares_batches_until: now, allotted_by: None };
        let owner = spec.owner;
        let id = self.grants.enter(spec, terms);
        self.grants.change(id, |grant| {
            (grant.phase, grant.rung, grant.lease) = (GrantPhase::Held, Some(0), Some(lease));
            (grant.stays_until, grant.spares_batches_until) = (None, None);
        });
        self.things_changed();
        self.note(now, || What::Grant { grant: id, edge: GrantEdge::Asked { owner } });
        self.note(now, || What::Grant { grant: id, edge: GrantEdge::Given { rung: 0, bytes } });
        self.memory_freed(now);
        Ok(id)
    }

    /// All grants of a program are over, and `promised` of what it uses is about to be promised again.
    fn forget_grants_of(&mut self, now: Moment, device: DeviceId, program: u64, used: Bytes, promised: Bytes) {
        let owner = GrantOwner::Program(program);
        let own = self.promised_to(owner, device);
        let was_counted = self.grants.outsiders[device.index()].granted_in_use().min(own).min(used);
        let ids: Vec<GrantId> = self.those(|grant| grant.spec.owner == owner && grant.phase != GrantPhase::Waiting);
        for id in ids {
            for each in self.grants.receding.take_of(id) {
                self.give_back(each.lease);
            }
            if let Some(lease) = self.grants.change(id, |grant| grant.lease.take()).flatten() {
                self.give_back(lease);
            }
            self.end_grant(now, id, GrantEnd::Returned);
        }
        let own = self.ledger.promised(device) - self.ledger.programs(device);
        let outsiders = &mut self.grants.outsiders[device.index()];
        outsiders.forgive(owner);
        match promised > was_counted {
            true => outsiders.take_from_strangers(promised - was_counted),
            false => outsiders.leave_to_strangers(was_counted - promised),
        }
        let memory = outsiders.for_the_line();
        let (line, ceiling) = self.device_mut(device).line_after(memory, own);
        self.ledger.set_line(device, line, ceiling);
    }
}
