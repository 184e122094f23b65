//! By owner: where the driver tells what each program uses, nothing has to be guessed of who holds and who has freed what.
//! Never believes a promise: what an owner uses beyond what it is promised is a stranger's.
//! Invariant: after such a reading, what counts as strangers' is what is in use and not promised to whoever uses it.

use std::collections::BTreeSet;

use super::super::{Host, Scheduler};
use crate::grant::GrantOwner;
use crate::line::Memory;
use crate::{Bytes, DeviceId, Moment};

impl<H: Host> Scheduler<H> {
    /// The device's memory was read again, and with it what each owner of grants uses of it; one that is not named uses
    /// nothing. What an owner gave back is free as soon as it uses no more than it still holds, whatever others do.
    ///
    /// An owner with several grants is told apart from others, but not one of its grants from another.
    pub fn set_memory_by_owner(&mut self, now: Moment, device: DeviceId, memory: Memory, used: &[(GrantOwner, Bytes)]) {
        self.take_reading(now, device, |scheduler| scheduler.read_by_owner(now, device, memory, used));
    }

    fn read_by_owner(&mut self, now: Moment, device: DeviceId, memory: Memory, used: &[(GrantOwner, Bytes)]) -> Memory {
        let uses =
            |owner: GrantOwner| used.iter().filter(|(by, _)| *by == owner).map(|(_, bytes)| *bytes).sum::<Bytes>();
        self.grants.outsiders[device.index()].owners_use(uses);
        let late = |scheduler: &Self, owner| scheduler.grants.outsiders[device.index()].late_of(owner);
        for owner in self.owners_outside(device) {
            let still_used = uses(owner) - late(self, owner) - self.on_rungs_of(owner, device);
            let returned = self.returned_before_reading(device, Some(owner));
            self.free_receding(now, device, returned - still_used, Some(owner));
        }
        let granted_in_use = |owner: GrantOwner| (uses(owner) - late(self, owner)).min(self.promised_to(owner, device));
        let in_use = self.owners_outside(device).into_iter().map(granted_in_use).sum();
        self.grants.outsiders[device.index()].read_in_parts(memory, in_use)
    }

    /// Other programs that are promised bytes of a device, or have given some back.
    fn owners_outside(&self, device: DeviceId) -> BTreeSet<GrantOwner> {
        let on_it = |lease| self.ledger.held(lease, device) > Bytes::ZERO;
        let held = self.grants.all.values().filter_map(|grant| Some((grant.spec.owner, grant.lease?)));
        let receding = self.grants.receding.iter().map(|each| (each.owner, each.lease));
        let all = held.chain(receding).filter(|(owner, lease)| owner.is_outside() && on_it(*lease));
        all.map(|(owner, _)| owner).collect()
    }

    /// What an owner is promised of a device, what it has given back and may still use included.
    pub(super) fn promised_to(&self, owner: GrantOwner, device: DeviceId) -> Bytes {
        let held = self.grants.all.values().filter(|grant| grant.spec.owner == owner).filter_map(|grant| grant.lease);
        let receding = self.grants.receding.iter().filter(|each| each.owner == owner).map(|each| each.lease);
        held.chain(receding).map(|lease| self.ledger.held(lease, device)).sum()
    }

    /// What an owner needs of a device where it is. What is reserved for where it goes may not be in use yet: it is no
    /// excuse for what it gave back.
    fn on_rungs_of(&self, owner: GrantOwner, device: DeviceId) -> Bytes {
        let held = self.grants.all.values().filter(|grant| grant.spec.owner == owner && grant.is_held());
        held.map(|grant| grant.bytes_at(grant.rung, device)).sum()
    }
}
