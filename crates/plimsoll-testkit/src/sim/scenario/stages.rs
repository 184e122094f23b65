//! Items that go through stages: how many, what each leaves for the next, who reads it, and who does not.
//! Draws from numbers of its own, so that a seed's other work and faults are the same with and without them.

use plimsoll_core::rng::Rng;
use plimsoll_core::task::SessionShape;
use plimsoll_core::{
    Bytes, DeviceId, DeviceKind, Footprint, Ladder, Moment, Nanos, Place, Priority, Rung, TaskSpec, WorkloadId,
};

use super::work::RUNGS;
use crate::sim::world::{Cost, World};

const PRIORITIES: [Priority; 5] =
    [Priority::Background, Priority::Low, Priority::Normal, Priority::High, Priority::Critical];

/// How often all stages of an item are handed in before the first has begun.
const AHEAD: f64 = 0.3;

/// The items of a seed.
pub(super) struct Stages {
    rng: Rng,
    devices: usize,
    faults: bool,
}

impl Stages {
    /// Nearly half of the seeds have some.
    pub(super) fn draw(seed: u64, devices: usize) -> Option<Self> {
        let mut rng = Rng::new(seed ^ 0x7374_6167_6573);
        let some = rng.chance(0.45);
        let faults = rng.chance(0.5);
        some.then_some(Self { rng, devices, faults })
    }

    pub(super) fn fill(&mut self, world: &mut World) {
        let workload = world.scheduler().register("stage");
        let kinds: Vec<Kind> = (0..self.rng.within(1, 4)).map(|_| self.kind()).collect();
        let mut at = Moment::START;
        for _ in 0..self.rng.within(2, 25) {
            at = at + Nanos::micros(self.rng.within(0, 40_000));
            self.item(world, at, workload, &kinds);
        }
        for device in 0..self.devices as u16 {
            if self.faults && self.rng.chance(0.4) {
                let at = Moment(Nanos::micros(self.rng.within(0, 600_000)).0);
                world.lose_at(at, DeviceId(device));
            }
        }
    }

    /// What a stage looks like. Few kinds, so that sessions are shared and tasks stand behind each other.
    fn kind(&mut self) -> Kind {
        let units = self.rng.within(1, 1_000) * 1_000;
        let size = |rng: &mut Rng| Bytes(units * rng.within(1, 20) * 8);
        Kind { units, session: size(&mut self.rng), task: size(&mut self.rng), value: size(&mut self.rng) }
    }

    /// Mostly one stage after the other; sometimes two read what one made, and the last reads both.
    fn item(&mut self, world: &mut World, at: Moment, workload: WorkloadId, kinds: &[Kind]) {
        let count = self.rng.within(1, 5) as usize;
        let forks = count == 4 && self.rng.chance(0.5);
        let priority = PRIORITIES[self.rng.below(PRIORITIES.len())];
        let mut stages = Vec::new();
        for place in 0..count {
            let kind = kinds[self.rng.below(kinds.len())];
            let is_last = place + 1 == count;
            let keeps = !is_last || self.rng.chance(0.3);
            let mut spec = TaskSpec::new(workload, self.ladder(kind, keeps), kind.units);
            spec.session = SessionShape { params: 0, shape: kind.units };
            spec.priority = priority;
            let takes = match place {
                0 => Vec::new(),
                2 if forks => vec![0],
                3 if forks => vec![1, 2],
                _ => vec![place - 1],
            };
            stages.push((spec, self.cost(kind.units), takes));
        }
        let jobs = world.arrive_in_stages(at, stages);
        if self.rng.chance(AHEAD) {
            world.claim_values_of(&jobs);
        }
        self.spoil(world, at, &jobs);
    }

    /// On a GPU or, worse, the CPU; or on either alone; or anywhere.
    fn ladder(&mut self, kind: Kind, keeps: bool) -> Ladder {
        let footprint = Footprint { session: kind.session, task: kind.task, reference: Bytes::ZERO };
        let value = if keeps { kind.value } else { Bytes::ZERO };
        let rung = |name, place| Rung::new(name, place, footprint).with_value(value);
        let [gpu, .., cpu, _, any] = RUNGS;
        let (gpu, cpu) = (rung(gpu, Place::On(DeviceKind::Gpu)), rung(cpu, Place::On(DeviceKind::Cpu)));
        Ladder::from(match self.rng.below(5) {
            0 => vec![gpu],
            1 => vec![cpu],
            2 => vec![rung(any, Place::Anywhere)],
            _ => vec![gpu, cpu],
        })
    }

    fn cost(&mut self, units: u64) -> Cost {
        Cost {
            cpu: Nanos(units * self.rng.within(1, 50)),
            gpu: Nanos(units * self.rng.within(1, 100)),
            open: Nanos::micros(self.rng.within(0, 5_000)),
            bring: Nanos::micros(self.rng.within(0, 20_000)),
        }
    }

    /// Some stages fail, some are cancelled, some have a deadline; some that nobody reads are given up at once.
    fn spoil(&mut self, world: &mut World, at: Moment, jobs: &[usize]) {
        for &job in jobs {
            if self.rng.chance(0.03) {
                let panics = self.rng.chance(0.5);
                world.sabotage(job, panics);
            }
            if self.rng.chance(0.1) {
                world.cancel_at(at + Nanos::micros(self.rng.within(0, 400_000)), job);
            }
            if self.rng.chance(0.05) {
                world.set_deadline(job, at + Nanos::millis(self.rng.within(1, 1_500)));
            }
        }
        if let Some(&last) = jobs.last().filter(|_| self.rng.chance(0.5)) {
            world.give_up_value_of(last);
        }
    }
}

#[derive(Copy, Clone)]
struct Kind {
    units: u64,
    session: Bytes,
    task: Bytes,
    value: Bytes,
}
