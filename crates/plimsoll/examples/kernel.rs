//! A kernel of your own: WGSL, its CPU twin, and a rung that needs little memory: `cargo run --example kernel`.
//! `docs/workloads.md` explains it step by step.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use plimsoll::{
    Access, Backend, Bytes, Context, DeviceKind, Fault, Footprint, Kernel, Ladder, Launch, Machine, MachineOptions,
    Orchestrator, Place, Rung, Session, Task, Twin, Workload, read_floats,
};

static SCALE_AND_ADD: Kernel = Kernel {
    name: "scale_and_add",
    wgsl: include_str!("kernel.wgsl"),
    entry: "scale_and_add",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: scale_and_add,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    a: f32,
    count: u32,
    unused: [u32; 2],
}

/// The same arithmetic on the CPU: one call does the whole launch.
fn scale_and_add(twin: &mut Twin<'_>) {
    let Params { a, count, .. } = twin.params();
    let (x, y) = twin.floats_from_to(0, 1);
    for (y, x) in y.iter_mut().zip(x).take(count as usize) {
        *y += a * x;
    }
}

/// y = a · x + y
struct Saxpy;

struct Input {
    a: f32,
    x: Arc<[f32]>,
    y: Arc<[f32]>,
}

/// Elements that the rung with little memory holds at a time.
const STRIP: usize = 1 << 14;

/// Two buffers of so many floats.
fn bytes_of(elements: usize) -> Bytes {
    Bytes(2 * 4 * elements as u64)
}

impl Workload for Saxpy {
    type Input = Input;
    type Reference = ();
    type Prepared = ();
    type Output = Vec<f32>;

    fn name(&self) -> &str {
        "saxpy"
    }

    fn units(&self, input: &Input) -> u64 {
        input.x.len() as u64
    }

    fn ladder(&self, input: &Input) -> Ladder {
        let (whole, strip) = (bytes_of(input.x.len()), bytes_of(STRIP.min(input.x.len())));
        Ladder::from(vec![
            Rung::new("gpu", Place::On(DeviceKind::Gpu), Footprint::task(whole)),
            Rung::new("gpu-strip", Place::On(DeviceKind::Gpu), Footprint::task(strip)),
            Rung::new("cpu", Place::On(DeviceKind::Cpu), Footprint::task(strip)),
        ])
    }

    fn open(&self, rung: &Rung, input: &Input, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        let strip = if rung.name == "gpu" { input.x.len() } else { STRIP };
        Ok(Box::new(SaxpySession { strip }))
    }
}

struct SaxpySession {
    strip: usize,
}

impl Session<Saxpy> for SaxpySession {
    fn run(&mut self, input: &Input, context: &mut Context<'_, Saxpy>) -> Result<Vec<f32>, Fault> {
        let mut sums = Vec::with_capacity(input.x.len());
        for (x, y) in input.x.chunks(self.strip).zip(input.y.chunks(self.strip)) {
            context.check_cancelled()?;
            let backend = &mut *context.backend;
            let size = Bytes(4 * x.len() as u64);
            let (on_x, on_y) = (backend.allocate(size)?, backend.allocate(size)?);
            backend.write(&on_x, Bytes::ZERO, bytemuck::cast_slice(x))?;
            backend.write(&on_y, Bytes::ZERO, bytemuck::cast_slice(y))?;
            backend.launch(&Launch {
                kernel: &SCALE_AND_ADD,
                buffers: &[&on_x, &on_y],
                params: bytemuck::bytes_of(&Params { a: input.a, count: x.len() as u32, unused: [0; 2] }),
                groups: [(x.len() as u32).div_ceil(256), 1, 1],
            })?;
            sums.extend(read_floats(backend, &on_y, x.len())?);
        }
        Ok(sums)
    }
}

/// Eight tasks on this rung, or on whichever finishes first.
pub(crate) fn run(options: &MachineOptions, rung: Option<&'static str>) -> Result<(), Box<dyn std::error::Error>> {
    let machine = Machine::open(options);
    let orchestrator = Orchestrator::builder().devices(machine.devices).build();
    let saxpy = orchestrator.register(Saxpy);
    let (x, y): (Arc<[f32]>, Arc<[f32]>) = ((0..100_001).map(|n| n as f32).collect(), vec![1.0; 100_001].into());
    let task = |a| Task::new(Input { a: a as f32, x: Arc::clone(&x), y: Arc::clone(&y) });
    let tasks = (0..8).map(|a| rung.into_iter().fold(task(a), Task::rung));
    for done in orchestrator.run_all(&saxpy, tasks) {
        let done = done?;
        let wanted = |n: usize| done.index as f32 * n as f32 + 1.0;
        assert!(done.output.iter().enumerate().all(|(n, sum)| *sum == wanted(n)), "every element, the last included");
        println!("a = {}: {} on {} in {}", done.index, done.report.rung, done.report.device, done.report.run);
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&MachineOptions::from_env()?, None)
}
