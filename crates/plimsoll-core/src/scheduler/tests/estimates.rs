//! What a choice is based on: figures of its own workload, and of runs that are not yet over.

use super::*;
use crate::event::What;
use crate::scheduler::Estimate;
use crate::task::ReferenceUse;
use crate::{ContentKey, DeviceSet, Refusal};

#[test]
fn a_run_that_overruns_hides_no_other_runs_remaining_time() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let [short, long] = ["short", "long"].map(|name| TaskSpec::new(scheduler.register(name), anywhere(1), 10));
    scheduler.teach(short.workload, "any", CPU, 10, Nanos::millis(1));
    scheduler.teach(long.workload, "any", CPU, 10, Nanos::seconds(10));
    for spec in [&short, &long] {
        scheduler.submit(Moment(0), spec.clone(), ()).unwrap();
        start(&mut scheduler, Moment(0), CPU.0);
    }
    // The short one should have ended nine seconds ago; the long one has one more second to go.
    let now = Moment(Nanos::seconds(9).0);
    let wait = scheduler.why(now, &short)[0].estimate.expect("it is possible").wait;
    assert_eq!(wait, Nanos::millis(500), "a second's work for two slots");
}

#[test]
fn throughput_of_one_workload_does_not_speak_for_another() {
    let mut scheduler = a_box(Strategy::AdaptiveThroughput, 1);
    // A million pixels in a millisecond, on the GPU only; then items, one a millisecond, as fast on either device.
    let pixels = TaskSpec::new(scheduler.register("pixels"), on_gpu(10), 1_000_000);
    let items = TaskSpec::new(scheduler.register("items"), anywhere(10), 1);
    let run_one = |scheduler: &mut Scheduler<Nothing>, at: u64, spec: &TaskSpec, device: DeviceId| {
        let spec = TaskSpec { devices: DeviceSet::only(device), ..spec.clone() };
        scheduler.submit(Moment(at), spec, ()).unwrap();
        let run = start(scheduler, Moment(at), device.0);
        let measured = Measured { run: Nanos::millis(1), ..Measured::default() };
        scheduler.settle(Moment(at), run.run, Outcome { result: Ok(()), session: Some(()), measured });
    };
    for at in 1..20 {
        run_one(&mut scheduler, at, &items, CPU);
        run_one(&mut scheduler, at, &items, GPU);
    }
    run_one(&mut scheduler, 31, &pixels, GPU);
    for _ in 0..90 {
        scheduler.submit(Moment(32), items.clone(), ()).unwrap();
    }
    assert_eq!(depths(&scheduler), [60, 30], "two slots of the CPU, one of the GPU");
}

#[test]
fn strict_is_the_best_rung_that_the_machine_and_the_caller_allow() {
    for (gpus, devices, starts_on) in
        [(0, DeviceSet::ALL, CPU), (1, DeviceSet::only(CPU), CPU), (1, DeviceSet::ALL, GPU)]
    {
        let mut scheduler = a_box(Strategy::EarliestFinish, gpus);
        let spec = TaskSpec { strict: true, devices, ..spec(&mut scheduler, gpu_or_cpu()) };
        scheduler.submit(Moment(1), spec, ()).unwrap();
        assert!(errors(&mut scheduler).is_empty(), "{gpus} GPUs");
        assert!(scheduler.take(Moment(1), starts_on).is_some());
    }
}

/// A GPU that is away for a moment is no reason to fall back.
#[test]
fn strict_does_not_step_down_because_a_device_is_ill() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = TaskSpec { strict: true, ..spec(&mut scheduler, gpu_or_cpu()) };
    scheduler.device_faulted(Moment(1), GPU, crate::Ailment::Lost);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(2), CPU).is_none());
    scheduler.device_opened(Moment(3), GPU);
    assert!(scheduler.take(Moment(3), GPU).is_some());
}

#[test]
fn a_slot_is_kept_by_all_that_a_task_does_in_it() {
    let estimate = Estimate { wait: Nanos(1), bring: Nanos(2), open: Nanos(4), run: Nanos(8), ..Estimate::default() };
    assert_eq!((estimate.occupies(), estimate.finish()), (Nanos(14), Nanos(15)));
}

