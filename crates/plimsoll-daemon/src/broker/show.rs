//! Show: how everything stands, and why a lease has what it has.
//! Never changes anything.

use plimsoll_core::{Bytes, DeviceId, GrantId, GrantPhase, GrantWait, Moment, WaitReason};

use super::{Broker, Device, Lease};
use crate::wire::{DeviceState, Holder, LeaseId, Phase, Portion, Sample, Sort, State, Waiting};

/// Characters of a name within a sentence.
const SHORT_MAX: usize = 32;

/// The bytes of a device. What members of the book may promise is promised, and what they use is no stranger's.
pub(super) struct Figures {
    pub(super) line: Bytes,
    pub(super) promised: Bytes,
    pub(super) members: Bytes,
    pub(super) used: Bytes,
    pub(super) strangers: Bytes,
}

impl Broker {
    /// Everything as it stands.
    pub fn state(&self, now: Moment) -> State {
        let held = self.leases.iter().filter_map(|(id, lease)| self.holder(id, lease));
        let returning = self.returning.values().filter_map(|(id, lease)| self.holder(*id, lease));
        let members = self.devices.iter().flat_map(|device| self.members_of(device));
        let strangers = self.devices.iter().flat_map(|device| self.strangers_of(device));
        let mut holders: Vec<Holder> = held.chain(returning).chain(members).chain(strangers).collect();
        holders.sort_by_key(|holder| match holder.sort {
            Sort::Lease => 0,
            Sort::Engine => 1,
            Sort::Member => 2,
            Sort::Stranger => 3,
        });
        State {
            version: self.settings.version.clone(),
            at_ms: self.wall_ms(now),
            policy: self.settings.sharing.policy.to_string(),
            devices: self.devices.iter().map(|device| self.device_state(device)).collect(),
            holders,
            queue: self.queue(now),
            warnings: self.warnings.values().cloned().collect(),
        }
    }

    /// The samples of each device, by its name.
    pub fn history(&self) -> impl Iterator<Item = (&str, Vec<Sample>)> {
        self.devices.iter().map(|device| (device.truth.name.as_str(), device.samples.iter().copied().collect()))
    }

    /// A device for everybody's eyes.
    pub(super) fn device_state(&self, device: &Device) -> DeviceState {
        let pressure = self.scheduler.pressure(device.id);
        let Figures { line, promised, members, used, strangers } = self.figures(device);
        DeviceState {
            name: device.truth.name.clone(),
            card: device.truth.card.clone(),
            capacity: device.truth.capacity.0,
            line: line.0,
            promised: promised.0,
            members: members.0,
            used: used.0,
            strangers: strangers.0,
            reserve: device.reserve.0,
            pressure: pressure.value(),
            level: pressure.level().to_string(),
            source: device.truth.source.clone(),
            by_sum: self.by_sum(device),
        }
    }

    /// The bytes of a device, without looking at every lease.
    pub(super) fn figures(&self, device: &Device) -> Figures {
        let (ledger, id) = (self.scheduler.ledger(), device.id);
        let (members, used_by_members) = (self.allotted_to_members(device), self.used_by_members(device));
        let line = (ledger.measured(id) + used_by_members.share(self.settings.margin)).min(ledger.ceiling(id));
        Figures {
            line,
            promised: ledger.promised(id) + members,
            members,
            used: device.truth.capacity - device.truth.free,
            strangers: self.scheduler.strangers_on(id) - used_by_members,
        }
    }

    /// Why what is in use of a device counts as one sum, if it does.
    fn by_sum(&self, device: &Device) -> Option<String> {
        if device.truth.processes.is_none() {
            return Some("its driver does not tell processes apart".to_owned());
        }
        let lease = self.unknown_on(device.id)?;
        Some(format!("which process uses the lease of {} is not known", short(&lease.request.name)))
    }

