//! Adopt: what is kept of a lease for the next daemon, and how that one takes it in.
//! Never keeps a wait: whoever waits asks again.
//! Invariant: a lease keeps its number, its rung and its devices, or is over.

use plimsoll_core::{Moment, Nanos};
use serde::{Deserialize, Serialize};

use super::ask::{spec, unknown_program};
use super::{About, Broker, Lease, Owner};
use crate::process::Process;
use crate::wire::{LeaseId, LeaseRequest};

/// Whose a stored lease was.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoredOwner {
    /// A connection's, which is gone with its daemon.
    Client,
    /// A client's over HTTP.
    Http,
    /// Its process's alone.
    Process,
}

/// A lease as it is kept for the next daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredLease {
    /// Its number.
    pub id: LeaseId,
    /// What was asked for.
    pub request: LeaseRequest,
    /// The rung it holds.
    pub rung: usize,
    /// Where.
    pub devices: Vec<String>,
    /// Whose it was.
    pub owner: StoredOwner,
    /// The process that holds it.
    pub process: Option<Process>,
    /// It lives as long as its process.
    pub is_attached: bool,
    /// What a new connection claims it with.
    pub secret: String,
}

impl Broker {
    /// A lease as it is to be kept; nothing if it is over, still waits, or is an engine's.
    pub(super) fn stored(&self, id: LeaseId) -> Option<StoredLease> {
        let lease = self.leases.get(&id)?;
        let owner = match &lease.owner {
            Owner::Client(_) => StoredOwner::Client,
            Owner::Http => StoredOwner::Http,
            Owner::Process { .. } => StoredOwner::Process,
            Owner::Engine(_) => return None,
        };
        let granted = self.granted(id)?;
        Some(StoredLease {
            id,
            request: lease.request.clone(),
            rung: granted.rung,
            devices: granted.devices,
            owner,
            process: lease.process,
            is_attached: lease.is_attached,
            secret: lease.secret.clone(),
        })
    }

    /// These leases were promised by an earlier daemon to processes that have ended since.
    pub fn left_behind(&mut self, now: Moment, dead: Vec<StoredLease>) {
        for StoredLease { id, request, .. } in dead {
            self.next_lease = self.next_lease.max(id.0 + 1);
            self.changed.insert(id);
            let text = format!("{} no longer holds its lease: its process ended while no daemon served", request.name);
            self.note(now, About { lease: Some(id), name: request.name, text, ..About::of("ended") });
        }
    }

    /// Takes in what an earlier daemon promised, to processes that still live, before devices are read. A lease whose device
    /// no driver has told of yet waits for it.
    pub fn adopt(&mut self, now: Moment, stored: Vec<StoredLease>) {
        self.next_lease = stored.iter().map(|lease| lease.id.0 + 1).fold(self.next_lease, u64::max);
        self.unadopted.extend(stored);
        self.adopt_what_waits(now);
        self.hear(now);
    }

    pub(super) fn adopt_what_waits(&mut self, now: Moment) {
        let is_known = |name: &String| self.devices.iter().any(|device| device.truth.name == *name);
        let all = std::mem::take(&mut self.unadopted);
        let (ready, waiting) = all.into_iter().partition(|lease| lease.devices.iter().all(is_known));
        self.unadopted = waiting;
        let ready: Vec<StoredLease> = ready;
        for lease in ready {
            let (id, name) = (lease.id, lease.request.name.clone());
            self.changed.insert(id);
            if let Err(why) = self.adopt_one(now, lease) {
                let text = format!("{name} no longer holds its lease: {why}");
                self.note(now, About { lease: Some(id), name, text, ..About::of("ended") });
            }
        }
    }

    fn adopt_one(&mut self, now: Moment, stored: StoredLease) -> Result<(), String> {
        let StoredLease { id, mut request, rung, devices, owner, process, is_attached, secret } = stored;
        let asked = std::mem::replace(&mut request.devices, devices);
        let (ladder, offers) = self.ladder(&request)?;
        request.devices = asked;
        let at = offers.iter().position(|offer| offer.rung == rung).ok_or("its rung is unknown")?;
        let program = process.map_or_else(|| unknown_program(id), |process| u64::from(process.pid));
        let adopted = self.scheduler.adopt(now, spec(&request, ladder, program), at);
        let grant = adopted.map_err(|refusal| self.told(&refusal))?;
        let expires = request.ttl_ms.map(|ms| now + Nanos::millis(ms));
        let (owner, expires) = match owner {
            StoredOwner::Http => (Owner::Http, expires.or(Some(now + self.settings.claim_within))),
            StoredOwner::Client if !is_attached => {
                (Owner::Process { claim_until: Some(now + self.settings.claim_within) }, None)
            }
            StoredOwner::Client | StoredOwner::Process => (Owner::Process { claim_until: None }, None),
        };
        let items = request.batch_items;
        let lease = Lease {
            grant,
            request,
            offers,
            owner,
            process,
            is_attached,
            secret,
            asked_at: now,
            held_since: Some(now),
            expires,
            recall: None,
            kill_at: None,
            told_over: false,
        };
        let text = format!("{} still holds its lease", lease.request.name);
        self.note(now, About::lease("adopted", id, &lease, text));
        self.leases.insert(id, lease);
        self.by_grant.insert(grant, id);
        if items > 0 {
            self.scheduler.set_batch(now, grant, items);
        }
        Ok(())
    }
}
