//! News: what the core has decided, and who hears of it.
//! Never decides anything itself.
//! Invariant: every piece of news reaches its owner, or is an event if nobody can hear it.

use plimsoll_core::event::{GrantEdge, GrantEnd, What};
use plimsoll_core::scheduler::GrantNews;
use plimsoll_core::{Bytes, DeviceId, GrantId, Moment};

use super::{About, Broker, Effect, NoTasks, Owner};
use crate::process::Stop;
use crate::wire::{LeaseId, Recall, Say, Step};

impl Broker {
    /// Passes on what the core has decided since the last call.
    pub(super) fn hear(&mut self, now: Moment) {
        for news in self.scheduler.drain_grant_news() {
            self.pass_on(now, news);
        }
        for event in self.scheduler.drain_events() {
            if let What::Grant { grant, edge } = event.what {
                self.hear_of_return(now, grant, &edge);
            }
        }
    }

    fn pass_on(&mut self, now: Moment, news: GrantNews<NoTasks>) {
        match news {
            GrantNews::Granted { grant, rung, .. } => self.was_granted(now, grant, rung),
            GrantNews::Recalled { grant, to, until, .. } => self.was_recalled(now, grant, to, until),
            GrantNews::Overdue { grant } => self.is_overdue(now, grant),
            GrantNews::Stop { grant, until } => self.is_stopped(now, grant, until),
            GrantNews::MayRise { grant, rung } => self.may_rise(grant, rung),
            GrantNews::Refused { grant, refusal } => {
                let why = self.told(&refusal);
                self.was_refused(now, grant, why);
            }
        }
    }

    /// It stays on its devices from now on: rungs are counted among those there.
    fn was_granted(&mut self, now: Moment, grant: GrantId, rung: usize) {
        let Some(id) = self.by_grant.get(&grant).copied() else { return };
        let waited = self.leases.change(&id, |lease| {
            let devices = lease.offers[rung].devices.clone();
            lease.offers.retain(|offer| offer.devices == devices);
            lease.held_since = Some(now);
            now.since(lease.asked_at)
        });
        let Some(waited) = waited else { return };
        self.changed.insert(id);
        let Some(granted) = self.granted(id) else { return };
        let text = format!(
            "{} holds {} of {} after {:.1} s",
            self.name(id),
            Bytes(granted.bytes),
            granted.devices.join(" and "),
            waited.as_secs_f64()
        );
        let device = granted.devices.first().cloned();
        let Some(lease) = self.leases.get(&id) else { return };
        let about = About { device, bytes: Some(granted.bytes), ..About::lease("granted", id, lease, text) };
        self.note(now, about);
        self.tell(id, Say::Granted(granted));
    }

    fn was_recalled(&mut self, now: Moment, grant: GrantId, to: Option<usize>, until: Moment) {
        let Some(id) = self.by_grant.get(&grant).copied() else { return };
        let step = if to.is_some() { Step::StepDown } else { Step::Leave };
        let Some(recall) = self.recall_of(now, id, step, to, until) else { return };
        let text = match step {
            Step::StepDown => format!("{} is asked to step down to {}", self.name(id), Bytes(recall.bytes)),
            _ => format!("{} is asked to leave", self.name(id)),
        };
        let text = format!("{text} within {:.1} s: {}", recall.within_ms as f64 / 1e3, recall.because);
        self.ask_back(now, id, "recalled", text, recall);
    }

    fn recall_of(&self, now: Moment, id: LeaseId, step: Step, to: Option<usize>, until: Moment) -> Option<Recall> {
        let lease = self.leases.get(&id)?;
        let rung = to.and_then(|to| lease.offers.get(to)).map(|offer| offer.rung);
        let bytes = rung.map_or(0, |rung| lease.request.ladder[rung].bytes);
        let within_ms = until.since(now).0 / 1_000_000;
        Some(Recall { lease: id, step, rung, bytes, within_ms, because: self.who_needs_it(id) })
    }

    fn ask_back(&mut self, now: Moment, id: LeaseId, what: &'static str, text: String, recall: Recall) {
        self.leases.change(&id, |lease| lease.recall = Some(recall.clone()));
        let Some(lease) = self.leases.get(&id) else { return };
        let device = lease.offers.first().and_then(|offer| offer.devices.first()).copied();
        let about = About { bytes: Some(recall.bytes), ..About::lease(what, id, lease, text) };
        let device = device.map(|device| self.device_name(device).to_owned());
        self.note(now, About { device, ..about });
        self.tell(id, Say::Recall(recall));
    }

