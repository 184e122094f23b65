//! Ladders: what a request's rungs and devices mean to the core.
//! Never leaves out what the client asked for but where the core's ladder has no place for it, and then the fullest devices.
//! Invariant: every rung of a better quality on every device comes before any of a lower one.

use plimsoll_core::{Bytes, DeviceId, DeviceKind, GrantRung, GrantSpec, Nanos, Quality};

use super::{Broker, NAME_MAX, TTL_MAX, TTL_MIN};
use crate::wire::{LeaseRequest, Rung};

/// One rung of the core's ladder: the client's rung on these devices.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offer {
    pub(super) rung: usize,
    pub(super) devices: Vec<DeviceId>,
}

impl Broker {
    /// The ladder of a request, and what each of its rungs means.
    ///
    /// # Errors
    /// What is wrong with the request, for people.
    pub(super) fn ladder(&self, request: &LeaseRequest) -> Result<(Vec<GrantRung>, Vec<Offer>), String> {
        check(request)?;
        let offers = match self.named(&request.devices)? {
            Some(devices) => {
                let offer = |rung| Offer { rung, devices: devices.clone() };
                (0..request.ladder.len()).map(offer).collect()
            }
            None => self.any_one(request.ladder.len())?,
        };
        let ladder = offers.iter().map(|offer| core_rung(&request.ladder[offer.rung], &offer.devices)).collect();
        Ok((ladder, offers))
    }

    /// The devices that a request names; nothing if any one will do.
    fn named(&self, names: &[String]) -> Result<Option<Vec<DeviceId>>, String> {
        if names.is_empty() {
            return Ok(None);
        }
        let mut found = Vec::new();
        for name in names {
            let device = self.devices.iter().find(|device| device.truth.name == *name);
            let id = device.ok_or_else(|| format!("there is no device '{name}'; there are {}", self.names()))?.id;
            if found.contains(&id) {
                return Err(format!("device '{name}' is named twice; name each once"));
            }
            found.push(id);
        }
        Ok(Some(found))
    }

    /// Each rung on every GPU, the emptiest first. If that is more than a ladder holds, the fullest GPUs are left out.
    fn any_one(&self, rungs: usize) -> Result<Vec<Offer>, String> {
        let gpus = self.devices.iter().filter(|device| device.truth.kind == DeviceKind::Gpu);
        let mut gpus: Vec<DeviceId> = gpus.map(|device| device.id).collect();
        if gpus.is_empty() {
            return Err(format!("this machine has no GPU that is known; name a device: {}", self.names()));
        }
        let free = |id: &DeviceId| self.scheduler.ledger().free(*id);
        gpus.sort_by_key(|id| (std::cmp::Reverse(free(id)), *id));
        gpus.truncate((GrantSpec::RUNGS_MAX / rungs).max(1));
        Ok((0..rungs).flat_map(|rung| gpus.iter().map(move |id| Offer { rung, devices: vec![*id] })).collect())
    }

    fn names(&self) -> String {
        match self.devices.is_empty() {
            true => "none yet: no driver has answered".to_owned(),
            false => self.devices.iter().map(|device| device.truth.name.as_str()).collect::<Vec<_>>().join(", "),
        }
    }
}

fn core_rung(rung: &Rung, devices: &[DeviceId]) -> GrantRung {
    let portions: Vec<_> = devices.iter().map(|device| (*device, Bytes(rung.bytes))).collect();
    GrantRung::new(&portions)
        .with_quality(Quality::new(rung.quality as f32))
        .with_switch_cost(Nanos::millis(rung.switch_ms))
}

fn check(request: &LeaseRequest) -> Result<(), String> {
    let (rungs, most) = (request.ladder.len(), GrantSpec::RUNGS_MAX);
    if request.name.is_empty() || request.name.len() > NAME_MAX {
        return Err(format!("a lease's name has 1 to {NAME_MAX} bytes"));
    }
    if rungs == 0 || rungs > most {
        return Err(format!("a ladder has 1 to {most} rungs, this one has {rungs}"));
    }
    for (at, rung) in request.ladder.iter().enumerate() {
        if rung.bytes == 0 {
            return Err(format!("rung {at} of the ladder asks for no bytes; leave it out"));
        }
        if !(0.0..=1.0).contains(&rung.quality) {
            return Err(format!("the quality of rung {at} is {}, it goes from 0 to 1", rung.quality));
        }
    }
    let falls = |pair: &[Rung]| pair[0].bytes >= pair[1].bytes && pair[0].quality >= pair[1].quality;
    if !request.ladder.windows(2).all(falls) {
        return Err(
            "a ladder goes down: each rung has fewer bytes than the one before it, and no better quality".into()
        );
    }
    match request.ttl_ms.map(Nanos::millis) {
        Some(ttl) if !(TTL_MIN..=TTL_MAX).contains(&ttl) => {
            Err(format!("ttl_ms goes from {} to {}", TTL_MIN.0 / 1_000_000, TTL_MAX.0 / 1_000_000))
        }
        _ => Ok(()),
    }
}
