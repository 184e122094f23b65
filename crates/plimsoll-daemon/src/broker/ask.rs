//! Ask: what a client may ask of the broker, and the answer.
//! Never answers later: what comes later is an effect.
//! Invariant: only the owner of a lease steps, rises or returns it; whoever may change things at all may pin it, set its
//! priority or release it.

use plimsoll_core::{
    GrantError, GrantId, GrantKind, GrantOwner, GrantSpec, Moment, Nanos, Priority, Quality, StepError,
};

use super::members::ALLOTTED_WITHIN_MS;
use super::{About, Broker, ClientId, Lease, Owner, TTL_MAX, TTL_MIN};
use crate::process::Process;
use crate::wire::{Granted, Kind, LeaseId, LeaseRequest, PROTOCOL, Queued, Request, Say, Urgency};

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A connection.
    Client(ClientId),
    /// Somebody with the token.
    Http,
    /// An engine's adapter, by the engine's name.
    Engine(String),
}

/// How long a lease over HTTP lives without a heartbeat if its client does not say.
const TTL_DEFAULT: Nanos = Nanos::seconds(60);

impl Broker {
    /// Answers a request of a client. `process` is the living process that it names, or its own.
    pub fn ask(&mut self, now: Moment, asker: &Asker, process: Option<Process>, request: Request) -> Say {
        let answer = match request {
            Request::Hello { protocol } => self.welcome(protocol),
            Request::Lease(request) => return self.lease(now, asker, process, request, String::new()),
            Request::Stepped { lease, rung } => self.stepped(now, asker, lease, rung),
            Request::Rise { lease, rung } => self.rise(now, asker, lease, rung),
            Request::Return { lease } => return self.release(now, asker, lease),
            Request::Attach { lease, pid, secret } => self.attach(asker, lease, process, pid, secret.as_deref()),
            Request::Claim { lease, secret } => self.claim(now, asker, lease, &secret),
            Request::Heartbeat { lease } => self.heartbeat(now, lease),
            Request::SetPriority { lease, priority } => self.set_priority(now, lease, priority),
            Request::SetPinned { lease, pinned } => self.set_pinned(now, lease, pinned),
            Request::SetBatch { lease, items } => self.set_batch(now, lease, items),
            Request::State => Ok(Say::State(Box::new(self.state(now)))),
            Request::Why { lease } => self.why(now, lease).map(|because| Say::Why { lease, because }),
            // Which events, and to whom, is the server's.
            Request::Events { .. } => Ok(Say::Done),
        };
        self.hear(now);
        answer.unwrap_or_else(|message| Say::Error { message })
    }

    fn welcome(&self, protocol: u32) -> Result<Say, String> {
        match protocol {
            PROTOCOL => Ok(Say::Welcome { protocol: PROTOCOL, version: self.settings.version.clone() }),
            other => {
                Err(format!("this daemon speaks protocol {PROTOCOL}, not {other}; use the plimsoll that came with it"))
            }
        }
    }

