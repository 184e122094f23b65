//! How an attempt goes wrong: drawn before it starts, unseen by the scheduler.
//! Never more than one thing at a time.

use plimsoll_core::{Bytes, DeviceId, DeviceKind, Fault, MemoryMoment, Moment, Nanos};

use super::{Errand, Happening, World};
use crate::sim::truth::Allocation;

/// A part of an attempt.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Open,
    Prepare(usize),
    /// Copies a value from where it lies.
    Fetch(usize),
    Run,
}

impl Stage {
    fn memory_moment(self) -> MemoryMoment {
        match self {
            Self::Open | Self::Prepare(_) | Self::Fetch(_) => MemoryMoment::Open,
            Self::Run => MemoryMoment::Run,
        }
    }
}

/// What goes wrong in an attempt, and where.
#[derive(Clone, Debug)]
pub(super) struct Mishap {
    stage: Stage,
    /// How it fails there; `None` if it only takes long.
    fault: Option<Fault>,
    /// How much longer it takes there: long after everyone has stopped waiting.
    pub(super) hang: Nanos,
}

impl World {
    /// What an attempt at these stages meets, if anything.
    pub(super) fn draw_mishap(
        &mut self,
        device: DeviceId,
        (job, errand): (usize, Errand),
        rung: &'static str,
        stages: &[Stage],
    ) -> Option<Mishap> {
        let faults = self.devices[device.index()].gpu.faults.clone();
        let fails = |stage, fault| Some(Mishap { stage, fault: Some(fault), hang: Nanos::ZERO });
        if faults.unsupported.contains(&rung) {
            return fails(stages[0], Fault::Unsupported { detail: "simulated".into() });
        }
        // Whoever only takes out what a session holds does none of the task's work.
        let does_work = errand != Errand::Leave;
        if self.tasks[job].fails && does_work {
            return fails(Stage::Run, Fault::work(format!("work {job}")));
        }
        if self.tasks[job].panics && does_work {
            return fails(Stage::Run, Fault::Panicked { message: format!("work {job}") });
        }
        let anywhere = stages[self.rng.below(stages.len())];
        if self.rng.chance(faults.out_of_memory) {
            return fails(anywhere, Fault::OutOfMemory { moment: anywhere.memory_moment(), wanted: Bytes(1) });
        }
        if self.rng.chance(faults.wrong_answer) {
            return fails(Stage::Run, Fault::WrongAnswer { detail: "simulated".into() });
        }
        if self.rng.chance(faults.stall) {
            let hang = Nanos::seconds(self.rng.within(20, 200));
            return Some(Mishap { stage: anywhere, fault: None, hang });
        }
        None
    }

    /// How long the task runs, and perhaps its device goes away meanwhile.
    pub(super) fn draw_run_time(&mut self, device: DeviceId, job: usize) -> Nanos {
        let state = &self.devices[device.index()];
        let base = match state.gpu.kind {
            DeviceKind::Cpu => self.tasks[job].cost.cpu,
            DeviceKind::Gpu => self.tasks[job].cost.gpu,
        };
        let (jitter, lost, generation) = (state.gpu.faults.jitter, state.gpu.faults.lost, state.generation);
        let mut took = base.scaled(state.crowding() / state.gpu.speed);
        if jitter > 0.0 {
            took = took.scaled(1.0 + jitter * self.rng.below(1000) as f64 / 1000.0);
        }
        if self.rng.chance(lost) {
            let at = self.now + Nanos(self.rng.within(1, took.0.max(2)));
            self.plan(at, Happening::Lose(device, generation));
        }
        took
    }

    /// One stage of an attempt: when it is over, and the bytes it holds from then on or how it failed.
    pub(super) fn play_stage(
        &self,
        device: DeviceId,
        stage: Stage,
        begins: Moment,
        (takes, bytes): (Nanos, Bytes),
        mishap: Option<&Mishap>,
    ) -> (Moment, Result<Allocation, Fault>) {
        let state = &self.devices[device.index()];
        let here = mishap.filter(|mishap| mishap.stage == stage);
        if state.is_lost {
            return (begins + Nanos::micros(10), Err(Fault::DeviceLost { detail: "simulated".into() }));
        }
        if bytes > state.physically_free() {
            let fault = Fault::OutOfMemory { moment: stage.memory_moment(), wanted: bytes };
            return (begins + takes.scaled(0.3), Err(fault));
        }
        match here.and_then(|here| here.fault.clone()) {
            Some(fault @ Fault::OutOfMemory { .. }) => (begins + takes.scaled(0.3), Err(fault)),
            Some(fault) => (begins + takes, Err(fault)),
            None => (begins + takes + here.map_or(Nanos::ZERO, |here| here.hang), Ok(state.account.allocate(bytes))),
        }
    }
}
