//! What is learnt, kept and forgotten: from task to task, and from one process to the next through the profile's file.

use std::time::Duration;

use plimsoll_core::profile::{Cell, CellKey, FailedCell, Hardware, Profile};
use plimsoll_core::{Bytes, Fault, MemoryMoment, Nanos, Refusal, Setback, TaskError, UnixSeconds};
use plimsoll_runtime::probe::workloads::SumWork;
use plimsoll_runtime::profile_file::ProfileFile;
use plimsoll_runtime::{Builder, Orchestrator, SOFTWARE, Task, today};
use plimsoll_testkit::virtual_device::ScriptedFault;
use tempfile::TempDir;

use crate::bounded::bounded;
use crate::scripted::{FIRST, Piece, Scripted, as_device, gpu_then_cpu, virtual_gpu};

const DAY_S: u64 = 86_400;

fn machine(key: &str) -> Hardware {
    Hardware { key: key.to_owned(), devices: vec![] }
}

/// A folder of its own, and a profile in it.
fn place() -> (TempDir, ProfileFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = ProfileFile::at(folder.path().join("profile.toml"));
    (folder, file)
}

fn key(workload: &str) -> CellKey {
    CellKey::new(workload, "any", "virtual-v")
}

/// What a task of each of these workloads took, by this date, and where memory ran out.
fn profile_of(workloads: &[&str], at: UnixSeconds) -> Profile {
    let mut profile = Profile::new(machine("k"), SOFTWARE, at);
    for workload in workloads {
        let mut cell = Cell::default();
        cell.learn_run(1, Nanos::seconds(7));
        profile.record(&key(workload), &mut cell, at);
        let failed =
            FailedCell::out_of_memory(key(workload), 1 << 40, Bytes::gib(9), MemoryMoment::Run, SOFTWARE, today());
        profile.failures_mut().remember(failed.unwrap());
    }
    profile
}

fn with_profile(file: &ProfileFile, machine_key: &str) -> Builder {
    let gpu = virtual_gpu("v", |gpu| gpu);
    Orchestrator::builder().device(as_device(&gpu)).profile(file.clone(), Some(machine(machine_key)))
}

fn saved(file: &ProfileFile) -> Profile {
    file.load(today()).unwrap().profile.unwrap()
}

/// What a task is expected to take, if it was ever measured. Nothing was handed in before.
fn expected(orchestrator: &Orchestrator) -> Option<Nanos> {
    let work = orchestrator.register(Scripted::default());
    let estimate = orchestrator.why(&work, Task::new(Piece::new(1)))[0].estimate.unwrap();
    estimate.measured.then_some(estimate.run)
}

#[test]
fn a_saved_profile_is_used_and_why_knows_it_before_the_first_task() {
    bounded(|| {
        let (_folder, file) = place();
        assert_eq!(expected(&with_profile(&file, "k").build()), None);
        file.replace(&profile_of(&["scripted"], today())).unwrap();
        assert_eq!(expected(&with_profile(&file, "k").build()), Some(Nanos::seconds(7)));
    });
}

#[test]
fn what_a_run_took_outlives_its_process() {
    bounded(|| {
        let (_folder, file) = place();
        let first = with_profile(&file, "k").build();
        let work = first.register(Scripted::default());
        first.run(&work, Task::new(Piece::new(1))).unwrap();
        let known = expected(&first);
        assert!(known.is_some());
        drop(first);
        assert_eq!(expected(&with_profile(&file, "k").build()), known);
    });
}

#[test]
fn an_old_figure_does_not_become_fresh_by_one_run_of_something_else() {
    bounded(|| {
        let (_folder, file) = place();
        file.replace(&profile_of(&["scripted"], UnixSeconds(today().0 - 8 * DAY_S))).unwrap();
        for _ in 0..2 {
            let orchestrator = with_profile(&file, "k").build();
            assert_eq!(expected(&orchestrator), None, "8 days old");
            let other = orchestrator.register(Scripted::named("other"));
            orchestrator.run(&other, Task::new(Piece::new(1))).unwrap();
        }
        let orchestrator = with_profile(&file, "k").build();
        let work = orchestrator.register(Scripted::default());
        orchestrator.run(&work, Task::new(Piece::new(1))).unwrap();
        assert!(expected(&orchestrator).is_some(), "measured again in passing");
        drop(orchestrator);
        assert!(expected(&with_profile(&file, "k").build()).is_some_and(|run| run < Nanos::seconds(7)));
    });
}

