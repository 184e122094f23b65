//! Sequences that own their session: how many tasks, which drain, when they are asked to step down, and when they close.
//! Draws from numbers of its own, so that a seed's other work and faults are the same with and without them.

use plimsoll_core::rng::Rng;
use plimsoll_core::task::SessionShape;
use plimsoll_core::{
    Bytes, DeviceId, DeviceKind, Footprint, Ladder, Moment, Nanos, Place, Priority, Rung, SequenceId, TaskSpec,
    WorkloadId,
};

use super::work::RUNGS;
use crate::sim::world::{Cost, World};

const PRIORITIES: [Priority; 5] =
    [Priority::Background, Priority::Low, Priority::Normal, Priority::High, Priority::Critical];

/// The held sequences of a seed.
pub(super) struct Holds {
    rng: Rng,
    devices: usize,
}

impl Holds {
    /// Two seeds in five have some.
    pub(super) fn draw(seed: u64, devices: usize) -> Option<Self> {
        let mut rng = Rng::new(seed ^ 0x0068_6f6c_6473);
        rng.chance(0.4).then_some(Self { rng, devices })
    }

    pub(super) fn fill(&mut self, world: &mut World) {
        let workload = world.scheduler().register("held");
        for _ in 0..self.rng.within(1, 4) {
            let latest = if self.rng.chance(0.3) { 1_500 } else { 20_000 };
            let until = self.soon(latest);
            let (holder, sequence) = world.hold_until(until);
            self.sequence(world, workload, sequence);
            for _ in 0..self.rng.below(3) {
                let (at, rung) = (self.soon(1_200), self.rng.below(3));
                world.recall_session_at(at, holder, rung);
            }
        }
        if self.rng.chance(0.4) {
            let (at, device) = (self.soon(800), DeviceId(self.rng.below(self.devices) as u16));
            world.lose_at(at, device);
        }
    }

    fn soon(&mut self, millis: u64) -> Moment {
        Moment(Nanos::micros(self.rng.within(0, millis * 1_000)).0)
    }

    fn sequence(&mut self, world: &mut World, workload: WorkloadId, sequence: SequenceId) {
        let units = self.rng.within(1, 500) * 1_000;
        let ladder = self.ladder(units);
        let shape = SessionShape { params: 0, shape: units % 3 };
        let drains = [0.0, 0.1, 0.4][self.rng.below(3)];
        let mut at = Moment::START;
        for _ in 0..self.rng.within(1, 30) {
            at = at + Nanos::micros(self.rng.within(0, 60_000));
            let mut spec = TaskSpec::new(workload, ladder.clone(), units);
            spec.session = shape;
            (spec.sequence, spec.holds) = (Some(sequence), true);
            spec.drains = self.rng.chance(drains);
            spec.priority = PRIORITIES[self.rng.below(PRIORITIES.len())];
            let cost = Cost {
                cpu: Nanos(units * self.rng.within(1, 60)),
                gpu: Nanos(units * self.rng.within(1, 100)),
                open: Nanos::micros(self.rng.within(0, 20_000)),
                bring: Nanos::ZERO,
            };
            if self.rng.chance(0.03) {
                spec.deadline = Some(at + Nanos::millis(self.rng.within(1, 1_000)));
            }
            let job = world.arrive(at, spec, cost, Vec::new());
            if self.rng.chance(0.03) {
                let panics = self.rng.chance(0.5);
                world.sabotage(job, panics);
            }
            if self.rng.chance(0.05) {
                world.cancel_at(at + Nanos::micros(self.rng.within(0, 300_000)), job);
            }
        }
    }

    /// Two pools on a GPU, or one, or none at all on the CPU.
    fn ladder(&mut self, units: u64) -> Ladder {
        let (pool, task) = (units * self.rng.within(1, 20) * 8, units * self.rng.within(1, 20) * 8);
        let rung = |name, kind, session| {
            let footprint = Footprint { session: Bytes(session), task: Bytes(task), reference: Bytes::ZERO };
            Rung::new(name, Place::On(kind), footprint)
        };
        let [full, strip, _, cpu, ..] = RUNGS;
        let all = [
            rung(full, DeviceKind::Gpu, 2 * pool),
            rung(strip, DeviceKind::Gpu, pool),
            rung(cpu, DeviceKind::Cpu, pool),
        ];
        let skip = self.rng.below(4) % 3;
        Ladder::from(all[skip..].to_vec())
    }
}
