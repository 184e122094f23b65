//! A held session whose answer depends on every task before and on their order, recalled while it works, and lost.

use std::any::Any;
use std::collections::VecDeque;
use std::time::Duration;

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung, TaskError};
use plimsoll_runtime::{
    Access, Backend, Buffer, Context, Fence, FenceState, Held, Kernel, Launch, Session, Task, Twin, Workload,
};
use plimsoll_testkit::patience::in_time;

use crate::{gpus, orchestrator};

/// Sums that are kept on the device.
const LANES: usize = 64;
const LONG: Duration = Duration::from_secs(60);

static FOLD: Kernel = Kernel {
    name: "fold",
    wgsl: "struct Params { add: u32, a: u32, b: u32, c: u32 }
        @group(0) @binding(0) var<storage, read_write> sums: array<u32>;
        @group(0) @binding(1) var<uniform> params: Params;
        @compute @workgroup_size(64)
        fn fold_in(@builtin(global_invocation_id) id: vec3<u32>) {
            sums[id.x] = sums[id.x] * 31u + params.add + id.x;
        }",
    entry: "fold_in",
    bindings: &[Access::Write],
    params: 16,
    twin: |twin: &mut Twin<'_>| {
        let [add, ..] = twin.params::<[u32; 4]>();
        for (lane, sum) in (0..).zip(twin.words_mut(0)) {
            *sum = sum.wrapping_mul(31).wrapping_add(add).wrapping_add(lane);
        }
    },
};

/// What the sums are after these, worked out without a device.
fn expected(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    numbers.fold(vec![0; LANES], |sums, add| {
        (0..)
            .zip(sums)
            .map(|(lane, sum): (u32, u32)| sum.wrapping_mul(31).wrapping_add(add).wrapping_add(lane))
            .collect()
    })
}

struct Folding;

#[derive(Clone, Copy)]
enum Step {
    Fold(u32),
    Read,
    Fail,
}

struct Sums {
    buffer: Buffer,
    depth: usize,
    kicked: VecDeque<Fence>,
}

impl Sums {
    fn open(rung: &Rung, sums: &[u32], backend: &mut dyn Backend) -> Result<Box<dyn Session<Folding>>, Fault> {
        let buffer = backend.allocate(Bytes(4 * LANES as u64))?;
        backend.write(&buffer, Bytes::ZERO, bytemuck::cast_slice(sums))?;
        let depth = if rung.name == "depth 2" { 2 } else { 1 };
        Ok(Box::new(Self { buffer, depth, kicked: VecDeque::new() }))
    }

    /// Waits until at most so many pieces are under way.
    fn drain(&mut self, left: usize, backend: &mut dyn Backend) -> Result<(), Fault> {
        while self.kicked.len() > left {
            let oldest = self.kicked.pop_front().expect("there are more than that");
            if backend.wait(&oldest, LONG)? != FenceState::Done {
                return Err(Fault::work("a piece of work takes for ever"));
            }
        }
        Ok(())
    }

    fn read(&mut self, backend: &mut dyn Backend) -> Result<Vec<u32>, Fault> {
        self.drain(0, backend)?;
        let mut sums = vec![0; LANES];
        backend.read(&self.buffer, Bytes::ZERO, bytemuck::cast_slice_mut(&mut sums))?;
        Ok(sums)
    }
}

impl Workload for Folding {
    type Input = Step;
    type Reference = ();
    type Prepared = ();
    type Output = Vec<u32>;

    fn name(&self) -> &str {
        "folding"
    }

    fn ladder(&self, _: &Step) -> Ladder {
        let rung = |name, kind, session| {
            let footprint = Footprint { session: Bytes(session), task: Bytes::ZERO, reference: Bytes::ZERO };
            Rung::new(name, Place::On(kind), footprint)
        };
        Ladder::from(vec![
            rung("depth 2", DeviceKind::Gpu, 1024),
            rung("depth 1", DeviceKind::Gpu, 512),
            rung("cpu", DeviceKind::Cpu, 512),
        ])
    }

    fn open(&self, rung: &Rung, _: &Step, backend: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Sums::open(rung, &[0; LANES], backend)
    }