    /// For whom a lease has to give way: the first in the queue that is more urgent, or whoever asked nobody.
    fn who_needs_it(&self, id: LeaseId) -> String {
        let Some(lease) = self.leases.get(&id) else { return String::new() };
        let waits =
            |other: &&super::Lease| other.held_since.is_none() && other.request.priority > lease.request.priority;
        let first = self.leases.values().filter(waits).max_by_key(|other| other.request.priority);
        match first {
            Some(other) => format!("{} needs it, which is more urgent", other.request.name),
            None => "programs without a lease have taken memory".to_owned(),
        }
    }

    fn is_overdue(&mut self, now: Moment, grant: GrantId) {
        let Some(id) = self.by_grant.get(&grant).copied() else { return };
        let Some(lease) = self.leases.get(&id) else { return };
        let text = format!("{} has not done in time what it was asked", lease.request.name);
        let about = About::lease("overdue", id, lease, text);
        self.note(now, about);
    }

    fn is_stopped(&mut self, now: Moment, grant: GrantId, until: Moment) {
        let Some(id) = self.by_grant.get(&grant).copied() else { return };
        let Some(recall) = self.recall_of(now, id, Step::Stop, None, until) else { return };
        let Some(process) = self.leases.get(&id).and_then(|lease| lease.process) else {
            let text = format!("{} does not leave, and its process is not known: it cannot be stopped", self.name(id));
            return self.ask_back(now, id, "overdue", text, recall);
        };
        let text = format!("{} (process {}) is stopped: {}", self.name(id), process.pid, recall.because);
        self.ask_back(now, id, "stopped", text, recall);
        self.effects.push(Effect::Stop { lease: id, process, how: Stop::Ask });
        // Half of the time to end by itself, half for the kernel to clear up after it.
        let kill_at = Moment(now.0 + until.since(now).0 / 2);
        self.leases.change(&id, |lease| lease.kill_at = Some(kill_at));
    }

    fn may_rise(&mut self, grant: GrantId, rung: usize) {
        let Some(id) = self.by_grant.get(&grant).copied() else { return };
        let rung = self.leases.get(&id).and_then(|lease| lease.offers.get(rung)).map(|offer| offer.rung);
        if let Some(rung) = rung {
            self.tell(id, Say::MayRise { lease: id, rung });
        }
    }

    fn was_refused(&mut self, now: Moment, grant: GrantId, why: String) {
        let Some((id, lease)) = self.by_grant.remove(&grant).and_then(|id| Some((id, self.leases.remove(&id)?))) else {
            return;
        };
        let text = format!("{} is refused: {why}", lease.request.name);
        self.note(now, About::lease("refused", id, &lease, text));
        let say = Say::Refused { lease: Some(id), why };
        match lease.owner {
            Owner::Client(client) => self.effects.push(Effect::Tell { client, say }),
            Owner::Engine(engine) => self.effects.push(Effect::TellEngine { engine, say }),
            Owner::Http | Owner::Process { .. } => {}
        }
    }

    /// Tells whoever owns a lease, if it can hear.
    pub(super) fn tell(&mut self, id: LeaseId, say: Say) {
        let Some(lease) = self.leases.get(&id) else { return };
        match (&lease.owner, say) {
            (Owner::Client(client), say) => self.effects.push(Effect::Tell { client: *client, say }),
            (Owner::Engine(engine), say) => {
                self.effects.push(Effect::TellEngine { engine: engine.clone(), say });
            }
            // Over HTTP it is read from the lease's status.
            _ => {}
        }
    }

    /// What was given back is free, or is not waited for any longer.
    fn hear_of_return(&mut self, now: Moment, grant: GrantId, edge: &GrantEdge) {
        match edge {
            GrantEdge::Unseen { device, bytes } => self.was_not_freed(now, grant, *device, *bytes),
            GrantEdge::Ended(end) => {
                if let Some((id, lease)) = self.returning.remove(&grant)
                    && *end == GrantEnd::Returned
                {
                    let text = format!("what {} gave back is free", lease.request.name);
                    self.note(now, About::lease("verified", id, &lease, text));
                }
            }
            _ => {}
        }
    }

    fn was_not_freed(&mut self, now: Moment, grant: GrantId, device: DeviceId, bytes: Bytes) {
        let returned = self.returning.get(&grant).map(|(id, lease)| (*id, lease));
        let held = || self.by_grant.get(&grant).and_then(|id| Some((*id, self.leases.get(id)?)));
        let Some((id, lease)) = returned.or_else(held) else { return };
        let name = self.device_name(device).to_owned();
        let text = format!(
            "{} gave back {bytes} of {name}, and its driver does not say so: what is in use counts as a stranger's",
            lease.request.name
        );
        let about = About { device: Some(name), bytes: Some(bytes.0), ..About::lease("not-freed", id, lease, text) };
        self.note(now, about);
    }
}
