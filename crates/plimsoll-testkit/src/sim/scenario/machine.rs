//! The scheduler's limits, the devices, and what goes wrong on them.

use plimsoll_core::balancer::Strategy;
use plimsoll_core::line::Margin;
use plimsoll_core::rng::Rng;
use plimsoll_core::scheduler::Config;
use plimsoll_core::{Bytes, DeviceKind, Nanos, WorkloadId};

use super::Scenario;
use super::work::RUNGS;
use crate::sim::world::{Faults, VirtualGpu, World};

impl Scenario {
    pub(super) fn config(&mut self) -> Config {
        let rng = &mut self.rng;
        let strategy =
            if rng.chance(0.6) { Strategy::EarliestFinish } else { Strategy::ALL[rng.below(Strategy::ALL.len())] };
        Config {
            strategy,
            queue_limit: rng.within(12, 200) as usize,
            memory_wait_max: Nanos::millis(rng.within(300, 4_000)),
            device_wait_max: Nanos::seconds(rng.within(2, 61)),
            lookahead: [0, 4, 32][rng.below(3)],
            ..Config::default()
        }
    }

    /// A CPU pool, and some GPUs.
    pub(super) fn devices(&mut self) -> Vec<VirtualGpu> {
        let mut devices = vec![self.cpu()];
        for _ in 0..self.gpus {
            devices.push(self.gpu());
        }
        devices
    }

    fn cpu(&mut self) -> VirtualGpu {
        let rng = &mut self.rng;
        let memory = if rng.chance(0.2) { Bytes::mib(rng.within(64, 1_024)) } else { Bytes::gib(4) };
        let mut cpu = VirtualGpu::new(DeviceKind::Cpu, rng.within(1, 9) as usize, 1.0, memory);
        if rng.chance(0.5) {
            cpu.program = Some(memory.share(rng.below(30) as f64 / 100.0));
        }
        if self.habits.cpu_faults {
            cpu.faults = random_faults(rng);
            cpu.stall_after = Some(Nanos::seconds(1));
        }
        cpu
    }

    fn gpu(&mut self) -> VirtualGpu {
        let rng = &mut self.rng;
        let slots = rng.within(1, 4) as usize;
        let memory = Bytes::mib(rng.within(32, 2_048));
        let mut gpu = VirtualGpu::new(DeviceKind::Gpu, slots, rng.within(1, 40) as f64, memory);
        if rng.chance(0.4) {
            gpu.width_first = Some(rng.within(1, slots as u64 + 1) as usize);
            gpu.at_once = (1..=slots).map(|at_once| (at_once as f64).powf(rng.below(100) as f64 / 100.0)).collect();
        }
        if rng.chance(0.5) {
            let limit = rng.chance(0.3).then(|| Bytes::mib(rng.within(16, 1_024)));
            gpu.margin = Margin { share: rng.within(50, 101) as f64 / 100.0, limit };
        }
        gpu.stall_after = Some(Nanos::millis(rng.within(200, 2_000)));
        if self.habits.faults && rng.chance(0.7) {
            gpu.faults = random_faults(rng);
        }
        gpu
    }

    /// Some rungs really take more than their footprint says, some less.
    pub(super) fn surprise(&mut self, world: &mut World, workloads: &[WorkloadId]) {
        if !self.habits.peaks {
            return;
        }
        for &workload in workloads {
            for rung in RUNGS {
                let eighths = self.rng.within(3, 14);
                world.set_peak(workload, rung, eighths);
            }
        }
    }
}

fn random_faults(rng: &mut Rng) -> Faults {
    let unsupported = if rng.chance(0.15) { vec![RUNGS[rng.below(RUNGS.len())]] } else { Vec::new() };
    let mut rare = |most: f64| if rng.chance(0.4) { most * rng.below(100) as f64 / 100.0 } else { 0.0 };
    Faults {
        out_of_memory: rare(0.3),
        wrong_answer: rare(0.1),
        stall: rare(0.05),
        lost: rare(0.1),
        reopen_fails: rare(1.0),
        check_fails: rare(1.0),
        jitter: rare(3.0),
        unsupported,
    }
}
