//! What is learnt of failures, and how long it counts.

use std::sync::Arc;

use super::*;
use crate::profile::{CellKey, FailedCell, Hardware, Profile, UnsupportedCell};
use crate::scheduler::Candidate;
use crate::{Ailment, MemoryMoment, Refusal, TaskError, UnixSeconds};

fn second(n: u64) -> Moment {
    Moment(Nanos::seconds(n).0)
}

fn out_of_memory() -> Option<Fault> {
    Some(Fault::OutOfMemory { moment: MemoryMoment::Run, wanted: Bytes(10) })
}

/// Why the GPU's rung is refused, if it is.
fn refusal_on_gpu(scheduler: &mut Scheduler<Nothing>, now: Moment, spec: &TaskSpec) -> Option<Refusal> {
    let candidates: Vec<Candidate> = scheduler.why(now, spec);
    let on_gpu = candidates.into_iter().find(|candidate| (candidate.rung, candidate.device) == ("gpu", GPU));
    on_gpu.unwrap().refusal
}

/// Whether the GPU's rung is refused as known to run out of memory.
fn closed(scheduler: &mut Scheduler<Nothing>, now: Moment, spec: &TaskSpec) -> bool {
    matches!(refusal_on_gpu(scheduler, now, spec), Some(Refusal::FailedBefore { .. }))
}

const TODAY: UnixSeconds = UnixSeconds(1_760_000_000);

fn device_names() -> Vec<String> {
    ["the cpu", "the gpu"].map(String::from).into()
}

/// What a scheduler learnt, as it is saved.
fn saved(scheduler: &mut Scheduler<Nothing>, now: Moment) -> Profile {
    let mut profile = Profile::new(Hardware { key: "k".into(), devices: vec![] }, env!("CARGO_PKG_VERSION"), TODAY);
    scheduler.save(now, TODAY, &mut profile, &device_names());
    profile
}

/// The next process, this many seconds after the profile was saved.
fn restarted(profile: &Profile, seconds: u64) -> (Scheduler<Nothing>, TaskSpec) {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    scheduler.load(second(0), TODAY.plus(seconds), Arc::new(profile.clone()), device_names());
    let spec = spec(&mut scheduler, gpu_or_cpu());
    (scheduler, spec)
}

/// A task fails on the GPU and is done on the CPU.
fn run_out_on_the_gpu(scheduler: &mut Scheduler<Nothing>, now: Moment, spec: &TaskSpec) {
    scheduler.submit(now, spec.clone(), ()).unwrap();
    let run = start(scheduler, now, GPU.0);
    settle(scheduler, now, &run, out_of_memory());
    let run = start(scheduler, now, CPU.0);
    settle(scheduler, now, &run, None);
    scheduler.check_invariants().unwrap();
}

#[test]
fn more_free_memory_than_there_was_opens_a_size_again() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    others_leave(&mut scheduler, second(1), GPU, 600);
    run_out_on_the_gpu(&mut scheduler, second(1), &spec);
    assert!(closed(&mut scheduler, second(1), &spec));
    others_leave(&mut scheduler, second(1), GPU, 605);
    assert!(closed(&mut scheduler, second(1), &spec), "no more than comes and goes");
    others_leave(&mut scheduler, second(1), GPU, 1_000);
    assert!(!closed(&mut scheduler, second(1), &spec));
}

#[test]
fn a_size_that_ran_out_is_tried_again_soon_then_ever_more_rarely_until_it_works() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    let mut now = second(1);
    let mut waits = Vec::new();
    for _ in 0..5 {
        run_out_on_the_gpu(&mut scheduler, now, &spec);
        let opens = (0..).find(|n| !closed(&mut scheduler, now + Nanos::seconds(*n), &spec)).unwrap();
        waits.push(opens);
        now = now + Nanos::seconds(opens);
    }
    assert_eq!(waits, [2, 4, 8, 16, 32]);
    scheduler.submit(now, TaskSpec { devices: crate::DeviceSet::only(GPU), ..spec.clone() }, ()).unwrap();
    let run = start(&mut scheduler, now, GPU.0);
    settle(&mut scheduler, now, &run, None);
    now = now + Nanos::seconds(1);
    let alone = TaskSpec { devices: crate::DeviceSet::only(GPU), ..spec.clone() };
    scheduler.submit(now, alone, ()).unwrap();
    let run = start(&mut scheduler, now, GPU.0);
    settle(&mut scheduler, now, &run, out_of_memory());
    assert!(closed(&mut scheduler, now, &spec) && !closed(&mut scheduler, now + Nanos::seconds(2), &spec));
}