#[test]
fn measuring_anew_keeps_what_it_does_not_measure() {
    bounded(|| {
        let (_folder, file) = place();
        file.replace(&profile_of(&["scripted", "other"], today())).unwrap();
        let bench = with_profile(&file, "k").measure_anew().build();
        assert_eq!(expected(&bench), None, "everything is measured anew");
        let work = bench.register(Scripted::default());
        bench.run(&work, Task::new(Piece::new(1))).unwrap();
        bench.save_profile().unwrap();
        drop(bench);
        let saved = saved(&file);
        let time = |workload| saved.cell(&key(workload)).unwrap().run(1).unwrap().time;
        assert_eq!(time("other"), Nanos::seconds(7));
        assert!(time("scripted") < Nanos::seconds(7), "only what was measured anew counts");
        let failed: Vec<&CellKey> = saved.failures().iter().map(FailedCell::key).collect();
        assert_eq!(failed, [&key("other")]);
    });
}

#[test]
fn the_profile_of_another_machine_is_left_alone() {
    bounded(|| {
        let (_folder, file) = place();
        let whole = Profile::new(machine("cpu + gpu"), SOFTWARE, today());
        file.replace(&whole).unwrap();
        let without = with_profile(&file, "cpu alone").build();
        let work = without.register(Scripted::default());
        without.run(&work, Task::new(Piece::new(1))).unwrap();
        let refused = without.save_profile().unwrap_err().to_string();
        assert!(refused.contains("cpu + gpu"), "{refused}");
        drop(without);
        assert_eq!(saved(&file), whole);
    });
}

fn run_out(backend: &mut dyn plimsoll_runtime::Backend) -> Result<(), Fault> {
    backend.allocate(Bytes::gib(900)).map(drop)
}

/// One input that runs out of memory wherever it is tried. All sizes count as one where `units` is 1.
#[test]
fn an_input_that_runs_out_everywhere_does_not_close_its_workload() {
    bounded(|| {
        let (_folder, file) = place();
        for process in 0..3 {
            let gpu = virtual_gpu("v", |gpu| gpu);
            let builder = Orchestrator::builder().device(as_device(&gpu)).cpu(1);
            let orchestrator = builder.profile(file.clone(), Some(machine("k"))).build();
            let work = orchestrator.register(Scripted::default());
            let ladder = || gpu_then_cpu(Bytes(10));
            let failed_on = |result: Result<_, plimsoll_runtime::RunError>| match result.err().unwrap().error {
                TaskError::Exhausted { attempts } => {
                    attempts.iter().filter(|attempt| matches!(attempt.setback, Setback::Failed(_))).count()
                }
                other => panic!("{other}"),
            };
            let giant = Piece::new(9).ladder(ladder()).on_run(|_, context| run_out(context.backend));
            assert_eq!(failed_on(orchestrator.run(&work, Task::new(giant))), 2, "process {process}: on every rung");
            for value in 0..20 {
                let done = orchestrator.run(&work, Task::new(Piece::new(value).ladder(ladder())));
                assert_eq!(done.unwrap_or_else(|failed| panic!("process {process}: {failed}")).output.value, value);
            }
        }
    });
}

/// A driver that does not compile one kernel: the CPU's twin does the work, and nobody asks again.
#[test]
fn a_rung_that_a_device_cannot_do_is_left_to_others_and_not_tried_again() {
    bounded(|| {
        let (_folder, file) = place();
        let launches = |calls: u64| {
            let gpu = virtual_gpu("v", |gpu| gpu.slots(2));
            gpu.add_fault(ScriptedFault::Unsupported { kernel: "sum" });
            let builder = Orchestrator::builder().device(as_device(&gpu)).cpu(2);
            let orchestrator = builder.profile(file.clone(), Some(machine("k"))).build();
            let work = orchestrator.register(SumWork);
            let proven = gpu.calls().launches;
            let tasks = (0..calls).map(|task| Task::new(vec![task as f32, 1.0].into()));
            for (task, done) in orchestrator.run_all(&work, tasks).ordered().enumerate() {
                let done = done.unwrap_or_else(|failed| panic!("task {task}: {failed}"));
                assert_eq!((done.output, done.report.rung), (task as f32 + 1.0, "cpu"));
            }
            assert!(orchestrator.reports().iter().all(|device| device.health.is_well()));
            gpu.calls().launches - proven
        };
        // On a busy machine the CPU may have done all of them before a slot of the GPU came to try one.
        let tried = (0..50).map(|_| launches(200)).find(|launches| *launches > 0);
        let tried = tried.expect("sooner or later the GPU is tried");
        assert!(tried <= 2, "{tried} launches: once by each slot at the most");
        assert_eq!(launches(200), 0, "nor by the next process");
        assert_eq!(saved(&file).failures().iter().count(), 0, "it is no shortage of memory");
    });
}

/// A GPU and a CPU that remember for so long that no test takes longer.
fn with_long_memory(file: &ProfileFile) -> Orchestrator {
    let gpu = virtual_gpu("v", |gpu| gpu);
    let builder = Orchestrator::builder().device(as_device(&gpu)).cpu(1).memory_retry_first(Duration::from_secs(3_600));
    builder.profile(file.clone(), Some(machine("k"))).build()
}

fn on_gpu_or_cpu() -> Task<Scripted> {
    Task::new(Piece::new(1).ladder(gpu_then_cpu(Bytes(10))))
}

