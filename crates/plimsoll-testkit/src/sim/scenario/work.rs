//! Tasks: the ways to do them, what their callers allow, what they cost.

use plimsoll_core::task::{Priority, SessionShape};
use plimsoll_core::{
    Bytes, DeviceId, DeviceKind, DeviceSet, Footprint, Ladder, Nanos, Place, Quality, Rung, TaskSpec, WorkloadId,
};

use super::Scenario;
use crate::sim::world::Cost;

/// Every rung that a ladder here may have.
pub(super) const RUNGS: [&str; 6] = ["gpu-full", "gpu-strip", "gpu-half", "cpu", "cpu-half", "any"];

const PRIORITIES: [Priority; Priority::LEVELS] =
    [Priority::Background, Priority::Low, Priority::Normal, Priority::High, Priority::Critical];

impl Scenario {
    pub(super) fn spec(&mut self, workload: WorkloadId) -> TaskSpec {
        let units = self.rng.within(1, 5_000) * 1_000;
        let ladder = self.ladder(units);
        let mut spec = TaskSpec::new(workload, ladder, units);
        spec.session = SessionShape { params: self.rng.below(3) as u64, shape: units % 7 };
        spec.priority = PRIORITIES[self.rng.below(PRIORITIES.len())];
        if self.habits.lower_quality && self.rng.chance(0.6) {
            spec.quality_min = Quality::new(0.5);
        }
        if self.habits.picky {
            self.make_picky(&mut spec);
        }
        spec
    }

    /// The caller wants it done in one way, or in one place.
    fn make_picky(&mut self, spec: &mut TaskSpec) {
        match self.rng.below(6) {
            0 => spec.strict = true,
            1 => spec.rung = Some(spec.ladder.rungs()[self.rng.below(spec.ladder.rungs().len())].name),
            2 => spec.devices = (0..=self.gpus as u16).map(DeviceId).filter(|_| self.rng.chance(0.5)).collect(),
            3 => {
                spec.strict = true;
                spec.devices = DeviceSet::only(DeviceId(self.rng.below(self.gpus + 1) as u16));
            }
            _ => {}
        }
    }

    /// Full on the GPU, a strip on the GPU, at lower quality, on the CPU; or only some of it.
    fn ladder(&mut self, units: u64) -> Ladder {
        let full = Footprint {
            session: Bytes(units * self.rng.within(1, 30)),
            task: Bytes(units * self.rng.within(1, 60)),
            reference: Bytes(units * self.rng.within(1, 20)),
        };
        let strip =
            Footprint { session: eighth(full.session), task: eighth(full.task), reference: eighth(full.reference) };
        let (on_gpu, on_cpu) = (Place::On(DeviceKind::Gpu), Place::On(DeviceKind::Cpu));
        let [gpu_full, gpu_strip, gpu_half, cpu, cpu_half, any] = RUNGS;
        let gpu = [
            Rung::new(gpu_full, on_gpu, full),
            Rung::new(gpu_strip, on_gpu, strip),
            Rung::new(gpu_half, on_gpu, strip).with_quality(Quality::new(0.5)),
        ];
        let cpu = Rung::new(cpu, on_cpu, strip);
        match self.rng.below(8) {
            0 => Ladder::from(vec![Rung::new(any, Place::Anywhere, strip)]),
            1 => Ladder::from(vec![
                gpu[0].clone(),
                cpu,
                Rung::new(cpu_half, on_cpu, strip).with_quality(Quality::new(0.5)),
            ]),
            2 => Ladder::from(gpu[..2].to_vec()),
            _ => Ladder::from(gpu.into_iter().chain([cpu]).collect::<Vec<_>>()),
        }
    }

    pub(super) fn cost(&mut self, units: u64) -> Cost {
        let per_unit = self.rng.within(1, 50);
        Cost {
            cpu: Nanos(units * per_unit),
            gpu: Nanos(units * self.rng.within(1, 60)),
            open: Nanos::micros(self.rng.within(0, 20_000)),
            bring: Nanos::micros(self.rng.within(0, 5_000)),
        }
    }
}

/// In whole eighths again, so that peaks in eighths of a footprint are exact.
fn eighth(bytes: Bytes) -> Bytes {
    Bytes(bytes.0 / 64 * 8)
}