    fn holder(&self, id: LeaseId, lease: &Lease) -> Option<Holder> {
        let status = self.scheduler.grant(lease.grant)?;
        let phase = match status.phase {
            GrantPhase::Waiting => return None,
            GrantPhase::Held => Phase::Held,
            GrantPhase::Recalled { .. } => Phase::Recalled,
            GrantPhase::Returning => Phase::Returning,
        };
        let offer = status.rung.and_then(|rung| lease.offers.get(rung))?;
        let sort = if matches!(lease.owner, super::Owner::Engine(_)) { Sort::Engine } else { Sort::Lease };
        let recommended = self.scheduler.recommended_quality(lease.grant);
        Some(Holder {
            sort,
            lease: Some(id),
            name: lease.request.name.clone(),
            pid: lease.process.map(|process| process.pid),
            kind: lease.request.kind,
            priority: lease.request.priority,
            portions: offer.devices.iter().map(|device| self.portion(id, lease, *device)).collect(),
            rung: offer.rung,
            rungs: lease.request.ladder.len(),
            quality: lease.request.ladder[offer.rung].quality,
            recommended: recommended.map_or(1.0, |quality| f64::from(quality.value())),
            phase,
            pinned: status.pinned,
            batch_items: status.items_left,
            since_ms: self.wall_ms(lease.held_since.unwrap_or(lease.asked_at)),
            recall: lease.recall.clone().filter(|_| phase == Phase::Recalled),
        })
    }

    fn portion(&self, id: LeaseId, lease: &Lease, on: DeviceId) -> Portion {
        let device = self.devices.iter().find(|device| device.id == on);
        Portion {
            device: self.device_name(on).to_owned(),
            promised: self.promised(lease, on).0,
            used: device.and_then(|device| device.used.as_ref()?.get(&id)).map(|bytes| bytes.0),
        }
    }

    fn strangers_of<'a>(&'a self, device: &'a Device) -> impl Iterator<Item = Holder> + 'a {
        device.strangers.iter().map(|stranger| Holder {
            sort: Sort::Stranger,
            name: stranger.name.clone(),
            pid: Some(stranger.pid),
            portions: vec![Portion { device: device.truth.name.clone(), promised: 0, used: Some(stranger.bytes.0) }],
            ..Holder::default()
        })
    }

    fn queue(&self, now: Moment) -> Vec<Waiting> {
        let waits = |(id, lease): (LeaseId, &Lease)| {
            let wait = self.scheduler.wait_of(lease.grant)?;
            let waiting = Waiting {
                lease: Some(id),
                name: lease.request.name.clone(),
                pid: lease.process.map(|process| process.pid),
                kind: lease.request.kind,
                priority: lease.request.priority,
                bytes: lease.request.ladder.last().map_or(0, |rung| rung.bytes),
                devices: lease.request.devices.clone(),
                since_ms: self.wall_ms(lease.asked_at),
                reason: self.wait_reason(&wait),
                estimate_ms: wait.expected.map(|at| at.since(now).0 / 1_000_000),
            };
            Some((wait.before, waiting))
        };
        let mut queue: Vec<(usize, Waiting)> = self.leases.iter().filter_map(waits).collect();
        queue.sort_by_key(|(before, _)| *before);
        queue.into_iter().map(|(_, waiting)| waiting).chain(self.members_waiting()).collect()
    }

    /// Why a lease waits, in one sentence.
    pub(super) fn wait_reason(&self, wait: &GrantWait) -> String {
        let (device, wanted, free) = (self.device_name(wait.device), wait.wanted, wait.free);
        let names = |is_meant: &dyn Fn(GrantId) -> bool| {
            let meant = wait.holders.iter().filter(|(grant, _)| is_meant(*grant)).take(3);
            let named = meant.map(|(grant, bytes)| format!("{} ({bytes})", short(self.name_of(*grant))));
            named.collect::<Vec<_>>().join(", ")
        };
        let needs = format!("it needs {wanted} of {device}, {free} are free");
        let is_of_others = matches!(wait.reason, WaitReason::Grants | WaitReason::Strangers);
        if let Some(members) = self.members_in_the_way(wait.device).filter(|_| is_of_others) {
            return format!("{needs}; with other programs of yours: {members}");
        }
        match wait.reason {
            WaitReason::Behind(grant) => format!("{needs}, and {} is before it", short(self.name_of(grant))),
            WaitReason::Runs if wanted <= free => format!("{needs}; it is given in a moment"),
            WaitReason::Runs => format!("{needs}; the rest comes back by itself"),
            WaitReason::ComingBack => match names(&|grant| self.gives_back(grant)) {
                nobody if nobody.is_empty() => format!("{needs}; the rest comes back by itself"),
                asked => format!("{needs}; the rest was asked back from {asked}"),
            },
            WaitReason::Grants => format!("{needs}; held by {}", names(&|_| true)),
            WaitReason::Strangers => format!("{needs}; {} are used by programs without a lease", wait.strangers),
        }
    }

    /// Whether a lease was asked back, or is back and not seen to be free.
    fn gives_back(&self, grant: GrantId) -> bool {
        let lease = self.by_grant.get(&grant).and_then(|id| self.leases.get(id));
        lease.is_none_or(|lease| lease.recall.is_some())
    }

