//! A random box with random work and random faults, from a seed.
//! Never draws from anything but the seed's rng.

use plimsoll_core::balancer::Strategy;
use plimsoll_core::rng::Rng;
use plimsoll_core::scheduler::Config;
use plimsoll_core::task::{Priority, ReferenceUse, SessionShape};
use plimsoll_core::{
    Bytes, ContentKey, DeviceId, DeviceKind, Footprint, Ladder, Moment, Nanos, Place, Quality, Rung, SequenceId,
    TaskSpec, WorkloadId,
};

use super::world::{Cost, Faults, VirtualGpu, World};

const PRIORITIES: [Priority; Priority::LEVELS] =
    [Priority::Background, Priority::Low, Priority::Normal, Priority::High, Priority::Critical];

/// What a seed stands for.
pub struct Scenario {
    rng: Rng,
    gpus: usize,
    /// Whether a task may end for want of a device or memory.
    hostile: bool,
}

impl Scenario {
    /// The scenario of this seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let gpus = rng.below(5);
        let hostile = rng.chance(0.2);
        Self { rng, gpus, hostile }
    }

    /// Whether tasks may fail for want of a device: if not, every task that can succeed must.
    pub fn is_hostile(&self) -> bool {
        self.hostile
    }

    /// The box with all its work, ready to run.
    pub fn build(&mut self, seed: u64) -> World {
        let config = self.config();
        let devices = self.devices();
        let mut world = World::new(config, devices, seed);
        world.set_bites(0.2);
        let workloads: Vec<WorkloadId> =
            ["score", "frame", "block"].map(|name| world.scheduler().register(name)).into();
        self.fill(&mut world, &workloads);
        self.disturb(&mut world);
        world
    }

    fn config(&mut self) -> Config {
        let strategy = if self.rng.chance(0.6) {
            Strategy::EarliestFinish
        } else {
            Strategy::ALL[self.rng.below(Strategy::ALL.len())]
        };
        let queue_limit = self.rng.within(4, 200) as usize;
        Config { strategy, queue_limit, memory_wait_max: Nanos::seconds(2), ..Config::default() }
    }

    /// One CPU pool that always works, so that there is a last rung, and some GPUs that may not.
    fn devices(&mut self) -> Vec<VirtualGpu> {
        let rng = &mut self.rng;
        let cpu = VirtualGpu::new(DeviceKind::Cpu, rng.within(1, 9) as usize, 1.0, Bytes::gib(4));
        let mut devices = vec![cpu];
        for _ in 0..self.gpus {
            let slots = rng.within(1, 4) as usize;
            let memory = Bytes::mib(rng.within(32, 2_048));
            let mut gpu = VirtualGpu::new(DeviceKind::Gpu, slots, rng.within(1, 40) as f64, memory);
            if rng.chance(0.4) {
                gpu.width_first = Some(rng.within(1, slots as u64 + 1) as usize);
                gpu.at_once = (1..=slots).map(|at_once| (at_once as f64).powf(rng.below(100) as f64 / 100.0)).collect();
            }
            gpu.stall_after = Some(Nanos::millis(rng.within(200, 2_000)));
            if rng.chance(0.6) {
                gpu.faults = random_faults(rng);
            }
            devices.push(gpu);
        }
        if self.hostile {
            devices[0].faults = random_faults(&mut self.rng);
            devices[0].stall_after = Some(Nanos::seconds(1));
        }
        devices
    }

    /// What all tasks of one sequence look like: equal, so that a device that took one can take the next.
    fn sequences(&mut self, workloads: &[WorkloadId]) -> Vec<TaskSpec> {
        let count = self.rng.within(1, 4);
        let specs = (0..count).map(|id| {
            let workload = workloads[self.rng.below(workloads.len())];
            TaskSpec { sequence: Some(SequenceId(id)), ..self.spec(workload) }
        });
        specs.collect()
    }

    fn fill(&mut self, world: &mut World, workloads: &[WorkloadId]) {
        world.watch_sequences();
        let sequences = self.sequences(workloads);
        let count = self.rng.within(10, 120) as usize;
        let references: Vec<ContentKey> = (0..self.rng.within(1, 60)).map(|at| ContentKey(u128::from(at))).collect();
        let mut at = Moment::START;
        for job in 0..count {
            if self.rng.chance(0.5) {
                at = at + Nanos::micros(self.rng.within(1, 20_000));
            }
            let workload = workloads[self.rng.below(workloads.len())];
            let mut spec = self.spec(workload);
            let in_sequence = self.rng.chance(0.25);
            if in_sequence {
                spec = sequences[self.rng.below(sequences.len())].clone();
            }
            if !in_sequence && self.rng.chance(0.5) {
                let content = references[self.rng.below(references.len())];
                spec.references.push(ReferenceUse { content, pinned: self.rng.chance(0.1) });
            }
            let predecessors = self.predecessors(job);
            let cost = self.cost(spec.units);
            if self.rng.chance(0.05) {
                spec.deadline = Some(at + Nanos::millis(self.rng.within(1, 500)));
            }
            let arrived = world.arrive(at, spec, cost, predecessors);
            if self.rng.chance(0.04) {
                let panics = self.rng.chance(0.5);
                world.sabotage(arrived, panics);
            }
            if self.rng.chance(0.05) {
                let delay = Nanos::micros(self.rng.within(0, 500_000));
                world.cancel_at(at + delay, arrived);
            }
        }
    }

    fn predecessors(&mut self, job: usize) -> Vec<usize> {
        if job == 0 || !self.rng.chance(0.25) {
            return Vec::new();
        }
        (0..self.rng.within(1, 4)).map(|_| self.rng.below(job)).collect()
    }

    fn spec(&mut self, workload: WorkloadId) -> TaskSpec {
        let units = self.rng.within(1, 5_000) * 1_000;
        let ladder = self.ladder(units);
        let mut spec = TaskSpec::new(workload, ladder, units);
        spec.session = SessionShape { params: self.rng.below(3) as u64, shape: units % 7 };
        spec.priority = PRIORITIES[self.rng.below(PRIORITIES.len())];
        if self.rng.chance(0.2) {
            spec.quality_min = Quality::new(0.5);
        }
        if self.hostile && self.rng.chance(0.2) {
            spec.strict = true;
        }
        spec
    }

    /// Full on the GPU, a strip on the GPU, at lower quality on the GPU, on the CPU.
    fn ladder(&mut self, units: u64) -> Ladder {
        let full = Footprint {
            session: Bytes(units * self.rng.within(1, 30)),
            task: Bytes(units * self.rng.within(1, 60)),
            reference: Bytes(units * self.rng.within(1, 20)),
        };
        let eighth = |bytes: Bytes| Bytes(bytes.0 / 8);
        let strip =
            Footprint { session: eighth(full.session), task: eighth(full.task), reference: eighth(full.reference) };
        let gpu = Place::On(DeviceKind::Gpu);
        Ladder::from(vec![
            Rung::new("gpu-full", gpu, full),
            Rung::new("gpu-strip", gpu, strip),
            Rung::new("gpu-half", gpu, strip).with_quality(Quality::new(0.5)),
            Rung::new("cpu", Place::On(DeviceKind::Cpu), strip),
        ])
    }

    fn cost(&mut self, units: u64) -> Cost {
        let per_unit = self.rng.within(1, 50);
        Cost {
            cpu: Nanos(units * per_unit),
            gpu: Nanos(units * self.rng.within(1, 60)),
            open: Nanos::micros(self.rng.within(0, 20_000)),
            bring: Nanos::micros(self.rng.within(0, 5_000)),
        }
    }

    /// Other programs come and go; a card is pulled.
    fn disturb(&mut self, world: &mut World) {
        for gpu in 1..=self.gpus as u16 {
            for _ in 0..self.rng.below(4) {
                let at = Moment(Nanos::millis(self.rng.within(0, 800)).0);
                let bytes = Bytes::mib(self.rng.within(0, 1_024));
                world.others_at(at, DeviceId(gpu), bytes);
            }
            if self.rng.chance(0.2) {
                let at = Moment(Nanos::millis(self.rng.within(0, 400)).0);
                world.lose_at(at, DeviceId(gpu));
            }
        }
    }
}

fn random_faults(rng: &mut Rng) -> Faults {
    let mut rare = |most: f64| if rng.chance(0.4) { most * rng.below(100) as f64 / 100.0 } else { 0.0 };
    Faults {
        out_of_memory: rare(0.3),
        wrong_answer: rare(0.1),
        stall: rare(0.05),
        lost: rare(0.1),
        reopen_fails: rare(1.0),
        jitter: rare(3.0),
    }
}
