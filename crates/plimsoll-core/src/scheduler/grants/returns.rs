//! Returns: what owners outside have given back and nobody knows to be free, oldest first.
//! Never frees anything; whoever read the device does.
//! Invariant: each is found by its grant and by the moment it is due, so that nobody looks at all of them for one.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use crate::grant::{GrantId, GrantOwner};
use crate::ledger::LeaseId;
use crate::{DeviceId, Moment};

/// Bytes of a device that an owner outside has given back and that nobody knows to be free.
#[derive(Copy, Clone, Debug)]
pub(super) struct Receding {
    pub(super) grant: GrantId,
    pub(super) owner: GrantOwner,
    pub(super) device: DeviceId,
    pub(super) lease: LeaseId,
    /// When what the driver says is believed, whatever it is.
    pub(super) until: Moment,
    /// A reading of the device's memory began after they were given back.
    pub(super) is_read: bool,
}

impl Receding {
    /// Whether a reading of a device could have shown it.
    pub(super) fn is_read_on(&self, device: DeviceId) -> bool {
        self.is_read && self.device == device
    }
}

/// Which return, by its age.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReturnId(u64);

/// All that is on its way back.
#[derive(Debug, Default)]
pub(super) struct Returns {
    next: u64,
    all: BTreeMap<ReturnId, Receding>,
    by_grant: BTreeMap<GrantId, SmallVec<[ReturnId; 2]>>,
    due: BTreeSet<(Moment, ReturnId)>,
}

impl Returns {
    pub(super) fn push(&mut self, receding: Receding) {
        self.next += 1;
        let id = ReturnId(self.next);
        self.all.insert(id, receding);
        self.by_grant.entry(receding.grant).or_default().push(id);
        self.due.insert((receding.until, id));
    }

    pub(super) fn remove(&mut self, id: ReturnId) -> Option<Receding> {
        let receding = self.all.remove(&id)?;
        self.due.remove(&(receding.until, id));
        if let Some(of_grant) = self.by_grant.get_mut(&receding.grant) {
            of_grant.retain(|each| *each != id);
            if of_grant.is_empty() {
                self.by_grant.remove(&receding.grant);
            }
        }
        Some(receding)
    }

    pub(super) fn get(&self, id: ReturnId) -> Option<&Receding> {
        self.all.get(&id)
    }

    /// All of them, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ReturnId, &Receding)> {
        self.all.iter().map(|(id, each)| (*id, each))
    }

    /// A reading of a device begins: those of now will be in it.
    pub(super) fn reading_begins(&mut self, device: DeviceId) {
        self.all.values_mut().filter(|each| each.device == device).for_each(|each| each.is_read = true);
    }

    /// Those of one grant, oldest first.
    pub(super) fn of(&self, grant: GrantId) -> impl Iterator<Item = &Receding> {
        self.by_grant.get(&grant).into_iter().flatten().filter_map(|id| self.all.get(id))
    }

    pub(super) fn any_of(&self, grant: GrantId) -> bool {
        self.by_grant.contains_key(&grant)
    }

    /// Takes out those of one grant.
    pub(super) fn take_of(&mut self, grant: GrantId) -> SmallVec<[Receding; 2]> {
        let ids = self.by_grant.get(&grant).cloned().unwrap_or_default();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// What a grant gave back was another owner's.
    pub(super) fn hand_over(&mut self, grant: GrantId, owner: GrantOwner) {
        for id in self.by_grant.get(&grant).into_iter().flatten() {
            let receding = self.all.get_mut(id).filter(|each| each.owner.is_outside());
            receding.into_iter().for_each(|each| each.owner = owner);
        }
    }

    /// When the first of them is not waited for any longer.
    pub(super) fn next_due(&self) -> Option<Moment> {
        self.due.first().map(|(until, _)| *until)
    }

    /// Takes out the first of those that are not waited for any longer.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Receding> {
        let (_, first) = self.due.first().filter(|(until, _)| *until <= now).copied()?;
        self.remove(first)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Checks that all are found by their grants and by their moments, and nothing else is.
    pub(super) fn check(&self) -> Result<(), String> {
        let (by_grant, due) = (self.by_grant.values().map(|ids| ids.len()).sum::<usize>(), self.due.len());
        let is_found = |(id, each): (&ReturnId, &Receding)| {
            let is_its_grants = self.by_grant.get(&each.grant).is_some_and(|ids| ids.contains(id));
            is_its_grants && self.due.contains(&(each.until, *id))
        };
        let all = self.all.len();
        if (by_grant, due) != (all, all) || !self.all.iter().all(is_found) {
            return Err(format!("{all} returns on their way, {by_grant} known by grants, {due} by when they are due"));
        }
        Ok(())
    }
}
