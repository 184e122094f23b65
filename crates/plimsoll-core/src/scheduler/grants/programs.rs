//! Programs: what a driver that tells each program's use says of grants, and grants that outlive their scheduler.
//! Never takes one program's memory for another's.
//! Invariant: what a program uses beyond what it was promised is strangers', and what it gave back is free exactly when its
//! own use has fallen by it.

use std::collections::BTreeSet;

use super::super::{Host, Scheduler};
use super::book::WaitTerms;
use crate::arbiter;
use crate::event::{GrantEdge, What};
use crate::grant::{GrantError, GrantId, GrantOwner, GrantPhase, GrantSpec};
use crate::line::Memory;
use crate::{Bytes, DeviceId, Moment, Nanos};

impl<H: Host> Scheduler<H> {
    /// The device's memory was read again, by a driver that tells what each program uses of it. Programs with grants that are
    /// not named use nothing.
    pub fn set_memory_by_program(&mut self, now: Moment, device: DeviceId, memory: Memory, used: &[(u64, Bytes)]) {
        let own = self.ledger.peak_watched(device) - self.ledger.programs(device);
        let before = self.ledger.promised(device);
        let programs = self.programs_on(device);
        let used_by = |program: u64| used.iter().filter(|(one, _)| *one == program).map(|(_, bytes)| *bytes).sum();
        for &program in &programs {
            self.free_returned_by(now, device, program, used_by(program));
        }
        let in_use = programs.iter().map(|&program| {
            let (held, returned, unread) = self.promised_to(device, program);
            used_by(program).min(held + returned + unread)
        });
        let in_use = in_use.sum();
        let outsiders = &mut self.grants.outsiders[device.index()];
        outsiders.read_exactly(memory, in_use);
        let memory = outsiders.for_the_line();
        let came_back = self.ledger.promised(device) < before;
        self.ledger.watch(device);
        self.draw_line(now, device, memory, own);
        if came_back {
            self.memory_freed(now);
        }
    }

    /// What of a device strangers hold, as far as is known: whatever programs with grants use of what they were promised is
    /// not theirs.
    pub fn strangers_on(&self, device: DeviceId) -> Bytes {
        self.grants.outsiders[device.index()].strangers()
    }

    fn programs_on(&self, device: DeviceId) -> BTreeSet<u64> {
        let held = self.grants.all.values().filter(|grant| {
            grant.lease.is_some_and(|lease| self.ledger.held(lease, device) > Bytes::ZERO)
        });
        let receding = self.grants.receding.iter().filter(|each| each.device == device).map(|each| each.owner);
        held.map(|grant| grant.spec.owner).chain(receding).filter_map(number).collect()
    }

    /// What a program holds of a device, what it gave back before the reading began, and what it gave back since.
    fn promised_to(&self, device: DeviceId, program: u64) -> (Bytes, Bytes, Bytes) {
        let leases = self.grants.all.values().filter(|grant| number(grant.spec.owner) == Some(program));
        let held = leases.filter_map(|grant| grant.lease).map(|lease| self.ledger.held(lease, device)).sum();
        let receding = self.grants.receding.iter().filter(|each| each.device == device);
        let (mut returned, mut unread) = (Bytes::ZERO, Bytes::ZERO);
        for each in receding.filter(|each| number(each.owner) == Some(program)) {
            let bytes = self.ledger.held(each.lease, device);
            match each.is_read {
                true => returned += bytes,
                false => unread += bytes,
            }
        }
        (held, returned, unread)
    }

    fn free_returned_by(&mut self, now: Moment, device: DeviceId, program: u64, used: Bytes) {
        let (held, returned, unread) = self.promised_to(device, program);
        let still_used = (used - (held + unread)).min(returned);
        self.free_receding(now, device, returned - still_used, Some(GrantOwner::Program(program)));
    }

    /// Takes in a grant that an earlier scheduler gave on this rung, and that its owner still holds.
    ///
    /// # Errors
    /// Why it cannot be kept: it no longer fits, or its ladder is none.
    pub fn adopt(&mut self, now: Moment, spec: GrantSpec, rung: usize) -> Result<GrantId, GrantError> {
        self.may_request(&spec)?;
        let (rungs, limit, owner) = (spec.ladder.len(), GrantSpec::RUNGS_MAX, spec.owner);
        let held = spec.ladder.get(rung).ok_or(GrantError::BadLadder { rungs, limit })?;
        let lease = self.ledger.reserve_all(held.portions(), Self::holder_of(owner)).map_err(GrantError::NotInTime)?;
        let bytes = held.portions().iter().map(|(_, bytes)| *bytes).sum();
        let turn = arbiter::turn(now, spec.priority, spec.deadline, Nanos::ZERO, 0);
        let terms = WaitTerms { asked_at: now, turn, until: None, spares_batches_until: now };
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
        let receding = self.grants.receding.iter_mut().filter(|each| each.grant == id && each.owner.is_outside());
        receding.for_each(|each| each.owner = owner);
    }
}

fn number(owner: GrantOwner) -> Option<u64> {
    match owner {
        GrantOwner::Program(number) => Some(number),
        GrantOwner::Caller | GrantOwner::Sequence(_) => None,
    }
}
