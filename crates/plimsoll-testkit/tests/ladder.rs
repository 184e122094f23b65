//! A GPU (lavapipe) with a 64 MiB line: what fits runs there, what does not steps down, nothing fails.

use std::sync::Arc;

use plimsoll_core::{Bytes, DeviceId, DeviceKind};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::probe::workloads::{BlurInput, BlurWork, CPU, GPU_FULL, GPU_STRIP};
use plimsoll_runtime::{Device, Orchestrator, Task};
use plimsoll_wgpu::OpenOptions;

const LINE: Bytes = Bytes::mib(64);
/// 256 x 256: half a MiB on the full rung.
const SMALL: usize = 256;
/// 3000 x 3000: 68.7 MiB on the full rung, more than the line.
const LARGE: usize = 3000;

fn gpu() -> Arc<dyn Device> {
    let found = plimsoll_wgpu::discover();
    let card = found.first().expect("a Vulkan device: install mesa-vulkan-drivers");
    card.open(&OpenOptions::default().with_memory_limit(LINE)).expect("it opens").remove(0)
}

fn orchestrator() -> Orchestrator {
    let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(1).build());
    Orchestrator::builder().device(cpu).device(gpu()).build()
}

fn pixels(side: usize, seed: usize) -> Arc<[f32]> {
    (0..side * side).map(|at| ((at * 31 + seed * 17) % 251) as f32 / 251.0).collect()
}

fn input(side: usize, seed: usize) -> BlurInput {
    BlurInput::new(side, side, 1, pixels(side, seed)).expect("a blur like any other")
}

/// The middle of a blurred image and its mean: enough to tell right from wrong without keeping 200 images.
fn digest(side: usize, blurred: &[f32]) -> (f32, f64) {
    let mean = blurred.iter().map(|&value| f64::from(value)).sum::<f64>() / blurred.len() as f64;
    (blurred[side / 2 * side + side / 2], mean)
}

#[test]
fn two_hundred_tasks_finish_right_under_a_small_line() {
    let orchestrator = orchestrator();
    let blur = orchestrator.register(BlurWork);
    let side = |at: usize| if at % 50 == 49 { LARGE } else { SMALL };
    let tasks = (0..200).map(|at| Task::new(input(side(at), at % 5)));
    let mut on = std::collections::BTreeMap::<(&str, DeviceId), usize>::new();
    let mut expected = std::collections::HashMap::new();
    for (at, result) in orchestrator.run_all(&blur, tasks).ordered().enumerate() {
        let done = result.expect("no task fails");
        *on.entry((done.report.rung, done.report.device)).or_default() += 1;
        if side(at) == LARGE {
            assert_ne!(done.report.rung, GPU_FULL, "68.7 MiB never fit under 64");
        }
        let right = *expected.entry((side(at), at % 5)).or_insert_with(|| on_the_cpu(side(at), at % 5));
        let (middle, mean) = digest(side(at), &done.output);
        assert!((middle - right.0).abs() < 1e-5 && (mean - right.1).abs() < 1e-6, "task {at}: a wrong answer");
        let peak = done.report.bytes_peak.expect("counted");
        assert!(peak <= done.report.bytes_predicted, "task {at} held {peak}, more than predicted");
    }
    let gpu = DeviceId(1);
    assert_eq!(on.values().sum::<usize>(), 200);
    assert!(on.get(&(GPU_FULL, gpu)).is_some_and(|&count| count > 0), "the GPU is used where it fits: {on:?}");
    for status in orchestrator.reports() {
        assert!(status.promised_peak <= status.line.max(LINE), "past the line on {}", status.device);
        assert_eq!(status.figures.failed, 0);
    }
}

/// Large images are kept off the CPU, so that the GPU has to take them in strips.
#[test]
fn what_does_not_fit_whole_goes_in_strips() {
    let orchestrator = orchestrator();
    let blur = orchestrator.register(BlurWork);
    let gpu = orchestrator.devices().find(|(_, facts)| facts.kind == DeviceKind::Gpu).expect("opened").0;
    let task = Task::new(input(LARGE, 3)).devices([gpu]);
    let done = orchestrator.run(&blur, task).expect("strips fit");
    assert_eq!(done.report.rung, GPU_STRIP);
    let right = on_the_cpu(LARGE, 3);
    let (middle, mean) = digest(LARGE, &done.output);
    assert!((middle - right.0).abs() < 1e-5 && (mean - right.1).abs() < 1e-6);
}

#[test]
fn strict_mode_has_no_ladder() {
    let orchestrator = orchestrator();
    let blur = orchestrator.register(BlurWork);
    let error = orchestrator.run(&blur, Task::new(input(LARGE, 0)).strict()).expect_err("the best rung does not fit");
    let text = error.to_string();
    // The line is the limit less what open slots hold for staging.
    let line = orchestrator.reports()[1].line;
    assert!(line <= LINE && line > Bytes::mib(56), "{line}");
    let said = ["68.7 MiB", &line.to_string(), "memory limit"];
    assert!(said.iter().all(|part| text.contains(part)), "{text}");
}

fn on_the_cpu(side: usize, seed: usize) -> (f32, f64) {
    let orchestrator = Orchestrator::builder().cpu(2).build();
    let blur = orchestrator.register(BlurWork);
    let done = orchestrator.run(&blur, Task::new(input(side, seed))).expect("the CPU has room");
    assert_eq!(done.report.rung, CPU);
    digest(side, &done.output)
}
