//! The broker in virtual time: devices and processes are made up, and every fact has its moment.

mod life;
mod long;
mod members;
mod sharing;

use std::collections::BTreeMap;

use plimsoll_core::{Bytes, DeviceKind, Moment, Nanos};

use super::{Asker, Broker, ClientId, Effect, Settings};
use crate::process::Process;
use crate::truth::{DeviceTruth, ProcessUse};
use crate::wire::{LeaseId, LeaseRequest, Request, Rung, Say};

const MIB: u64 = 1 << 20;

/// A machine with devices of 1,000 MiB, all of which may be promised.
struct World {
    broker: Broker,
    now: Moment,
    devices: usize,
    /// What each process really has of each device, in MiB.
    uses: BTreeMap<(u32, usize), u64>,
    /// Whether drivers tell processes apart.
    by_process: bool,
    heard: Vec<Effect>,
}

fn settings() -> Settings {
    Settings { margin: 1.0, wall_start_ms: 1_700_000_000_000, ..Settings::default() }
}

impl World {
    fn new(devices: usize) -> Self {
        Self::with(devices, settings())
    }

    fn with(devices: usize, settings: Settings) -> Self {
        let broker = Broker::new(Moment(1), settings, 1, 1);
        let (uses, heard) = (BTreeMap::new(), Vec::new());
        let mut world = Self { broker, now: Moment(1), devices, uses, by_process: true, heard };
        world.read();
        world
    }

    fn truths(&self) -> Vec<DeviceTruth> {
        let truth = |at: usize| {
            let uses = self.uses.iter().filter(|((_, device), _)| *device == at);
            let processes: Vec<ProcessUse> = uses
                .map(|((pid, _), mib)| ProcessUse {
                    pid: *pid,
                    name: format!("p{pid}"),
                    ancestors: vec![pid + 100_000],
                    bytes: Bytes::mib(*mib),
                })
                .collect();
            let used: Bytes = processes.iter().map(|each| each.bytes).sum();
            DeviceTruth {
                name: format!("gpu{at}"),
                card: "made up".to_owned(),
                kind: DeviceKind::Gpu,
                capacity: Bytes::mib(1_000),
                free: Bytes::mib(1_000) - used,
                processes: self.by_process.then_some(processes),
                in_book: Some(format!("card {at}")),
                source: "test".to_owned(),
                environment: vec![("CUDA_VISIBLE_DEVICES".to_owned(), at.to_string())],
            }
        };
        (0..self.devices).map(truth).collect()
    }

    fn read(&mut self) {
        let names: Vec<String> = (0..self.devices).map(|at| format!("gpu{at}")).collect();
        self.broker.reading_begins(&names);
        let truths = self.truths();
        self.broker.read(self.now, truths);
        self.collect();
    }

    fn collect(&mut self) {
        self.heard.extend(self.broker.drain_effects());
        self.broker.check().unwrap();
    }

    /// Lets time pass in steps, with a reading at each.
    fn pass(&mut self, seconds: f64) {
        let until = self.now + Nanos((seconds * 1e9) as u64);
        while self.now < until {
            self.now = until.min(self.now + Nanos::millis(100));
            self.broker.tick(self.now);
            self.read();
        }
    }

    /// A process that holds its lease by a connection of the same number.
    fn ask(&mut self, pid: u32, request: LeaseRequest) -> Say {
        let asker = Asker::Client(ClientId(u64::from(pid)));
        let process = Some(Process { pid, started: 7 });
        let said = self.broker.lease(self.now, &asker, process, request, format!("secret {pid}"));
        self.collect();
        said
    }

    fn do_(&mut self, pid: u32, request: Request) -> Say {
        let asker = Asker::Client(ClientId(u64::from(pid)));
        let said = self.broker.ask(self.now, &asker, Some(Process { pid, started: 7 }), request);
        self.collect();
        said
    }

    fn gone(&mut self, pid: u32) {
        self.uses.retain(|(user, _), _| *user != pid);
        self.broker.disconnect(self.now, ClientId(u64::from(pid)));
        self.collect();
    }

    /// What a connection has heard.
    fn told(&self, pid: u32) -> Vec<&Say> {
        let of = |effect: &'_ Effect| matches!(effect, Effect::Tell { client, .. } if client.0 == u64::from(pid));
        let said = self.heard.iter().filter(|effect| of(effect)).map(|effect| match effect {
            Effect::Tell { say, .. } => say,
            _ => unreachable!("only what was told"),
        });
        said.collect()
    }

    fn granted(&self, pid: u32) -> bool {
        self.told(pid).iter().any(|say| matches!(say, Say::Granted(_)))
    }

    fn promised(&self, device: usize) -> u64 {
        self.broker.state(self.now).devices[device].promised / MIB
    }

    fn line(&self, device: usize) -> u64 {
        self.broker.state(self.now).devices[device].line / MIB
    }

    fn events(&self, what: &str) -> usize {
        self.broker.events_since(0).filter(|event| event.what == what).count()
    }
}

/// A request for rungs of so many MiB, on one device.
fn wants(rungs: &[u64]) -> LeaseRequest {
    let rung = |(at, mib): (usize, &u64)| Rung { bytes: mib * MIB, quality: 1.0 - 0.2 * at as f64, switch_ms: 0 };
    LeaseRequest {
        name: "job".to_owned(),
        kind: crate::wire::Kind::Other,
        priority: crate::wire::Urgency::Normal,
        ladder: rungs.iter().enumerate().map(rung).collect(),
        devices: Vec::new(),
        timeout_ms: None,
        pinned: false,
        may_be_stopped: false,
        batch_items: 0,
        pid: None,
        ttl_ms: None,
    }
}

fn lease_of(said: &Say) -> LeaseId {
    match said {
        Say::Granted(granted) => granted.lease,
        Say::Queued(queued) => queued.lease,
        other => panic!("no lease: {other:?}"),
    }
}