#[test]
fn why_says_by_how_much_the_others_finish_later() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 2);
    let spec = spec(&mut scheduler, on_gpu(10));
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos::millis(5));
    scheduler.teach(spec.workload, "gpu", DeviceId(2), 10, Nanos::millis(2));
    let why = scheduler.why(Moment::START, &spec);
    let second = why.iter().find(|candidate| candidate.device == GPU).expect("it is possible");
    assert_eq!(second.refusal, Some(Refusal::FinishesLater { by: Nanos::millis(3) }));
}

/// A device that nobody has tried counts as fast as the fastest, so that it is tried; while that is under way, as slower
/// than the slowest.
#[test]
fn a_device_without_figures_is_tried_by_one_task() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 3);
    let spec = spec(&mut scheduler, on_gpu(10));
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos::millis(5));
    scheduler.teach(spec.workload, "gpu", DeviceId(2), 10, Nanos::millis(9));
    let untried = |scheduler: &mut Scheduler<Nothing>| {
        let why = scheduler.why(Moment::START, &spec);
        let candidate = why.iter().find(|candidate| candidate.device == DeviceId(3)).expect("it is possible");
        candidate.estimate.map(|estimate| (estimate.run, estimate.measured))
    };
    assert_eq!(untried(&mut scheduler), Some((Nanos::millis(5), false)));
    for _ in 0..3 {
        scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
    }
    assert_eq!(depths(&scheduler), [0, 1, 1, 1]);
    assert_eq!(untried(&mut scheduler), Some((Nanos::millis(36), false)), "four times the slowest");
}

/// A reference costs something where it is neither prepared nor about to be.
#[test]
fn a_reference_is_brought_once() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let base = spec(&mut scheduler, anywhere(1));
    let using = |content| {
        let references = [ReferenceUse { content: ContentKey(content), pinned: false }].into_iter().collect();
        TaskSpec { references, ..base.clone() }
    };
    scheduler.submit(Moment(1), using(1), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    scheduler.prepared(run.run, 0, ());
    let measured = Measured { run: Nanos(1_000), bring: Nanos(300), brought: 1, ..Measured::default() };
    scheduler.settle(Moment(2), run.run, Outcome { result: Ok(()), session: Some(()), measured });
    let queued = scheduler.submit(Moment(3), using(2), ()).unwrap();
    let bring = [1, 2, 3].map(|content| scheduler.why(Moment(3), &using(content))[0].estimate.map(|each| each.bring));
    assert_eq!(bring, [Nanos::ZERO, Nanos::ZERO, Nanos(300)].map(Some), "prepared, queued for, unknown");
    assert!(scheduler.cancel(Moment(4), queued));
    let bring = scheduler.why(Moment(4), &using(2))[0].estimate.map(|each| each.bring);
    assert_eq!(bring, Some(Nanos(300)), "nobody is queued for it any more");
}

/// One device has run the workload in this process, of the other only the profile knows.
#[test]
fn what_the_profile_knows_counts_as_much_as_what_was_measured_lately() {
    let mut scheduler = a_box(Strategy::AdaptiveThroughput, 1);
    let spec = spec(&mut scheduler, anywhere(10));
    scheduler.teach(spec.workload, "any", GPU, 10, Nanos::millis(1));
    scheduler.submit(Moment(1), TaskSpec { devices: DeviceSet::only(CPU), ..spec.clone() }, ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    let measured = Measured { run: Nanos::millis(1), ..Measured::default() };
    scheduler.settle(Moment(2), run.run, Outcome { result: Ok(()), session: Some(()), measured });
    for _ in 0..90 {
        scheduler.submit(Moment(3), spec.clone(), ()).unwrap();
    }
    assert_eq!(depths(&scheduler), [60, 30], "two slots of the CPU, one of the GPU");
}

#[test]
fn listeners_are_told_where_a_task_was_placed_and_when_it_should_be_done() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(1));
    scheduler.teach(spec.workload, "any", CPU, 10, Nanos(700));
    scheduler.listen(true);
    let task = scheduler.submit(Moment(50), spec, ()).unwrap();
    let placed = What::Placed { task, rung: "any", device: CPU, finish: Moment(750) };
    assert!(scheduler.drain_events().iter().any(|event| event.at == Moment(50) && event.what == placed));
}

