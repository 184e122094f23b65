//! The table of leases: which there are, whose each is, and when something of it is due. Thousands of clients ask, and most
//! requests are about one lease: nobody looks at all of them to answer one.
//! Never decides anything; never hands out a lease to be changed but by [`Table::change`].
//! Invariant: what is found by client and by moment is what looking at every lease would find (`Table::check`).

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::Moment;

use super::{ClientId, Lease, Owner};
use crate::wire::LeaseId;

/// All leases that wait or are held.
#[derive(Debug, Default)]
pub(super) struct Table {
    all: BTreeMap<LeaseId, Lease>,
    found: Found,
}

/// Where a lease is found beside its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    by_client: BTreeSet<(ClientId, LeaseId)>,
    by_due: BTreeSet<(Moment, LeaseId)>,
}

impl Found {
    fn add(&mut self, id: LeaseId, (client, due): Keys) {
        self.by_client.extend(client.map(|client| (client, id)));
        self.by_due.extend(due.map(|due| (due, id)));
    }

    fn remove(&mut self, id: LeaseId, (client, due): Keys) {
        client.map(|client| self.by_client.remove(&(client, id)));
        due.map(|due| self.by_due.remove(&(due, id)));
    }
}

/// Whose a lease is, if a connection's, and when something of it is due.
type Keys = (Option<ClientId>, Option<Moment>);

fn keys(lease: &Lease) -> Keys {
    let (client, claim) = match lease.owner {
        Owner::Client(client) => (Some(client), None),
        Owner::Process { claim_until } => (None, claim_until),
        Owner::Http | Owner::Engine(_) => (None, None),
    };
    (client, claim.into_iter().chain(lease.expires).chain(lease.kill_at).min())
}

impl Table {
    pub(super) fn insert(&mut self, id: LeaseId, lease: Lease) {
        self.remove(&id);
        self.found.add(id, keys(&lease));
        self.all.insert(id, lease);
    }

    pub(super) fn remove(&mut self, id: &LeaseId) -> Option<Lease> {
        let lease = self.all.remove(id)?;
        self.found.remove(*id, keys(&lease));
        Some(lease)
    }

    /// Changes a lease, and where it is found. Nothing if there is no such lease.
    pub(super) fn change<T>(&mut self, id: &LeaseId, change: impl FnOnce(&mut Lease) -> T) -> Option<T> {
        let lease = self.all.get_mut(id)?;
        let before = keys(lease);
        let changed = change(lease);
        let after = keys(lease);
        if before != after {
            self.found.remove(*id, before);
            self.found.add(*id, after);
        }
        Some(changed)
    }

    pub(super) fn get(&self, id: &LeaseId) -> Option<&Lease> {
        self.all.get(id)
    }

    pub(super) fn contains(&self, id: &LeaseId) -> bool {
        self.all.contains_key(id)
    }

    /// All of them, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (LeaseId, &Lease)> {
        self.all.iter().map(|(id, lease)| (*id, lease))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Lease> {
        self.all.values()
    }

    /// Those that are meant, oldest first.
    pub(super) fn those(&self, are_meant: impl Fn(&Lease) -> bool) -> Vec<LeaseId> {
        self.iter().filter(|(_, lease)| are_meant(lease)).map(|(id, _)| id).collect()
    }

    /// Those of one connection, oldest first.
    pub(super) fn of_client(&self, client: ClientId) -> Vec<LeaseId> {
        let of_it = (client, LeaseId(0))..=(client, LeaseId(u64::MAX));
        self.found.by_client.range(of_it).map(|(_, id)| *id).collect()
    }

    /// When something of a lease is due next.
    pub(super) fn next_due(&self) -> Option<Moment> {
        self.found.by_due.first().map(|(due, _)| *due)
    }

    /// Those of which something is due now, oldest first.
    pub(super) fn due_by(&self, now: Moment) -> BTreeSet<LeaseId> {
        self.found.by_due.range(..=(now, LeaseId(u64::MAX))).map(|(_, id)| *id).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Checks where leases are found against looking at all of them.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut anew = Found::default();
        self.all.iter().for_each(|(id, lease)| anew.add(*id, keys(lease)));
        match anew == self.found {
            true => Ok(()),
            false => Err(format!("leases are found by {:?}, looked for anew by {anew:?}", self.found)),
        }
    }
}
