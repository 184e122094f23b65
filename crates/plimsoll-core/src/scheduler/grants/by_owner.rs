//! By owner: where the driver tells what each program uses, nothing has to be guessed of who holds and who has freed what.
//! Never believes a promise: what an owner uses beyond what it is promised is a stranger's.
//! Invariant: after such a reading, what counts as strangers' is what is in use and not promised to whoever uses it.

use std::collections::BTreeMap;

use super::super::{Host, Scheduler};
use super::returns::ReturnId;
use crate::grant::GrantOwner;
use crate::ledger::LeaseId;
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
        let mut uses: BTreeMap<GrantOwner, Bytes> = BTreeMap::new();
        used.iter().for_each(|(owner, bytes)| *uses.entry(*owner).or_default() += *bytes);
        let uses = |owner: GrantOwner| uses.get(&owner).copied().unwrap_or_default();
        self.grants.outsiders[device.index()].owners_use(uses);
        let late = |scheduler: &Self, owner| scheduler.grants.outsiders[device.index()].late_of(owner);
        for (owner, part) in self.owners_outside(device) {
            let still_used = uses(owner) - late(self, owner) - part.on_rungs;
            self.free_receding(now, device, part.returned - still_used, &part.returns);
        }
        let granted_in_use = |(owner, part): (GrantOwner, Part)| (uses(owner) - late(self, owner)).min(part.promised);
        let in_use = self.owners_outside(device).into_iter().map(granted_in_use).sum();
        self.grants.outsiders[device.index()].read_in_parts(memory, in_use)
    }

    /// Other programs that are promised bytes of a device, or have given some back: each with its part, in one walk over all
    /// of them.
    fn owners_outside(&self, device: DeviceId) -> BTreeMap<GrantOwner, Part> {
        let mut parts: BTreeMap<GrantOwner, Part> = BTreeMap::new();
        let mut part_of = |owner: GrantOwner, lease: LeaseId, add: &dyn Fn(&mut Part, Bytes)| {
            let held = self.ledger.held(lease, device);
            if owner.is_outside() && held > Bytes::ZERO {
                let part = parts.entry(owner).or_default();
                part.promised += held;
                add(part, held);
            }
        };
        for grant in self.grants.all.values() {
            let Some(lease) = grant.lease else { continue };
            part_of(grant.spec.owner, lease, &|part, _| part.on_rungs += grant.bytes_at(grant.rung, device));
        }
        for (id, each) in self.grants.receding.iter() {
            part_of(each.owner, each.lease, &|part, held| {
                if each.is_read_on(device) {
                    part.returned += held;
                    part.returns.push(id);
                }
            });
        }
        parts
    }

    /// What an owner is promised of a device, what it has given back and may still use included.
    pub(super) fn promised_to(&self, owner: GrantOwner, device: DeviceId) -> Bytes {
        let held = self.grants.all.values().filter(|grant| grant.spec.owner == owner).filter_map(|grant| grant.lease);
        let receding = self.grants.receding.iter().filter(|(_, each)| each.owner == owner).map(|(_, each)| each.lease);
        held.chain(receding).map(|lease| self.ledger.held(lease, device)).sum()
    }
}

/// What one owner has of a device.
#[derive(Default)]
struct Part {
    /// What it is promised, what it has given back and may still use included.
    promised: Bytes,
    /// What it needs where it is. What is reserved for where it goes may not be in use yet: it is no excuse for what it gave
    /// back.
    on_rungs: Bytes,
    /// What it gave back before the reading began, oldest first, and how much that is.
    returns: Vec<ReturnId>,
    returned: Bytes,
}
