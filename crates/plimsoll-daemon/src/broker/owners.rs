//! Owners: who is gone, and what becomes of what they held.
//! Never ends a lease whose process still lives and was named as its holder, but for a missing heartbeat or claim.
//! Invariant: a lease ends once; what it held stays promised until the driver says that it is free.

use plimsoll_core::Moment;

use super::{About, Broker, ClientId, Effect, Owner};
use crate::process::{Process, Stop};
use crate::wire::{LeaseId, Say};

impl Broker {
    /// A connection has gone. What it waited for is over; what it held is too, unless another process holds it.
    pub fn disconnect(&mut self, now: Moment, client: ClientId) {
        for id in self.leases.of_client(client) {
            let stays =
                |lease: &super::Lease| lease.is_attached && lease.process.is_some() && lease.held_since.is_some();
            if self.leases.get(&id).is_some_and(stays) {
                self.leases.change(&id, |lease| lease.owner = Owner::Process { claim_until: None });
                self.changed.insert(id);
            } else {
                self.end(now, id, "ended", "its client has gone");
            }
        }
        self.hear(now);
    }

    /// Processes whose end the broker has to hear of, because no connection tells.
    pub fn watched(&self) -> Vec<Process> {
        let untold = |lease: &&super::Lease| lease.is_attached || !matches!(lease.owner, Owner::Client(_));
        let mut processes: Vec<Process> =
            self.leases.values().filter(untold).filter_map(|lease| lease.process).collect();
        processes.sort_unstable();
        processes.dedup();
        processes
    }

    /// These processes have ended.
    pub fn processes_ended(&mut self, now: Moment, ended: &[Process]) {
        let has_ended = |lease: &super::Lease| lease.process.is_some_and(|process| ended.contains(&process));
        for id in self.leases.those(has_ended) {
            self.end_telling(now, id, "its process has ended");
        }
        self.hear(now);
    }

    /// Leases whose heartbeat or claim did not come.
    pub(super) fn end_expired(&mut self, now: Moment) {
        let why = |lease: &super::Lease| match lease.owner {
            Owner::Process { claim_until: Some(until) } if until <= now => Some("nobody claimed it"),
            _ if lease.expires.is_some_and(|expires| expires <= now) => Some("its heartbeat did not come"),
            _ => None,
        };
        for id in self.leases.due_by(now) {
            if let Some(why) = self.leases.get(&id).and_then(why) {
                self.end_telling(now, id, why);
            }
        }
    }

    /// Processes that were asked to end and did not.
    pub(super) fn kill_overdue(&mut self, now: Moment) {
        for id in self.leases.due_by(now) {
            let kill = |lease: &mut super::Lease| {
                lease.kill_at.take_if(|at| *at <= now)?;
                lease.process.map(|process| Effect::Stop { lease: id, process, how: Stop::Kill })
            };
            self.effects.extend(self.leases.change(&id, kill).flatten());
        }
    }

    fn end_telling(&mut self, now: Moment, id: LeaseId, why: &'static str) {
        self.tell(id, Say::Ended { lease: id, why: why.to_owned() });
        self.end(now, id, "ended", why);
    }

    /// Ends a lease, or its wait.
    pub(super) fn end(&mut self, now: Moment, id: LeaseId, what: &'static str, why: &str) {
        let Some(lease) = self.leases.remove(&id) else { return };
        let grant = lease.grant;
        self.by_grant.remove(&grant);
        self.changed.insert(id);
        let text = match lease.held_since {
            Some(_) => format!("{} no longer holds its lease: {why}", lease.request.name),
            None => format!("{} no longer waits: {why}", lease.request.name),
        };
        self.note(now, About::lease(what, id, &lease, text));
        self.returning.insert(grant, (id, lease));
        self.scheduler.return_grant(now, grant);
    }

    /// Ends all leases of an engine that is gone.
    pub fn engine_gone(&mut self, now: Moment, engine: &str) {
        let of_engine = |lease: &super::Lease| matches!(&lease.owner, Owner::Engine(name) if name == engine);
        for id in self.leases.those(of_engine) {
            self.end(now, id, "ended", "its engine has gone");
        }
        self.hear(now);
    }
}
