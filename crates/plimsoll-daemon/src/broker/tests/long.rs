//! A long time, and many steps: never past the line, nobody starves, nothing grows.

use plimsoll_core::rng::Rng;

use super::*;
use crate::broker::{EVENTS_MAX, SAMPLES_MAX};
use crate::wire::{Kind, Phase, Urgency};

const URGENCIES: [Urgency; 5] = [Urgency::Background, Urgency::Low, Urgency::Normal, Urgency::High, Urgency::Critical];
const KINDS: [Kind; 5] = [Kind::Llm, Kind::Image, Kind::Video, Kind::Batch, Kind::Other];

/// Programs that come, do as they are asked (or do not), and go.
struct Crowd {
    world: World,
    rng: Rng,
    next_pid: u32,
    /// Who is there: since when it waits, its lease, its ladder, and whether it does as it is asked.
    there: BTreeMap<u32, (LeaseId, Vec<u64>, bool)>,
}

impl Crowd {
    fn new(seed: u64, devices: usize) -> Self {
        Self { world: World::new(devices), rng: Rng::new(seed), next_pid: 1_000, there: BTreeMap::new() }
    }

    fn step(&mut self) {
        match self.rng.below(10) {
            0..=2 if self.there.len() < 40 => self.come(),
            3 => self.go(),
            4 => self.change_priority(),
            5 => self.kill(),
            _ => {}
        }
        self.do_as_asked();
        let seconds = self.rng.within(1, 20) as f64 / 10.0;
        self.world.pass(seconds);
        self.check();
    }

    fn come(&mut self) {
        self.next_pid += 1;
        let pid = self.next_pid;
        let most = self.rng.within(50, 900);
        let ladder: Vec<u64> = match self.rng.below(3) {
            0 => vec![most],
            1 => vec![most, most / 2],
            _ => vec![most, most * 2 / 3, most / 3],
        };
        let devices = match self.rng.below(4) {
            0 => vec!["gpu0".to_owned(), "gpu1".to_owned()],
            1 => vec!["gpu1".to_owned()],
            _ => Vec::new(),
        };
        let request = LeaseRequest {
            name: format!("p{pid}"),
            kind: KINDS[self.rng.below(5)],
            priority: URGENCIES[self.rng.below(5)],
            devices,
            may_be_stopped: self.rng.chance(0.5),
            pinned: self.rng.chance(0.02),
            batch_items: if self.rng.chance(0.2) { 5 } else { 0 },
            ..wants(&ladder)
        };
        let said = self.world.ask(pid, request);
        if let Say::Granted(_) | Say::Queued(_) = said {
            let obeys = self.rng.chance(0.9);
            self.there.insert(pid, (lease_of(&said), ladder, obeys));
        }
    }

    fn some(&mut self) -> Option<u32> {
        let at = self.rng.below(self.there.len().max(1));
        self.there.keys().nth(at).copied()
    }

    fn go(&mut self) {
        let Some(pid) = self.some() else { return };
        let (lease, ..) = self.there.remove(&pid).unwrap();
        self.world.do_(pid, Request::Return { lease });
        self.world.uses.retain(|(user, _), _| *user != pid);
    }

    fn kill(&mut self) {
        let Some(pid) = self.some() else { return };
        self.there.remove(&pid);
        self.world.gone(pid);
    }

    fn change_priority(&mut self) {
        let Some(pid) = self.some() else { return };
        let (lease, priority) = (self.there[&pid].0, URGENCIES[self.rng.below(5)]);
        self.world.do_(pid, Request::SetPriority { lease, priority });
    }

    /// Holders use what they were promised, step down, leave, rise, and end when they are stopped.
    fn do_as_asked(&mut self) {
        for effect in std::mem::take(&mut self.world.heard) {
            match effect {
                Effect::Tell { client, say } => self.hear(client.0 as u32, say),
                Effect::Stop { process, how: crate::process::Stop::Kill, .. } => {
                    self.there.remove(&process.pid);
                    self.world.gone(process.pid);
                }
                _ => {}
            }
        }
        let holders = self.world.broker.state(self.world.now).holders;
        for holder in holders.iter().filter(|holder| holder.phase == Phase::Held) {
            let Some(pid) = holder.pid.filter(|pid| self.there.contains_key(pid)) else { continue };
            for portion in &holder.portions {
                let device = if portion.device == "gpu0" { 0 } else { 1 };
                self.world.uses.insert((pid, device), portion.promised / MIB);
            }
        }
    }

