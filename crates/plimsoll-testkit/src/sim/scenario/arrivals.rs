//! When tasks arrive: one by one, in known sets, in sequences, in crowds; which fail, and which are cancelled.

use plimsoll_core::task::ReferenceUse;
use plimsoll_core::{
    Bytes, ContentKey, DeviceKind, Footprint, Ladder, Moment, Nanos, Place, Rung, SequenceId, TaskSpec, WorkloadId,
};

use super::Scenario;
use super::work::RUNGS;
use crate::sim::world::{Cost, World};

/// Tasks in a set.
const SET: (u64, u64) = (4, 12);

impl Scenario {
    pub(super) fn fill(&mut self, world: &mut World, workloads: &[WorkloadId]) {
        let count = self.rng.within(10, 120) as usize;
        self.arrivals(world, workloads, count);
        if self.habits.crowd {
            self.crowd(world, workloads[0]);
        }
    }

    /// This many tasks, more or less, over some time.
    pub(super) fn arrivals(&mut self, world: &mut World, workloads: &[WorkloadId], count: usize) {
        let sequences = self.sequences(workloads);
        let references = self.references(count);
        let mut at = Moment::START;
        while world.tasks().len() < count {
            if self.rng.chance(0.5) {
                at = at + Nanos::micros(self.rng.within(1, 20_000));
            }
            let workload = workloads[self.rng.below(workloads.len())];
            if self.habits.sets && self.rng.chance(0.1) {
                self.set(world, at, workload, &references);
                continue;
            }
            let sequence = self.habits.sequences && self.rng.chance(0.3);
            let spec = if sequence {
                sequences[self.rng.below(sequences.len())].clone()
            } else {
                self.free_spec(workload, &references)
            };
            self.one(world, at, spec);
        }
    }

    fn one(&mut self, world: &mut World, at: Moment, mut spec: TaskSpec) {
        if self.habits.deadlines && self.rng.chance(0.15) {
            spec.deadline = Some(at + Nanos::millis(self.rng.within(1, 1_500)));
        }
        let predecessors = self.predecessors(world.tasks().len());
        let cost = self.cost(spec.units);
        let job = world.arrive(at, spec, cost, predecessors);
        self.spoil(world, at, job);
    }

    /// A known set with edges among its tasks.
    fn set(&mut self, world: &mut World, at: Moment, workload: WorkloadId, references: &[ContentKey]) {
        let size = self.rng.within(SET.0, SET.1);
        let mut set = Vec::new();
        for place in 0..size {
            let spec = self.free_spec(workload, references);
            let cost = self.cost(spec.units);
            let edges = if place > 0 && self.rng.chance(0.5) { self.rng.within(1, 3) } else { 0 };
            let after = (0..edges).map(|_| self.rng.within(0, place) as u32).collect();
            set.push((spec, cost, after));
        }
        for job in world.arrive_together(at, set) {
            self.spoil(world, at, job);
        }
    }

    /// Some work fails by itself, and some is no longer wanted.
    fn spoil(&mut self, world: &mut World, at: Moment, job: usize) {
        if self.rng.chance(0.04) {
            let panics = self.rng.chance(0.5);
            world.sabotage(job, panics);
        }
        if self.rng.chance(0.05) {
            let delay = Nanos::micros(self.rng.within(0, 500_000));
            world.cancel_at(at + delay, job);
        }
    }

    fn free_spec(&mut self, workload: WorkloadId, references: &[ContentKey]) -> TaskSpec {
        let mut spec = self.spec(workload);
        for _ in 0..self.rng.below(3) {
            let content = references[self.rng.below(references.len())];
            let is_new = spec.references.iter().all(|known| known.content != content);
            if is_new {
                spec.references.push(ReferenceUse { content, pinned: false });
            }
        }
        spec
    }

    pub(super) fn references(&mut self, count: usize) -> Vec<ContentKey> {
        let most = if self.habits.many_references { count.max(40) as u64 } else { 30 };
        (0..self.rng.within(1, most)).map(|at| ContentKey(u128::from(at))).collect()
    }

    fn predecessors(&mut self, job: usize) -> Vec<usize> {
        if job == 0 || !self.rng.chance(0.25) {
            return Vec::new();
        }
        (0..self.rng.within(1, 4)).map(|_| self.rng.below(job)).collect()
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

    /// A few tasks that need most of a device, among so many small ones that there is always one that fits.
    fn crowd(&mut self, world: &mut World, workload: WorkloadId) {
        let rung = |bytes| Rung::new(RUNGS[5], Place::On(DeviceKind::Gpu), Footprint::task(bytes));
        let (small, large) = (Bytes::mib(4), Bytes::mib(self.rng.within(24, 512)));
        let mut at = Moment::START;
        for which in 0..self.rng.within(100, 260) {
            let bytes = if which % 60 == 5 { large } else { small };
            let mut spec = TaskSpec::new(workload, Ladder::from(vec![rung(bytes)]), 1_000);
            spec.session.shape = bytes.0;
            at = at + Nanos::micros(self.rng.within(0, 1_000));
            let run = Nanos::micros(self.rng.within(5_000, 20_000));
            world.arrive(at, spec, Cost { gpu: run, ..Cost::default() }, Vec::new());
        }
    }
}