#[test]
fn the_last_way_left_is_never_refused_for_what_was_learnt() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let rung = |name, bytes| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(bytes)));
    let spec = spec(&mut scheduler, Ladder::from(vec![rung("gpu", 100), rung("strip", 10)]));
    scheduler.submit(second(1), spec.clone(), ()).unwrap();
    for _ in 0..2 {
        let run = start(&mut scheduler, second(1), GPU.0);
        settle(&mut scheduler, second(1), &run, out_of_memory());
    }
    assert_eq!(scheduler.drain_endings().len(), 1, "each rung was tried once");
    // Both rungs are closed now.
    let why = scheduler.why(second(1), &spec);
    let possible: Vec<_> = why.iter().filter(|each| each.refusal.is_none()).map(|each| each.rung).collect();
    assert_eq!(possible, ["strip"], "the lowest: {why:?}");
    scheduler.submit(second(1), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, second(1), GPU.0);
    assert_eq!(run.rung, 1);
    settle(&mut scheduler, second(1), &run, out_of_memory());
    let run = start(&mut scheduler, second(1), GPU.0);
    assert_eq!(run.rung, 0, "what this task has tried itself it does not try again");
    settle(&mut scheduler, second(1), &run, None);
    assert_eq!(scheduler.drain_endings().len(), 0);
    assert_eq!(scheduler.unsettled(), 0);
}

#[test]
fn the_last_way_left_waits_for_devices_that_may_come_back_as_long_as_it_may() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    run_out_on_the_gpu(&mut scheduler, second(1), &spec);
    // So that the GPU is still closed when waiting is over.
    scheduler.config.memory_retry_first = Nanos::seconds(1_000);
    run_out_on_the_gpu(&mut scheduler, second(3), &spec);
    scheduler.device_faulted(second(3), CPU, Ailment::Lost);
    scheduler.submit(second(3), spec.clone(), ()).unwrap();
    assert!(scheduler.take(second(3), GPU).is_none(), "the CPU may come back");
    scheduler.tick(second(3) + scheduler.config().device_wait_max);
    assert_eq!(scheduler.drain_endings().len(), 0);
    let run = start(&mut scheduler, second(70), GPU.0);
    settle(&mut scheduler, second(70), &run, None);
    scheduler.check_invariants().unwrap();
}

#[test]
fn what_ran_out_is_saved_with_how_much_was_free_and_its_step_and_goes_on_in_the_next_process() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    others_leave(&mut scheduler, second(1), GPU, 700);
    run_out_on_the_gpu(&mut scheduler, second(1), &spec);
    run_out_on_the_gpu(&mut scheduler, second(3), &spec);
    let profile = saved(&mut scheduler, second(4));
    let [failed] = &profile.failures().iter().collect::<Vec<_>>()[..] else { panic!("{:?}", profile.failures()) };
    assert_eq!(failed.key(), &CellKey::new("w", "gpu", "the gpu"));
    assert_eq!((failed.units(), failed.bytes(), failed.free()), (10, Bytes(10), Some(Bytes(700))));
    assert_eq!((failed.moment(), failed.step()), (MemoryMoment::Run, 1));
    assert_eq!((failed.at(), failed.until()), (UnixSeconds(TODAY.0 - 1), TODAY.plus(3)));
    assert_eq!(saved(&mut scheduler, second(5)).failures().iter().count(), 0, "once is enough");
    run_out_on_the_gpu(&mut scheduler, second(7), &spec);
    let less_than_a_second_left = second(14) + Nanos::millis(500);
    let ends = saved(&mut scheduler, less_than_a_second_left).failures().iter().map(FailedCell::until).max();
    assert_eq!(ends, Some(TODAY.plus(1)), "a part of a second is still closed");

    let (mut next, spec) = restarted(&profile, 1);
    others_leave(&mut next, second(0), GPU, 700);
    assert!(closed(&mut next, second(1), &spec), "three seconds were left, one has passed");
    assert!(!closed(&mut next, second(2), &spec));
    others_leave(&mut next, second(0), GPU, 900);
    assert!(!closed(&mut next, second(0), &spec), "more is free than there was");
    others_leave(&mut next, second(0), GPU, 700);
    run_out_on_the_gpu(&mut next, second(2), &spec);
    assert!(closed(&mut next, second(9), &spec) && !closed(&mut next, second(10), &spec), "the third time: 8 s");
}

#[test]
fn a_success_is_saved_too_so_that_another_processs_copy_of_the_failure_does_not_come_back() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    run_out_on_the_gpu(&mut scheduler, second(1), &spec);
    let mut on_disk = saved(&mut scheduler, second(1));
    assert_eq!(on_disk.failures().iter().count(), 1);
    scheduler.submit(second(3), TaskSpec { devices: crate::DeviceSet::only(GPU), ..spec }, ()).unwrap();
    let run = start(&mut scheduler, second(3), GPU.0);
    settle(&mut scheduler, second(3), &run, None);
    on_disk.merge(&saved(&mut scheduler, second(3))).unwrap();
    assert_eq!(on_disk.failures().iter().count(), 0);
}