/// A figure that was learnt over many runs stays when the machine is busy for a moment; throughput follows it.
#[test]
fn shares_follow_what_a_device_gives_lately() {
    let mut scheduler = a_box(Strategy::AdaptiveThroughput, 1);
    let spec = spec(&mut scheduler, anywhere(10));
    scheduler.teach(spec.workload, "any", GPU, 10, Nanos::millis(1));
    for run_ms in [1, 1, 1, 1, 1, 10, 10, 10, 10] {
        scheduler.submit(Moment(1), TaskSpec { devices: DeviceSet::only(CPU), ..spec.clone() }, ()).unwrap();
        let run = start(&mut scheduler, Moment(1), CPU.0);
        let measured = Measured { run: Nanos::millis(run_ms), ..Measured::default() };
        scheduler.settle(Moment(2), run.run, Outcome { result: Ok(()), session: Some(()), measured });
    }
    for _ in 0..90 {
        scheduler.submit(Moment(3), spec.clone(), ()).unwrap();
    }
    assert_eq!(depths(&scheduler), [52, 38], "two slots at 0.69 of the GPU's one");
}

/// A device was guessed to be of use; then the first task shows what it really takes.
#[test]
fn the_first_figures_of_a_device_move_what_was_queued_there_on_a_guess() {
    for (strategy, moves) in [(Strategy::EarliestFinish, true), (Strategy::RoundRobin, false)] {
        let mut scheduler = a_box(strategy, 2);
        let spec = spec(&mut scheduler, on_gpu(10));
        scheduler.teach(spec.workload, "gpu", DeviceId(2), 10, Nanos::millis(1));
        for _ in 0..20 {
            scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
        }
        let before = depths(&scheduler)[GPU.index()];
        assert!(before > 2, "{before}");
        let run = start(&mut scheduler, Moment(1), GPU.0);
        let measured = Measured { run: Nanos::seconds(1), ..Measured::default() };
        scheduler.settle(Moment(2), run.run, Outcome { result: Ok(()), session: Some(()), measured });
        assert_eq!(depths(&scheduler)[GPU.index()], if moves { 0 } else { before - 1 }, "{strategy}");
        scheduler.check_invariants().unwrap();
    }
}

/// It declared nothing and took something: that is no factor by which others could be off.
#[test]
fn a_task_that_declares_nothing_says_nothing_of_those_that_do() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let none = spec(&mut scheduler, anywhere(0));
    scheduler.submit(Moment(1), none.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    let measured = Measured { run: Nanos(1_000), peak: Some(Bytes(50)), ..Measured::default() };
    scheduler.settle(Moment(2), run.run, Outcome { result: Ok(()), session: Some(()), measured });
    let some = TaskSpec { ladder: anywhere(100), ..none };
    assert_eq!(scheduler.why(Moment(3), &some)[0].estimate.map(|each| each.bytes), Some(Bytes(100)));
}

/// Whole, or in strips: both on the CPU.
fn whole_or_strips(whole: u64) -> Ladder {
    let rung = |name, bytes| Rung::new(name, Place::On(DeviceKind::Cpu), Footprint::task(Bytes(bytes)));
    Ladder::from(vec![rung("whole", whole), rung("strips", 1)])
}

/// A busy machine taught that strips are quicker. They are for when the whole does not fit.
#[test]
fn a_lower_rung_is_not_taken_for_its_figures_but_for_lack_of_memory() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let fits = spec(&mut scheduler, whole_or_strips(500));
    scheduler.teach(fits.workload, "whole", CPU, 10, Nanos::millis(50));
    scheduler.teach(fits.workload, "strips", CPU, 10, Nanos::millis(1));
    scheduler.submit(Moment(1), fits.clone(), ()).unwrap();
    let first = start(&mut scheduler, Moment(1), CPU.0);
    assert_eq!(first.rung, 0);
    let why = scheduler.why(Moment(2), &fits);
    assert_eq!(why[0].rung, "strips", "the whole does not fit beside the one that runs, and strips are done sooner");
    scheduler.submit(Moment(2), fits.clone(), ()).unwrap();
    assert_eq!(start(&mut scheduler, Moment(2), CPU.0).rung, 1);
    settle(&mut scheduler, Moment(3), &first, None);
    let refused = scheduler.why(Moment(4), &fits);
    let strips = refused.iter().find(|candidate| candidate.rung == "strips").expect("it is listed");
    assert_eq!(strips.refusal, Some(Refusal::BetterRungFits));
    let never_fits = TaskSpec { ladder: whole_or_strips(5_000), ..fits };
    assert_eq!(scheduler.why(Moment(4), &never_fits)[0].rung, "strips");
}