    /// Asks for a lease, with what a new connection may claim it with.
    pub fn lease(
        &mut self,
        now: Moment,
        asker: &Asker,
        process: Option<Process>,
        request: LeaseRequest,
        secret: String,
    ) -> Say {
        let (ladder, offers) = match self.ladder(&request) {
            Ok(ladder) => ladder,
            Err(why) => return self.refused(now, &request, None, why),
        };
        let id = LeaseId(self.next_lease);
        let program = process.map_or_else(|| unknown_program(id), |process| u64::from(process.pid));
        let mut spec = spec(&request, ladder, program);
        if self.is_in_book() {
            spec.patience = spec.patience.max(Nanos::millis(ALLOTTED_WITHIN_MS));
        }
        let asked = self.scheduler.request(now, spec);
        let grant = match asked {
            Ok(grant) => grant,
            Err(refusal) => {
                let why = self.told(&refusal);
                let said = self.refused(now, &request, None, why);
                self.hear(now);
                return said;
            }
        };
        self.next_lease += 1;
        let is_attached = request.pid.is_some();
        let owner = match asker {
            Asker::Client(client) => Owner::Client(*client),
            Asker::Http => Owner::Http,
            Asker::Engine(name) => Owner::Engine(name.clone()),
        };
        let expires = self.ttl(asker, &request).map(|ttl| now + ttl);
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
            held_since: None,
            expires,
            recall: None,
            kill_at: None,
            told_over: false,
        };
        let text = format!("{} asks for {}", lease.request.name, wanted(&lease.request));
        self.note(now, About::lease("asked", id, &lease, text));
        self.leases.insert(id, lease);
        self.by_grant.insert(grant, id);
        if items > 0 {
            self.scheduler.set_batch(now, grant, items);
        }
        self.answer_lease(now, id, asker)
    }

    /// What a lease that was just asked for is told: news of others go their own way.
    fn answer_lease(&mut self, now: Moment, id: LeaseId, asker: &Asker) -> Say {
        self.hear(now);
        let own = |effect: &super::Effect| match (effect, asker) {
            (super::Effect::Tell { client, say }, Asker::Client(asker)) => client == asker && is_answer(say, id),
            _ => false,
        };
        if let Some(at) = self.effects.iter().position(own)
            && let super::Effect::Tell { say, .. } = self.effects.remove(at)
        {
            return say;
        }
        match self.status(now, id) {
            Some(Say::Queued(queued)) => {
                let text = format!("{} waits: {}", self.name(id), queued.reason);
                let about = self.leases.get(&id).map(|lease| About::lease("queued", id, lease, text));
                about.into_iter().for_each(|about| self.note(now, about));
                Say::Queued(queued)
            }
            Some(said) => said,
            None => Say::Refused { lease: Some(id), why: "it could not be given".to_owned() },
        }
    }

    fn refused(&mut self, now: Moment, request: &LeaseRequest, lease: Option<LeaseId>, why: String) -> Say {
        let text = format!("{} is refused: {why}", request.name);
        self.note(now, About { lease, name: request.name.clone(), text, ..About::of("refused") });
        Say::Refused { lease, why }
    }

    fn ttl(&self, asker: &Asker, request: &LeaseRequest) -> Option<Nanos> {
        let said = request.ttl_ms.map(|ms| Nanos::millis(ms).clamp(TTL_MIN, TTL_MAX));
        match asker {
            Asker::Http => Some(said.unwrap_or(TTL_DEFAULT)),
            Asker::Client(_) => said,
            Asker::Engine(_) => None,
        }
    }

    /// How a lease stands, as its owner would be told now; nothing if it is over.
    pub fn status(&self, now: Moment, id: LeaseId) -> Option<Say> {
        let lease = self.leases.get(&id)?;
        match (self.granted(id), &lease.recall) {
            (Some(_), Some(recall)) => Some(Say::Recall(recall.clone())),
            (Some(granted), None) => Some(Say::Granted(granted)),
            (None, _) => Some(Say::Queued(self.queued(now, id)?)),
        }
    }

    /// What a lease that is held has.
    pub(super) fn granted(&self, id: LeaseId) -> Option<Granted> {
        let lease = self.leases.get(&id)?;
        let rung = self.scheduler.grant(lease.grant)?.rung?;
        let offer = lease.offers.get(rung)?;
        let asked = lease.request.ladder.get(offer.rung)?;
        let names = offer.devices.iter().map(|device| self.device_name(*device).to_owned());
        Some(Granted {
            lease: id,
            rung: offer.rung,
            bytes: asked.bytes,
            quality: asked.quality,
            devices: names.collect(),
            environment: self.environment(&offer.devices),
            places: self.places(&offer.devices),
            secret: lease.secret.clone(),
        })
    }

    /// Where a lease that waits stands, and why.
    pub(super) fn queued(&self, now: Moment, id: LeaseId) -> Option<Queued> {
        let lease = self.leases.get(&id)?;
        let wait = self.scheduler.wait_of(lease.grant)?;
        let estimate_ms = wait.expected.map(|at| at.since(now).0 / 1_000_000);
        Some(Queued { lease: id, before: wait.before, reason: self.wait_reason(&wait), estimate_ms })
    }

    fn stepped(&mut self, now: Moment, asker: &Asker, id: LeaseId, rung: usize) -> Result<Say, String> {
        let (grant, step) = self.own_rung(asker, id, rung)?;
        self.scheduler.stepped_to(now, grant, step).map_err(|error| self.told_step(&error))?;
        let is_held = self.scheduler.grant(grant).is_some_and(|status| status.phase == plimsoll_core::GrantPhase::Held);
        let text = format!("{} is on rung {rung}", self.name(id));
        if is_held {
            self.leases.change(&id, |lease| lease.recall = None);
        }
        if let Some(lease) = self.leases.get(&id) {
            let bytes = lease.request.ladder.get(rung).map(|rung| rung.bytes);
            let about = About { bytes, ..About::lease("stepped", id, lease, text) };
            self.note(now, about);
        }
        self.changed.insert(id);
        Ok(Say::Done)
    }

    fn rise(&mut self, now: Moment, asker: &Asker, id: LeaseId, rung: usize) -> Result<Say, String> {
        let (grant, step) = self.own_rung(asker, id, rung)?;
        self.scheduler.begin_step(now, grant, step).map_err(|error| self.told_step(&error))?;
        Ok(Say::Done)
    }

    /// The grant of an asker's own lease, and what one of its rungs is in the core's ladder.
    fn own_rung(&self, asker: &Asker, id: LeaseId, rung: usize) -> Result<(GrantId, usize), String> {
        let lease = self.own(asker, id)?;
        let step = lease.offers.iter().position(|offer| offer.rung == rung);
        let step = step.ok_or_else(|| format!("lease {} has no rung {rung}", id.0))?;
        Ok((lease.grant, step))
    }

    fn own(&self, asker: &Asker, id: LeaseId) -> Result<&Lease, String> {
        let lease = self.leases.get(&id).ok_or_else(|| unknown(id))?;
        let is_own = match (asker, &lease.owner) {
            (Asker::Client(client), Owner::Client(owner)) => client == owner,
            (Asker::Http, Owner::Http | Owner::Process { .. }) => true,
            (Asker::Engine(name), Owner::Engine(owner)) => name == owner,
            _ => false,
        };
        match is_own {
            true => Ok(lease),
            false => Err(format!("lease {} belongs to another client; claim it with its secret first", id.0)),
        }
    }

    /// Ends a lease, or its wait, because somebody said so.
    pub(super) fn give_back(&mut self, now: Moment, id: LeaseId, why: &'static str) -> Result<Say, String> {
        match self.leases.contains(&id) {
            true => {
                self.end(now, id, "returned", why);
                Ok(Say::Done)
            }
            false => Err(unknown(id)),
        }
    }

    /// Ends a lease that belongs to somebody else: its owner is told.
    pub fn release(&mut self, now: Moment, asker: &Asker, id: LeaseId) -> Say {
        if self.own(asker, id).is_err() {
            self.tell(id, Say::Ended { lease: id, why: "somebody released it".to_owned() });
        }
        let answer = self.give_back(now, id, "given back");
        self.hear(now);
        answer.unwrap_or_else(|message| Say::Error { message })
    }

    /// Its process is its holder from now on. Whoever knows its secret was given it by its owner, and may say so too.
    fn attach(
        &mut self,
        asker: &Asker,
        id: LeaseId,
        process: Option<Process>,
        pid: u32,
        secret: Option<&str>,
    ) -> Result<Say, String> {
        let grant = match secret {
            Some(secret) => self.with_secret(id, secret)?.grant,
            None => self.own(asker, id)?.grant,
        };
        let process = process.filter(|process| process.pid == pid);
        let process = process.ok_or_else(|| format!("process {pid} does not run, or belongs to another user"))?;
        self.scheduler.hand_over(grant, u64::from(pid));
        self.leases.change(&id, |lease| (lease.process, lease.is_attached) = (Some(process), true));
        self.changed.insert(id);
        Ok(Say::Done)
    }

    fn claim(&mut self, now: Moment, asker: &Asker, id: LeaseId, secret: &str) -> Result<Say, String> {
        let Asker::Client(client) = asker else {
            return Err("only a connection claims a lease; over HTTP its heartbeat keeps it".to_owned());
        };
        self.with_secret(id, secret)?;
        self.leases.change(&id, |lease| lease.owner = Owner::Client(*client));
        self.changed.insert(id);
        self.status(now, id).ok_or_else(|| unknown(id))
    }

    fn with_secret(&self, id: LeaseId, secret: &str) -> Result<&Lease, String> {
        let lease = self.leases.get(&id).ok_or_else(|| unknown(id))?;
        match !lease.secret.is_empty() && same(lease.secret.as_bytes(), secret.as_bytes()) {
            true => Ok(lease),
            false => Err(format!("that is not the secret of lease {}", id.0)),
        }
    }

    fn heartbeat(&mut self, now: Moment, id: LeaseId) -> Result<Say, String> {
        let lease = self.leases.get(&id).ok_or_else(|| unknown(id))?;
        let asker = if lease.owner == Owner::Http { Asker::Http } else { Asker::Client(ClientId(0)) };
        let ttl = self.ttl(&asker, &lease.request);
        if let Some(ttl) = ttl {
            self.leases.change(&id, |lease| lease.expires = Some(now + ttl));
        }
        self.status(now, id).ok_or_else(|| unknown(id))
    }

    fn set_priority(&mut self, now: Moment, id: LeaseId, priority: Urgency) -> Result<Say, String> {
        let grant = self.change_request(id, |request| request.priority = priority)?;
        self.scheduler.set_priority(now, grant, core_priority(priority));
        self.changed.insert(id);
        Ok(Say::Done)
    }

    fn set_pinned(&mut self, now: Moment, id: LeaseId, pinned: bool) -> Result<Say, String> {
        let grant = self.change_request(id, |request| request.pinned = pinned)?;
        self.scheduler.set_pinned(now, grant, pinned);
        self.changed.insert(id);
        Ok(Say::Done)
    }

    fn set_batch(&mut self, now: Moment, id: LeaseId, items: u32) -> Result<Say, String> {
        let grant = self.change_request(id, |request| request.batch_items = items)?;
        self.scheduler.set_batch(now, grant, items);
        Ok(Say::Done)
    }

    /// Changes what a lease was asked with. Its grant.
    fn change_request(&mut self, id: LeaseId, change: impl FnOnce(&mut LeaseRequest)) -> Result<GrantId, String> {
        let changed = self.leases.change(&id, |lease| {
            change(&mut lease.request);
            lease.grant
        });
        changed.ok_or_else(|| unknown(id))
    }

    pub(super) fn name(&self, id: LeaseId) -> &str {
        self.leases.get(&id).map_or("?", |lease| lease.request.name.as_str())
    }

    /// A refusal, with devices by their names.
    pub(super) fn told(&self, refusal: &GrantError) -> String {
        self.with_names(refusal.to_string())
    }

    fn told_step(&self, error: &StepError) -> String {
        self.with_names(error.to_string())
    }

    /// The core counts devices; people name them.
    fn with_names(&self, mut text: String) -> String {
        for device in self.devices.iter().rev() {
            text = text.replace(&device.id.to_string(), &device.truth.name);
        }
        text
    }
}

