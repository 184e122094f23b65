//! A GPU that cannot compile a rung's kernel (lavapipe): the rung is at fault on that device, not the task and not the
//! device. Every task is done all the same, by the kernel's twin on the CPU.

use std::sync::Arc;

use plimsoll_core::balancer::Strategy;
use plimsoll_core::{Bytes, Fault, Setback};
use plimsoll_runtime::{Access, Backend, Device, Kernel, Launch, Orchestrator, Task};
use plimsoll_wgpu::{OpenOptions, discover};

use crate::bounded::bounded;
use crate::scripted::{ALL, FIRST, Piece, SECOND, Scripted, gpu_then_cpu};

/// Takes 4 MB of workgroup memory, of which devices have some tens of KiB.
static ONLY_ON_THE_CPU: Kernel = Kernel {
    name: "only_on_the_cpu",
    wgsl: "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
           var<workgroup> tile: array<u32, 1000000>;
           @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
               tile[i] = i;
               data[i] = tile[63u - i];
           }",
    entry: "main",
    bindings: &[Access::Write],
    params: 0,
    twin: |twin| twin.floats_mut(0).fill(7.0),
};

fn launch_it(backend: &mut dyn Backend) -> Result<(), Fault> {
    let buffer = backend.allocate(Bytes(256))?;
    backend.launch(&Launch { kernel: &ONLY_ON_THE_CPU, buffers: &[&buffer], params: &[], groups: [1, 1, 1] })?;
    let answer = plimsoll_runtime::read_floats(backend, &buffer, 64)?;
    if answer == [7.0; 64] { Ok(()) } else { Err(Fault::WrongAnswer { detail: format!("{answer:?}") }) }
}

/// A GPU that is given whatever it can take, and a CPU.
fn orchestrator() -> Orchestrator {
    let found = discover();
    let found = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    let gpu: Arc<dyn Device> = found.open(&OpenOptions::default()).expect("it opens").remove(0);
    Orchestrator::builder().device(gpu).cpu(1).strategy(Strategy::WeightedCapacity).weight(0, ALL).build()
}

fn two_hundred_are_done_on_the_cpu(piece: impl Fn(u64) -> Piece) {
    let orchestrator = orchestrator();
    let (broken, sound) =
        (orchestrator.register(Scripted::named("broken")), orchestrator.register(Scripted::default()));
    let tasks = (0..200).map(|value| Task::new(piece(value).ladder(gpu_then_cpu(Bytes::kib(16)))));
    let mut tried = 0;
    for (value, done) in (0..).zip(orchestrator.run_all(&broken, tasks).ordered()) {
        let done = done.unwrap_or_else(|failure| panic!("task {value}: {failure}"));
        assert_eq!((done.output.value, done.report.device), (value, SECOND));
        for attempt in &done.report.attempts {
            let unsupported = matches!(&attempt.setback, Setback::Failed(Fault::Unsupported { .. }));
            assert!(attempt.device == FIRST && unsupported, "{attempt:?}");
            tried += 1;
        }
    }
    assert!(tried > 0, "the GPU was never asked");
    assert!(orchestrator.reports()[0].health.is_well(), "the device is not to blame");
    let other = Piece::new(1).ladder(gpu_then_cpu(Bytes::kib(16))).checked();
    assert_eq!(orchestrator.run(&sound, Task::new(other)).unwrap().report.device, FIRST);
}

#[test]
fn a_kernel_that_does_not_compile_when_it_is_run_steps_down() {
    bounded(|| {
        two_hundred_are_done_on_the_cpu(|value| Piece::new(value).on_run(|_, context| launch_it(context.backend)))
    });
}

#[test]
fn a_kernel_that_does_not_compile_when_its_session_is_opened_steps_down() {
    bounded(|| two_hundred_are_done_on_the_cpu(|value| Piece::new(value).on_open(|_, backend| launch_it(backend))));
}