#[test]
fn a_rung_that_a_device_cannot_do_is_never_tried_there_again_and_is_no_shortage_of_memory() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    scheduler.submit(second(1), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, second(1), GPU.0);
    settle(&mut scheduler, second(1), &run, Some(Fault::Unsupported { detail: "no f64".into() }));
    let run = start(&mut scheduler, second(1), CPU.0);
    assert_eq!(run.rung, 1, "stepped down");
    settle(&mut scheduler, second(1), &run, None);
    let day = second(24 * 3600);
    assert_eq!(refusal_on_gpu(&mut scheduler, day, &spec), Some(Refusal::Unsupported));
    assert!(scheduler.health(GPU).is_well());
    // Not even as the last way left: the device said that it cannot.
    scheduler.submit(day, TaskSpec { devices: crate::DeviceSet::only(GPU), ..spec.clone() }, ()).unwrap();
    let [ended] = &scheduler.drain_endings()[..] else { panic!("it ends at once") };
    assert!(matches!(ended.error, TaskError::Exhausted { .. }) && ended.error.to_string().contains("not supported"));

    let profile = saved(&mut scheduler, day);
    assert_eq!(profile.failures().iter().count(), 0);
    let said: Vec<_> = profile.failures().unsupported().map(UnsupportedCell::detail).collect();
    assert_eq!(said, ["no f64"]);
    let (mut next, spec) = restarted(&profile, 60);
    assert_eq!(refusal_on_gpu(&mut next, second(1), &spec), Some(Refusal::Unsupported));
    let (mut later, spec) = restarted(&profile, 30 * 24 * 3600);
    assert_eq!(refusal_on_gpu(&mut later, second(1), &spec), None, "a mistake is not for ever");
}

#[test]
fn what_failed_is_forgotten_when_asked_of_one_workload_or_of_all() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    let other = TaskSpec::new(scheduler.register("other"), gpu_or_cpu(), 10);
    for each in [&spec, &other] {
        run_out_on_the_gpu(&mut scheduler, second(1), each);
    }
    scheduler.forget_failures(second(1), Some(other.workload));
    assert!(closed(&mut scheduler, second(1), &spec) && !closed(&mut scheduler, second(1), &other));
    scheduler.forget_failures(second(1), None);
    assert!(!closed(&mut scheduler, second(1), &spec));
    assert_eq!(saved(&mut scheduler, second(1)).failures().iter().count(), 0, "nor is it saved");
}

/// What is yet to be saved of other workloads is not lost, and whoever waited because of it goes on.
#[test]
fn forgetting_takes_nothing_from_others_and_frees_who_waits() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    let other = TaskSpec::new(scheduler.register("other"), gpu_or_cpu(), 10);
    for each in [&spec, &other] {
        run_out_on_the_gpu(&mut scheduler, second(1), each);
    }
    scheduler.device_faulted(second(1), CPU, Ailment::Lost);
    scheduler.submit(second(1), other.clone(), ()).unwrap();
    assert!(scheduler.take(second(1), GPU).is_none(), "the CPU may come back");
    scheduler.forget_failures(second(1), Some(other.workload));
    assert!(scheduler.take(second(1), GPU).is_some());
    let profile = saved(&mut scheduler, second(1));
    assert_eq!(profile.failures().iter().map(|failed| failed.key().workload()).collect::<Vec<_>>(), ["w"]);
}

/// The second of two equal tasks is chosen for from memory; that must not remember what was forgotten.
#[test]
fn after_forgetting_the_next_task_is_chosen_for_anew() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    run_out_on_the_gpu(&mut scheduler, second(1), &spec);
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos(1));
    for _ in 0..3 {
        scheduler.submit(second(1), spec.clone(), ()).unwrap();
    }
    assert_eq!(depths(&scheduler), [3, 0]);
    scheduler.forget_failures(second(1), None);
    scheduler.submit(second(1), spec, ()).unwrap();
    assert_eq!(depths(&scheduler), [3, 1]);
}

#[test]
fn what_an_earlier_process_saw_fail_is_forgotten_before_it_is_used() {
    let key = CellKey::new("w", "gpu", "the gpu");
    let mut profile = Profile::new(Hardware { key: "k".into(), devices: vec![] }, env!("CARGO_PKG_VERSION"), TODAY);
    let failed = FailedCell::out_of_memory(key, 1, Bytes(1), MemoryMoment::Run, env!("CARGO_PKG_VERSION"), TODAY);
    profile.failures_mut().remember(failed.unwrap());
    let (mut remembers, spec) = restarted(&profile, 1);
    assert!(closed(&mut remembers, second(1), &spec));
    let (mut forgets, spec) = restarted(&profile, 1);
    forgets.forget_failures(second(1), Some(spec.workload));
    assert!(!closed(&mut forgets, second(1), &spec));
}