fn is_answer(say: &Say, id: LeaseId) -> bool {
    match say {
        Say::Granted(granted) => granted.lease == id,
        Say::Refused { lease, .. } => *lease == Some(id),
        _ => false,
    }
}

/// Secrets are compared in a time that tells nothing.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

fn unknown(id: LeaseId) -> String {
    format!("there is no lease {}: it was given back, has ended, or never was", id.0)
}

/// The number by which the core knows the owner of a lease whose process nobody named: beyond any process's.
pub(super) fn unknown_program(id: LeaseId) -> u64 {
    (1 << 63) | id.0
}

pub(super) fn spec(request: &LeaseRequest, ladder: Vec<plimsoll_core::GrantRung>, program: u64) -> GrantSpec {
    GrantSpec {
        priority: core_priority(request.priority),
        may_rise: true,
        stays: true,
        kind: core_kind(request.kind),
        pinned: request.pinned,
        may_be_stopped: request.may_be_stopped,
        quality_target: Quality::FULL,
        ..GrantSpec::new(GrantOwner::Program(program), ladder)
    }
    .with_patience(request.timeout_ms.map(Nanos::millis))
}

pub(super) fn core_priority(priority: Urgency) -> Priority {
    match priority {
        Urgency::Background => Priority::Background,
        Urgency::Low => Priority::Low,
        Urgency::Normal => Priority::Normal,
        Urgency::High => Priority::High,
        Urgency::Critical => Priority::Critical,
    }
}

fn core_kind(kind: Kind) -> GrantKind {
    match kind {
        Kind::Llm => GrantKind::Llm,
        Kind::Image => GrantKind::Image,
        Kind::Video => GrantKind::Video,
        Kind::Batch => GrantKind::Batch,
        Kind::Other => GrantKind::Other,
    }
}

fn wanted(request: &LeaseRequest) -> String {
    let bytes = |rung: Option<&crate::wire::Rung>| plimsoll_core::Bytes(rung.map_or(0, |rung| rung.bytes));
    let (most, least) = (bytes(request.ladder.first()), bytes(request.ladder.last()));
    let of = match request.devices.is_empty() {
        true => "any GPU".to_owned(),
        false => request.devices.join(" and "),
    };
    match most == least {
        true => format!("{most} of {of}"),
        false => format!("{most}, at least {least}, of {of}"),
    }
}