    fn hear(&mut self, pid: u32, say: Say) {
        let Some((lease, ladder, obeys)) = self.there.get(&pid).cloned() else { return };
        match say {
            Say::Recall(recall) if obeys => match recall.rung {
                Some(rung) => {
                    let used = |mib: &mut u64| *mib = (*mib).min(ladder[rung]);
                    self.world.uses.iter_mut().filter(|((user, _), _)| *user == pid).for_each(|(_, mib)| used(mib));
                    self.world.do_(pid, Request::Stepped { lease, rung });
                }
                None => {
                    self.there.remove(&pid);
                    self.world.do_(pid, Request::Return { lease });
                    self.world.uses.retain(|(user, _), _| *user != pid);
                }
            },
            Say::MayRise { rung, .. } if self.world.do_(pid, Request::Rise { lease, rung }) == Say::Done => {
                self.world.do_(pid, Request::Stepped { lease, rung });
            }
            Say::Refused { .. } | Say::Ended { .. } => drop(self.there.remove(&pid)),
            _ => {}
        }
    }

    /// Never past the line, and everybody who waits has an end.
    fn check(&mut self) {
        let state = self.world.broker.state(self.world.now);
        for device in &state.devices {
            assert!(device.promised <= device.line, "{} of {}", device.promised / MIB, device.line / MIB);
            assert!(device.used <= device.capacity);
        }
        for waiting in &state.queue {
            let waited = state.at_ms - waiting.since_ms;
            assert!(waited <= 485_000, "{} waits for {waited} ms: {}", waiting.name, waiting.reason);
        }
        self.world.broker.drain_changed();
    }
}

#[test]
fn ten_thousand_steps() {
    for seed in [1, 2, 3, 4] {
        let mut crowd = Crowd::new(seed, 2);
        for _ in 0..2_500 {
            crowd.step();
        }
        let granted = crowd.world.events("granted");
        assert!(granted > 50, "seed {seed}: only {granted} of the last events are grants");
        // Everybody goes: nothing is left.
        for pid in crowd.there.keys().copied().collect::<Vec<_>>() {
            crowd.world.gone(pid);
        }
        crowd.world.uses.clear();
        crowd.world.pass(30.0);
        let state = crowd.world.broker.state(crowd.world.now);
        assert!(state.holders.is_empty() && state.queue.is_empty(), "seed {seed}: {state:?}");
        assert!(state.devices.iter().all(|device| device.promised == 0), "seed {seed}: {state:?}");
    }
}

#[test]
fn a_day_does_not_grow() {
    let mut world = World::new(1);
    for hour in 0..24 {
        for minute in 0..60 {
            let pid = 1_000 + minute;
            let lease = lease_of(&world.ask(pid, wants(&[600])));
            world.uses.insert((pid, 0), 600);
            for _ in 0..3 {
                world.now = world.now + Nanos::seconds(20);
                world.broker.tick(world.now);
                world.read();
            }
            world.uses.clear();
            world.do_(pid, Request::Return { lease });
            world.read();
            world.broker.drain_changed();
            world.heard.clear();
        }
        let broker = &world.broker;
        assert!(broker.leases.is_empty() && broker.by_grant.is_empty() && broker.returning.is_empty(), "hour {hour}");
        assert!(broker.events.len() <= EVENTS_MAX && broker.changed.is_empty() && broker.warnings.is_empty());
        assert!(broker.devices[0].samples.len() <= SAMPLES_MAX);
    }
    assert_eq!(world.broker.devices[0].samples.len(), SAMPLES_MAX, "and the limits were reached");
    assert_eq!(world.broker.events.len(), EVENTS_MAX);
}