/// Runs a task that runs out of memory on the GPU; the CPU does it.
fn run_out_on_the_gpu(orchestrator: &Orchestrator, workload: &'static str) {
    let work = orchestrator.register(Scripted::named(workload));
    let piece = Piece::new(1).ladder(gpu_then_cpu(Bytes(10))).on_run(|rung, context| match rung {
        "gpu" => run_out(context.backend),
        _ => Ok(()),
    });
    // Whichever device it would go to first, it is to be tried there.
    let only = Task::new(piece).devices([FIRST]);
    assert!(orchestrator.run(&work, only).is_err());
}

/// Whether the GPU is closed to tasks of this workload because memory ran out.
fn is_closed(orchestrator: &Orchestrator, workload: &'static str) -> bool {
    let work = orchestrator.register(Scripted::named(workload));
    let why = orchestrator.why(&work, on_gpu_or_cpu());
    why.iter().any(|each| matches!(each.refusal, Some(Refusal::FailedBefore { .. })))
}

#[test]
fn what_ran_out_of_memory_is_written_down_and_known_to_the_next_process() {
    bounded(|| {
        let (_folder, file) = place();
        let first = with_long_memory(&file);
        assert!(!is_closed(&first, "w"));
        run_out_on_the_gpu(&first, "w");
        assert!(is_closed(&first, "w"));
        drop(first);
        let saved = saved(&file);
        let [failed] = &saved.failures().iter().collect::<Vec<_>>()[..] else { panic!("{:?}", saved.failures()) };
        assert_eq!((failed.key().workload(), failed.key().rung(), failed.key().device()), ("w", "gpu", "virtual-v"));
        assert_eq!(failed.free(), Some(Bytes::gib(1)), "what others left of it");
        let next = with_long_memory(&file);
        assert!(is_closed(&next, "w") && !is_closed(&next, "other"));
        let work = next.register(Scripted::named("w"));
        assert_eq!(next.run(&work, on_gpu_or_cpu()).unwrap().report.rung, "cpu", "straight to the next rung");
    });
}

#[test]
fn what_failed_can_be_forgotten_here_and_on_disk() {
    bounded(|| {
        let (_folder, file) = place();
        let first = with_long_memory(&file);
        ["a", "b"].into_iter().for_each(|workload| run_out_on_the_gpu(&first, workload));
        drop(first);
        let second = with_long_memory(&file);
        assert!(is_closed(&second, "a") && is_closed(&second, "b"));
        let work = second.register(Scripted::named("a"));
        second.forget_failures_of(&work).unwrap();
        assert!(!is_closed(&second, "a") && is_closed(&second, "b"));
        let third = with_long_memory(&file);
        assert!(!is_closed(&third, "a") && is_closed(&third, "b"), "on disk too");
        drop(second);
        let before = saved(&file).cells().len();
        third.forget_failures().unwrap();
        assert!(!is_closed(&third, "b"));
        drop(third);
        assert!(!is_closed(&with_long_memory(&file), "b"));
        assert_eq!(saved(&file).failures().iter().count(), 0);
        assert_eq!(saved(&file).cells().len(), before, "what was measured stays");
    });
}

/// A failure that was learnt while measuring anew is there after the second save as well.
#[test]
fn measuring_anew_keeps_what_it_learnt_itself() {
    bounded(|| {
        let (_folder, file) = place();
        let bench = with_profile(&file, "k").measure_anew().build();
        let work = bench.register(Scripted::default());
        bench.run(&work, Task::new(Piece::new(1))).unwrap();
        let large = Piece::new(1).units(1 << 20).on_run(|_, context| run_out(context.backend));
        assert!(bench.run(&work, Task::new(large)).is_err());
        bench.save_profile().unwrap();
        bench.save_profile().unwrap();
        drop(bench);
        assert_eq!(saved(&file).failures().iter().count(), 1);
        assert!(saved(&file).cell(&key("scripted")).is_some());
    });
}

/// The disk was full, or another process in the way: nothing that was learnt is lost by it, nor comes back by it.
#[test]
fn what_could_not_be_written_is_written_the_next_time_unless_it_is_forgotten() {
    for forgets in [false, true] {
        bounded(move || {
            let (folder, file) = place();
            let orchestrator = with_long_memory(&file.clone().with_lock_wait(Duration::from_millis(1)));
            run_out_on_the_gpu(&orchestrator, "w");
            let lock = std::fs::File::create(folder.path().join("profile.toml.lock")).unwrap();
            lock.lock().unwrap();
            assert!(orchestrator.save_profile().is_err());
            if forgets {
                assert!(orchestrator.forget_failures().is_err(), "the file cannot be changed now");
            }
            drop(lock);
            orchestrator.save_profile().unwrap();
            assert_eq!(saved(&file).failures().iter().count(), usize::from(!forgets));
        });
    }
}