/// What is told of a task is what ran.
#[test]
fn a_task_that_is_to_explain_itself_tells_what_it_started_as() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let plain = spec(&mut scheduler, gpu_or_cpu());
    scheduler.teach(plain.workload, "gpu", GPU, 10, Nanos::millis(1));
    scheduler.teach(plain.workload, "cpu", CPU, 10, Nanos::micros(1_500));
    for explain in [false, true, true] {
        scheduler.submit(Moment(1), TaskSpec { explain, ..plain.clone() }, ()).unwrap();
    }
    // The GPU is busy with the first; the CPU has the next.
    let runs = [GPU, CPU].map(|device| start(&mut scheduler, Moment(1), device.0));
    let told = runs.map(|run| {
        let measured = Measured { run: Nanos::millis(1), ..Measured::default() };
        match scheduler.settle(Moment(2), run.run, Outcome { result: Ok(()), session: Some(()), measured }) {
            crate::scheduler::Settled::Done(report) => (report.device, report.why),
            other => panic!("{other:?}"),
        }
    });
    assert!(told[0].1.is_empty(), "nobody asked");
    let (device, why) = &told[1];
    assert_eq!((*device, why[0].device, why[0].rung, &why[0].refusal), (CPU, CPU, "cpu", &None));
    assert!(why[1..].iter().all(|candidate| candidate.refusal.is_some()));
    let mut named: Vec<_> = why.iter().map(|candidate| (candidate.rung, candidate.device)).collect();
    named.sort_unstable();
    assert_eq!(named, [("cpu", CPU), ("cpu", GPU), ("gpu", CPU), ("gpu", GPU)], "each once");
}

/// It was queued in strips while the whole did not fit; when it starts the whole would.
#[test]
fn what_started_is_named_once_even_if_it_would_not_be_chosen_now() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = TaskSpec { explain: true, ..spec(&mut scheduler, whole_or_strips(500)) };
    scheduler.teach(spec.workload, "whole", CPU, 10, Nanos::millis(50));
    scheduler.teach(spec.workload, "strips", CPU, 10, Nanos::millis(1));
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let first = start(&mut scheduler, Moment(1), CPU.0);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    settle(&mut scheduler, Moment(3), &first, None);
    let second = start(&mut scheduler, Moment(4), CPU.0);
    let outcome = Outcome { result: Ok(()), session: Some(()), measured: Measured::default() };
    let crate::scheduler::Settled::Done(report) = scheduler.settle(Moment(5), second.run, outcome) else {
        panic!("it is done")
    };
    let told = report.why.iter().map(|candidate| (candidate.rung, candidate.refusal.is_none()));
    assert_eq!(told.collect::<Vec<_>>(), [("strips", true), ("whole", false)]);
}

/// What was once more than declared is expected again, on that device.
#[test]
fn an_estimate_counts_what_was_seen_to_be_taken() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let plain = spec(&mut scheduler, anywhere(100));
    scheduler.submit(Moment(1), TaskSpec { devices: crate::DeviceSet::only(CPU), ..plain.clone() }, ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    let measured = Measured { run: Nanos(1_000), peak: Some(Bytes(150)), ..Measured::default() };
    scheduler.settle(Moment(2), run.run, Outcome { result: Ok(()), session: Some(()), measured });
    let on = |scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec, device: DeviceId| {
        let why = scheduler.why(Moment(3), spec);
        why.iter().find(|each| each.device == device).and_then(|each| each.estimate).map(|estimate| estimate.bytes)
    };
    assert_eq!([CPU, GPU].map(|device| on(&mut scheduler, &plain, device)), [Some(Bytes(150)), Some(Bytes(100))]);
}
