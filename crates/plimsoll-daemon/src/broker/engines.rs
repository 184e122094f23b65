//! Engines: programs that asked nobody, and whose memory the daemon can ask back through an interface of theirs. What the
//! driver says they use becomes a lease, so that the core can recall it like anybody's.
//! Never speaks to an engine, and never takes in a program that has a lease of its own.
//! Invariant: an engine's held leases together are about what its driver says it uses, or what it was granted to load.

use plimsoll_core::{Bytes, DeviceKind, Moment};

use super::ask::spec;
use super::{About, Broker, Lease, Owner, Readings};
use crate::process::Process;
use crate::wire::{LeaseId, LeaseRequest, Rung};

/// How an engine stands with the broker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineView {
    /// The device that it uses most of, or is to use.
    pub device: Option<String>,
    /// What it and its children use of that device; none if the driver does not tell processes apart.
    pub used: Option<u64>,
    /// What is in use of that device by whomever.
    pub in_use: u64,
    /// Which reading of the device said so.
    pub readings: Readings,
    /// What it is promised.
    pub promised: u64,
    /// Its leases that it holds.
    pub held: Vec<LeaseId>,
    /// It was asked to give something back.
    pub is_recalled: bool,
    /// Its process has a lease that is not the engine's: whoever has that is asked.
    pub has_another_lease: bool,
}

impl Broker {
    /// How an engine stands, whose process is this one.
    pub fn engine(&self, name: &str, process: Option<Process>, device: Option<&str>) -> EngineView {
        let own: Vec<(LeaseId, &Lease)> = self.leases.iter().filter(|(_, lease)| is_of(lease, name)).collect();
        let held: Vec<LeaseId> =
            own.iter().filter(|(_, lease)| lease.held_since.is_some()).map(|(id, _)| *id).collect();
        let mut view =
            EngineView { is_recalled: own.iter().any(|(_, lease)| lease.recall.is_some()), ..EngineView::default() };
        view.has_another_lease = process.is_some()
            && self
                .leases
                .values()
                .any(|lease| !is_of(lease, name) && lease.process == process && lease.held_since.is_some());
        if let Some(at) = self.device_of(process, device) {
            let device = &self.devices[at];
            view.device = Some(device.truth.name.clone());
            view.in_use = (device.truth.capacity - device.truth.free).0;
            view.readings = device.readings;
            view.used = process.and_then(|process| self.used_below(at, process.pid)).map(|bytes| bytes.0);
            view.promised = own.iter().map(|(_, lease)| self.promised(lease, device.id).0).sum();
        }
        view.held = held;
        view
    }

    /// The device of this name, or the one that the process uses most of, or the first GPU.
    fn device_of(&self, process: Option<Process>, name: Option<&str>) -> Option<usize> {
        if let Some(name) = name {
            return self.devices.iter().position(|device| device.truth.name == name);
        }
        let gpus = (0..self.devices.len()).filter(|at| self.devices[*at].truth.kind == DeviceKind::Gpu);
        let used = |at: &usize| process.and_then(|process| self.used_below(*at, process.pid)).unwrap_or_default();
        gpus.max_by_key(|at| (used(at), std::cmp::Reverse(*at)))
    }

    /// What a process and all that it started use of a device.
    fn used_below(&self, at: usize, pid: u32) -> Option<Bytes> {
        let processes = self.devices[at].truth.processes.as_ref()?;
        let below = processes.iter().filter(|each| each.pid == pid || each.ancestors.contains(&pid));
        Some(below.map(|each| each.bytes).sum())
    }

    /// Gives an engine a lease for what its driver says it uses, instead of what it held. The request's ladder goes from
    /// that downwards; what of its first rung does not fit beside others stays a stranger's.
    ///
    /// # Errors
    /// Why it stays without one.
    pub fn take_in(
        &mut self,
        now: Moment,
        name: &str,
        process: Process,
        mut request: LeaseRequest,
    ) -> Result<LeaseId, String> {
        let [device] = &request.devices[..] else { return Err("an engine is taken in on one device".to_owned()) };
        let device = self.devices.iter().find(|each| each.truth.name == *device).map(|each| each.id);
        let device = device.ok_or("its device is not known")?;
        let used = Bytes(request.ladder.first().map_or(0, |rung| rung.bytes));
        let program = u64::from(process.pid);
        let room = self.scheduler.room_to_take_in(device, program, used);
        fit(&mut request.ladder, room.0);
        let (ladder, offers) = self.ladder(&request)?;
        let grant = self.scheduler.take_in(now, spec(&request, ladder, program), device, used);
        let grant = grant.map_err(|refusal| self.told(&refusal))?;
        self.forget_leases_of(name, process);
        let id = LeaseId(self.next_lease);
        self.next_lease += 1;
        let lease = Lease {
            grant,
            request,
            offers,
            owner: Owner::Engine(name.to_owned()),
            process: Some(process),
            is_attached: true,
            secret: String::new(),
            asked_at: now,
            held_since: Some(now),
            expires: None,
            recall: None,
            kill_at: None,
            told_over: false,
        };
        let bytes = lease.request.ladder[0].bytes;
        let text =
            format!("{name} holds {} of {}, by its driver's word", Bytes(bytes), lease.request.devices.join(" and "));
        let device = lease.request.devices.first().cloned();
        let about = About { device, bytes: Some(bytes), ..About::lease("adopted", id, &lease, text) };
        self.note(now, about);
        self.leases.insert(id, lease);
        self.by_grant.insert(grant, id);
        self.changed.insert(id);
        self.hear(now);
        Ok(id)
    }

    /// The core has ended these when it took the program in.
    fn forget_leases_of(&mut self, name: &str, process: Process) {
        let over = |lease: &Lease| is_of(lease, name) && lease.process == Some(process) && lease.held_since.is_some();
        for id in self.leases.those(over) {
            if let Some(lease) = self.leases.remove(&id) {
                self.by_grant.remove(&lease.grant);
                self.changed.insert(id);
            }
        }
        self.returning.retain(|_, (_, lease)| !(is_of(lease, name) && lease.process == Some(process)));
    }

    /// Something about an engine that people should read.
    pub fn note_engine(&mut self, now: Moment, name: &str, bytes: Option<u64>, text: String) {
        self.note(now, About { name: name.to_owned(), bytes, text, ..About::of("engine") });
    }
}

fn is_of(lease: &Lease, engine: &str) -> bool {
    matches!(&lease.owner, Owner::Engine(name) if name == engine)
}

/// A ladder whose first rung has no more than this.
fn fit(ladder: &mut Vec<Rung>, room: u64) {
    if let Some(first) = ladder.first_mut() {
        first.bytes = first.bytes.min(room);
    }
    let top = ladder.first().map_or(0, |rung| rung.bytes);
    let mut at = 0;
    ladder.retain(|rung| {
        at += 1;
        rung.bytes > 0 && (at == 1 || rung.bytes < top)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ladder_is_cut_to_what_fits() {
        let rung = |bytes| Rung { bytes, quality: 1.0, switch_ms: 0 };
        let cut = |room| {
            let mut ladder = vec![rung(900), rung(500), rung(100), rung(0)];
            fit(&mut ladder, room);
            ladder.iter().map(|rung| rung.bytes).collect::<Vec<_>>()
        };
        assert_eq!(cut(1_000), [900, 500, 100]);
        assert_eq!(cut(600), [600, 500, 100]);
        assert_eq!(cut(500), [500, 100]);
        assert_eq!(cut(0), [0; 0]);
    }
}
