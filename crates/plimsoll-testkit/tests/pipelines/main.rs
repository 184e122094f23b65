//! Pipelines whose values stay on the device, on the CPU and on a real Vulkan device. A machine without one fails here:
//! install Mesa's software one (`mesa-vulkan-drivers`).

mod held;
mod stages;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_core::Bytes;
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::{Device, Orchestrator, Pipeline, Task, workload};
use plimsoll_wgpu::{OpenOptions, WgpuDevice, discover};

use stages::{Again, Down, Kept, Up, expected};

fn gpus(logical: usize) -> Vec<Arc<WgpuDevice>> {
    let found = discover();
    let found = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    let options = OpenOptions::default().with_logical(logical).with_memory_limit(Bytes::mib(256)).with_slots(1);
    found.open(&options).expect("the device opens")
}

fn orchestrator(gpus: &[Arc<WgpuDevice>]) -> Orchestrator {
    let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(2).memory_limit(Bytes::mib(256)).build());
    let gpus = gpus.iter().map(|gpu| Arc::clone(gpu) as Arc<dyn Device>);
    Orchestrator::builder().devices(gpus.chain([cpu])).build()
}

/// The stages, each on the rung it is told, or wherever it finishes first.
fn pipeline(orchestrator: &Orchestrator, rungs: [Option<&'static str>; 3]) -> Pipeline<Up, Vec<u32>> {
    fn on<W: plimsoll_runtime::Workload>(task: Task<W>, rung: Option<&'static str>) -> Task<W> {
        match rung {
            Some(rung) => task.rung(rung),
            None => task,
        }
    }
    let (up, again, down) = (orchestrator.register(Up), orchestrator.register(Again), orchestrator.register(Down));
    Pipeline::of(&up)
        .then(&again, move |kept: Kept| on(Task::new(kept.words).takes(kept.value), rungs[1]))
        .then(&down, move |kept: Kept| on(Task::new(kept.words).takes(kept.value), rungs[2]))
}

/// Odd sizes, one of them larger than the piece that is copied at a time.
fn inputs(count: u32) -> Vec<Vec<u32>> {
    let length = |n: u32| if n == 3 { 300_001 } else { 1 + (n * 977) % 5_000 };
    (0..count).map(|n| (0..length(n)).map(|at| at.wrapping_mul(2_654_435_761) ^ n).collect()).collect()
}

#[test]
fn every_mix_of_cpu_and_gpu_gives_the_same_words() {
    let gpu = gpus(1);
    let orchestrator = orchestrator(&gpu);
    let before = gpu[0].memory().ours;
    let inputs = inputs(6);
    for mix in 0..8 {
        let rungs = [0, 1, 2].map(|stage| Some(if mix >> stage & 1 == 1 { "gpu" } else { "cpu" }));
        let tasks = inputs.iter().map(|words| Task::new(words.clone()).rung(rungs[0].unwrap()));
        let pipeline = pipeline(&orchestrator, rungs);
        for done in orchestrator.run_pipeline(&pipeline, tasks).numbered() {
            let words = &inputs[done.item as usize];
            let done = done.result.expect("no item fails");
            assert!(done.output == expected(words), "{rungs:?}: wrong words");
            assert_eq!(done.report.rung, rungs[2].unwrap());
        }
    }
    drop(orchestrator);
    assert!(gpu[0].memory().ours <= before, "values were left on the device");
}

#[test]
fn a_device_lost_in_the_middle_loses_nothing() {
    let gpus = gpus(2);
    let orchestrator = orchestrator(&gpus);
    let inputs = inputs(200);
    let pipeline = pipeline(&orchestrator, [Some("gpu"), Some("gpu"), None]).items_max(32);
    let tasks = inputs.iter().map(|words| Task::new(words.clone()).rung("gpu"));
    let mut seen = vec![false; inputs.len()];
    for (count, done) in orchestrator.run_pipeline(&pipeline, tasks).numbered().enumerate() {
        if count == 20 || count == 60 {
            gpus[count / 60].lose();
        }
        let item = done.item as usize;
        let output = done.result.unwrap_or_else(|failure| panic!("item {item}: {failure}")).output;
        assert!(output == expected(&inputs[item]), "item {item}: wrong words");
        assert!(!std::mem::replace(&mut seen[item], true), "item {item} came twice");
    }
    assert!(seen.into_iter().all(|seen| seen));
}

#[test]
fn a_thousand_items_never_exceed_the_bound() {
    let orchestrator = Orchestrator::builder().cpu(2).build();
    let under_way = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (entered, highest) = (Arc::clone(&under_way), Arc::clone(&most));
    let first = orchestrator.register(workload::function("enter", move |n: &u64| {
        highest.fetch_max(entered.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        Ok::<_, std::io::Error>(*n)
    }));
    let second = orchestrator.register(workload::function("go on", |n: &u64| Ok::<_, std::io::Error>(n + 1)));
    let pipeline = Pipeline::of(&first).then(&second, Task::new).then(&second, Task::new).items_max(16);
    let mut sum = 0;
    for done in orchestrator.run_pipeline(&pipeline, (0..1_000).map(Task::new)) {
        under_way.fetch_sub(1, Ordering::SeqCst);
        sum += done.expect("no item fails").output;
    }
    assert_eq!(sum, 999 * 1_000 / 2 + 2_000);
    assert!(most.load(Ordering::SeqCst) <= 16, "{most:?} were under way");
    let mut flow = orchestrator.flow(&Pipeline::of(&first).items_max(1_000).bytes_max(Bytes(100)));
    assert!(flow.submit_sized(Task::new(1), Bytes(1_000)).is_ok(), "a single item may be larger");
    assert!(flow.submit_sized(Task::new(2), Bytes(1)).is_err());
    assert!(flow.wait(Duration::from_secs(60)).is_some());
    for _ in 0..10 {
        flow.submit_sized(Task::new(3), Bytes(10)).expect("there is room for ten of ten bytes");
    }
    assert!(flow.submit_sized(Task::new(4), Bytes(1)).is_err());
}