#[test]
fn why_knows_what_was_saved_before_the_first_task_and_leaves_out_what_is_old() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos(400));
    let profile = saved(&mut scheduler, second(1));
    let measured_on_gpu = |seconds| {
        let (mut next, spec) = restarted(&profile, seconds);
        let candidates = next.why(second(1), &spec);
        let on_gpu = candidates.iter().find(|candidate| candidate.device == GPU && candidate.rung == "gpu");
        on_gpu.unwrap().estimate.unwrap().measured
    };
    assert!(measured_on_gpu(60));
    assert!(!measured_on_gpu(8 * 24 * 3600));
}

#[test]
fn the_first_task_goes_by_what_was_saved() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos::millis(4));
    scheduler.teach(spec.workload, "cpu", CPU, 10, Nanos::millis(1));
    let profile = saved(&mut scheduler, second(1));
    let (mut next, spec) = restarted(&profile, 60);
    next.submit(second(1), spec, ()).unwrap();
    let run = next.take(second(1), CPU).expect("it is known to be faster");
    assert_eq!((run.estimate.run, run.estimate.measured), (Nanos::millis(1), true));
}

#[test]
fn a_set_is_planned_by_what_was_saved() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos::millis(4));
    scheduler.teach(spec.workload, "cpu", CPU, 10, Nanos::millis(1));
    let profile = saved(&mut scheduler, second(1));
    let (mut next, spec) = restarted(&profile, 60);
    next.config.lookahead = 50;
    let task = crate::scheduler::SetTask { spec, job: (), after: Default::default() };
    let ids = next.submit_all(second(1), vec![task; 4]).unwrap();
    assert!(ids.iter().all(|id| next.tasks.get(*id).is_some_and(|state| state.planned.is_some())));
}

/// Those that are queued on a device were chosen for before anything was known.
#[test]
fn what_is_queued_for_a_rung_that_closes_goes_elsewhere_untried() {
    for fault in [out_of_memory(), Some(Fault::Unsupported { detail: String::new() })] {
        let mut scheduler = a_box(Strategy::EarliestFinish, 1);
        let spec = spec(&mut scheduler, gpu_or_cpu());
        scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos(10));
        scheduler.teach(spec.workload, "cpu", CPU, 10, Nanos(1_000_000));
        for _ in 0..20 {
            scheduler.submit(second(1), spec.clone(), ()).unwrap();
        }
        assert_eq!(depths(&scheduler), [0, 20]);
        let run = start(&mut scheduler, second(1), GPU.0);
        settle(&mut scheduler, second(1), &run, fault);
        assert_eq!(depths(&scheduler), [20, 0]);
        scheduler.check_invariants().unwrap();
    }
}

/// A ladder, or a device, that comes later finds what was saved of it, before anything has run.
#[test]
fn what_was_saved_is_known_for_each_ladder_and_each_device_as_it_comes() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    for (rung, device) in [("gpu", GPU), ("cpu", CPU), ("any", CPU), ("any", GPU)] {
        scheduler.teach(spec.workload, rung, device, 10, Nanos::millis(3));
    }
    let profile = saved(&mut scheduler, second(1));
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    scheduler.load(second(0), TODAY, Arc::new(profile), device_names());
    let spec = super::spec(&mut scheduler, gpu_or_cpu());
    let later = TaskSpec { ladder: anywhere(10), ..spec.clone() };
    let known = |scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec| {
        let estimates = scheduler.why(second(1), spec).into_iter().filter_map(|each| each.estimate);
        estimates.filter(|estimate| estimate.measured).count()
    };
    let add = |scheduler: &mut Scheduler<Nothing>, kind| {
        let device = scheduler.add_device(exact(kind, 1, 1_000));
        scheduler.device_opened(second(0), device);
    };
    add(&mut scheduler, DeviceKind::Cpu);
    assert_eq!((known(&mut scheduler, &spec), known(&mut scheduler, &later)), (1, 1));
    assert_eq!((known(&mut scheduler, &spec), known(&mut scheduler, &later)), (1, 1));
    add(&mut scheduler, DeviceKind::Gpu);
    assert_eq!(known(&mut scheduler, &later), 2);
    assert_eq!(known(&mut scheduler, &later), 2);
    assert_eq!(known(&mut scheduler, &spec), 2);
}

/// What is free and what we hold ourselves: our own runs are no reason to try again.
#[test]
fn what_others_leave_is_what_is_free_and_what_is_ours() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let (capacity, free, ours) = (Bytes(1_000), Bytes(400), Bytes(300));
    let memory = crate::line::Memory { capacity, free, ours, resident: None };
    scheduler.set_memory(Moment(1), GPU, memory);
    assert_eq!(scheduler.left_by_others(GPU), Bytes(700));
}