    fn name_of(&self, grant: GrantId) -> &str {
        let id = self.by_grant.get(&grant);
        let lease = id.and_then(|id| self.leases.get(id)).or_else(|| Some(&self.returning.get(&grant)?.1));
        lease.map_or("somebody", |lease| lease.request.name.as_str())
    }

    /// Why a lease waits, or has what it has: sentences, the most important first.
    ///
    /// # Errors
    /// There is no such lease.
    pub fn why(&self, now: Moment, id: LeaseId) -> Result<Vec<String>, String> {
        let Some(lease) = self.leases.get(&id) else {
            let last = self.events.iter().rev().find(|event| event.lease == Some(id));
            return match last {
                Some(event) => Ok(vec![format!("It is over: {}.", event.text)]),
                None => Err(format!("there is no lease {}, and nothing is known of one", id.0)),
            };
        };
        Ok(match self.scheduler.wait_of(lease.grant) {
            Some(wait) => self.why_it_waits(now, &wait),
            None => self.why_it_holds(now, id, lease),
        })
    }

    fn why_it_waits(&self, now: Moment, wait: &GrantWait) -> Vec<String> {
        let mut because = vec![format!("It waits: {}.", self.wait_reason(wait))];
        because.push(match wait.before {
            0 => "Nobody is before it.".to_owned(),
            1 => "One is before it.".to_owned(),
            before => format!("{before} are before it."),
        });
        for (grant, bytes) in &wait.holders {
            because.push(format!("{} holds {bytes} there.", self.name_of(*grant)));
        }
        if wait.strangers > Bytes::ZERO {
            because.push(format!("Programs without a lease use {} there.", wait.strangers));
        }
        if let Some(at) = wait.expected {
            because.push(format!("What was asked back is due in {:.1} s.", at.since(now).as_secs_f64()));
        }
        because.push(match wait.until {
            Some(until) => format!("It is refused if it still waits in {:.0} s.", until.since(now).as_secs_f64()),
            None => "It waits as long as it takes.".to_owned(),
        });
        because
    }

    fn why_it_holds(&self, now: Moment, id: LeaseId, lease: &Lease) -> Vec<String> {
        let Some(holder) = self.holder(id, lease) else { return Vec::new() };
        let held = lease.held_since.map_or(0.0, |since| now.since(since).as_secs_f64());
        let mut because = Vec::new();
        if let Some(recall) = &holder.recall {
            because.push(format!("It was asked to {}: {}.", asked(recall), recall.because));
        }
        because.push(format!("It is on rung {} of {}, for {held:.0} s.", holder.rung + 1, holder.rungs));
        if holder.rung > 0 {
            because.push(
                "A better rung did not fit when it was given, or was asked back since; it is told when one fits."
                    .into(),
            );
        }
        for portion in &holder.portions {
            let promised = Bytes(portion.promised);
            because.push(match portion.used.map(Bytes) {
                Some(used) => format!("It is promised {promised} of {} and uses {used}.", portion.device),
                None => {
                    format!("It is promised {promised} of {}; its driver does not say what it uses.", portion.device)
                }
            });
        }
        because.push(format!(
            "At this pressure a quality of {:.0} % is recommended; its rung gives {:.0} %.",
            holder.recommended * 100.0,
            holder.quality * 100.0
        ));
        if holder.pinned {
            because.push("It is pinned: nobody may ask for it.".to_owned());
        }
        because
    }

    /// What programs on these devices are to see of the machine.
    pub(super) fn environment(&self, devices: &[DeviceId]) -> Vec<(String, String)> {
        let mut joined: Vec<(String, String)> = Vec::new();
        let known = devices.iter().filter_map(|id| self.devices.iter().find(|device| device.id == *id));
        for (name, value) in known.flat_map(|device| &device.truth.environment) {
            match joined.iter_mut().find(|(known, _)| known == name) {
                Some((_, values)) => *values = format!("{values},{value}"),
                None => joined.push((name.clone(), value.clone())),
            }
        }
        joined
    }
}

/// A name that leaves room in a sentence for what is said of it. Many are whole command lines.
fn short(name: &str) -> String {
    match name.chars().count() > SHORT_MAX {
        true => name.chars().take(SHORT_MAX - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

fn asked(recall: &crate::wire::Recall) -> String {
    match recall.rung {
        Some(rung) => format!("step down to rung {}", rung + 1),
        None => "leave".to_owned(),
    }
}