    fn resume(
        &self,
        rung: &Rung,
        _: &Step,
        state: &(dyn Any + Send),
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Session<Self>>, Fault> {
        let sums: &Vec<u32> = state.downcast_ref().ok_or_else(|| Fault::work("what it held is of another kind"))?;
        Sums::open(rung, sums, backend)
    }
}

impl Session<Folding> for Sums {
    fn run(&mut self, step: &Step, context: &mut Context<'_, Folding>) -> Result<Vec<u32>, Fault> {
        match step {
            Step::Fold(add) => {
                let params = [*add, 0, 0, 0];
                let (params, buffers) = (bytemuck::bytes_of(&params), &[&self.buffer]);
                context.backend.launch(&Launch { kernel: &FOLD, buffers, params, groups: [1, 1, 1] })?;
                self.kicked.push_back(context.backend.kick()?);
                self.drain(self.depth - 1, context.backend)?;
                Ok(Vec::new())
            }
            Step::Read => self.read(context.backend),
            Step::Fail => Err(Fault::work("on purpose")),
        }
    }

    fn leave(&mut self, backend: &mut dyn Backend) -> Result<Box<dyn Any + Send>, Fault> {
        Ok(Box::new(self.read(backend)?))
    }
}

fn sums(held: &Held<Folding>) -> Vec<u32> {
    let ticket = held.submit(Task::new(Step::Read).drains()).expect("it is held");
    in_time(ticket).expect("it can be read").output
}

#[test]
fn ten_thousand_tasks_are_recalled_from_depth_2_to_depth_1_to_the_cpu_and_none_is_lost() {
    let gpu = gpus(1);
    let orchestrator = orchestrator(&gpu);
    let folding = orchestrator.register(Folding);
    let held = orchestrator.hold(&folding);
    let tasks = 10_000_u32;
    let tickets: Vec<_> =
        (0..tasks).map(|n| held.submit(Task::new(Step::Fold(n))).expect("there is queue space")).collect();
    let mut rungs: Vec<&str> = Vec::new();
    for (at, ticket) in tickets.into_iter().enumerate() {
        match at {
            3_000 => assert!(held.recall("depth 1")),
            6_000 => assert!(held.recall("cpu")),
            _ => {}
        }
        let done = in_time(ticket).expect("no task is lost");
        if rungs.last() != Some(&done.report.rung) {
            rungs.push(done.report.rung);
        }
    }
    assert_eq!(rungs, ["depth 2", "depth 1", "cpu"]);
    assert_eq!(held.undrained(), (u64::from(tasks), None));
    assert!(sums(&held) == expected(0..tasks), "the answer changed");
    assert_eq!(held.undrained().0, 0);
}

#[test]
fn what_was_not_drained_of_a_lost_device_is_told_and_can_be_done_again() {
    let gpu = gpus(1);
    let orchestrator = orchestrator(&gpu);
    let folding = orchestrator.register(Folding);
    let held = orchestrator.hold(&folding);
    let fold = |numbers: std::ops::Range<u32>| {
        let tickets: Vec<_> = numbers.map(|n| held.submit(Task::new(Step::Fold(n))).expect("it is held")).collect();
        tickets.into_iter().map(|ticket| in_time(ticket)).collect::<Vec<_>>()
    };
    assert!(fold(0..20).iter().all(Result::is_ok));
    let saved = sums(&held);
    assert!(fold(20..30).iter().all(Result::is_ok));
    gpu[0].lose();
    let ended = fold(30..31);
    let failure = ended[0].as_ref().expect_err("its session is gone");
    assert!(matches!(failure.error, TaskError::SessionLost { undrained: 10, since: Some(_) }), "{failure}");
    assert!(held.is_lost() && held.submit(Task::new(Step::Read)).is_err());
    assert_eq!(held.restart().0, 10);
    // The owner begins again from what it had drained.
    assert!(fold(20..31).iter().all(Result::is_ok));
    let sums = sums(&held);
    assert_eq!(sums, expected(20..31));
    assert_ne!(sums, saved);
}

#[test]
fn a_task_that_fails_loses_its_session_and_closing_leaves_nothing() {
    let gpu = gpus(1);
    let orchestrator = orchestrator(&gpu);
    let folding = orchestrator.register(Folding);
    let held = orchestrator.hold(&folding);
    let wait = |step| in_time(held.submit(Task::new(step)).expect("it is held"));
    assert!(wait(Step::Fold(1)).is_ok());
    assert!(matches!(wait(Step::Fail).unwrap_err().error, TaskError::WorkFailed(_)));
    assert!(held.is_lost());
    assert_eq!(held.restart().0, 1);
    assert!(wait(Step::Fold(2)).is_ok());
    held.close();
    assert_eq!(orchestrator.unsettled(), 0);
}
