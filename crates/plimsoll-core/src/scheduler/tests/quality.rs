//! Quality: a lower one is taken only while a better one does not fit, or would be too late.

use super::*;
use crate::{Quality, Refusal, TaskId};

/// A good rung of 500 bytes that takes 4 ms, and one half as good, of 10 bytes, that takes 1 ms.
fn good_or_cheap(scheduler: &mut Scheduler<Nothing>) -> TaskSpec {
    let half = Quality::new(0.5);
    let ladder = Ladder::from(vec![
        Rung::new("good", Place::On(DeviceKind::Gpu), Footprint::task(Bytes(500))),
        Rung::new("cheap", Place::On(DeviceKind::Gpu), Footprint::task(Bytes(10))).with_quality(half),
    ]);
    let spec = TaskSpec { quality_min: half, ..spec(scheduler, ladder) };
    scheduler.teach(spec.workload, "good", GPU, 10, Nanos::millis(4));
    scheduler.teach(spec.workload, "cheap", GPU, 10, Nanos::millis(1));
    spec
}

fn started_rung(scheduler: &mut Scheduler<Nothing>, now: u64, task: TaskId) -> &'static str {
    let run = start(scheduler, Moment(now), GPU.0);
    assert_eq!(run.task, task);
    let rung = ["good", "cheap"][run.rung];
    settle(scheduler, Moment(now), &run, None);
    rung
}

#[test]
fn speed_alone_is_no_reason_for_a_lower_quality() {
    for strategy in Strategy::ALL {
        let mut scheduler = a_box(strategy, 1);
        let spec = good_or_cheap(&mut scheduler);
        for now in 1..5 {
            let task = scheduler.submit(Moment(now), spec.clone(), ()).unwrap();
            assert_eq!(started_rung(&mut scheduler, now, task), "good", "{strategy}");
        }
    }
}

#[test]
fn a_lower_quality_is_taken_while_the_better_does_not_fit_and_left_again() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = good_or_cheap(&mut scheduler);
    let (lease, _) = scheduler.lease(Moment(1), &[(GPU, Bytes(600))]).unwrap();
    let short = scheduler.submit(Moment(2), spec.clone(), ()).unwrap();
    assert_eq!(started_rung(&mut scheduler, 2, short), "cheap");
    let queued = scheduler.submit(Moment(3), spec.clone(), ()).unwrap();
    scheduler.return_grant(Moment(4), lease);
    assert_eq!(started_rung(&mut scheduler, 4, queued), "good", "it was queued for the cheap one");
    scheduler.check_invariants().unwrap();
    let later = scheduler.submit(Moment(5), spec, ()).unwrap();
    assert_eq!(started_rung(&mut scheduler, 5, later), "good");
}

/// A better rung fits by the time the next is taken along.
#[test]
fn nobody_is_taken_along_at_a_lower_quality_who_could_have_a_better() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = good_or_cheap(&mut scheduler);
    let (lease, _) = scheduler.lease(Moment(1), &[(GPU, Bytes(600))]).unwrap();
    let tasks = [(); 3].map(|()| scheduler.submit(Moment(2), spec.clone(), ()).unwrap());
    let head = start(&mut scheduler, Moment(2), GPU.0);
    let behind = scheduler.take_behind(Moment(2), head.run).map(|behind| behind.task);
    assert_eq!((head.task, behind), (tasks[0], Some(tasks[1])), "nothing better fits");
    scheduler.return_grant(Moment(3), lease);
    assert!(scheduler.take_behind(Moment(3), head.run).is_none());
}

#[test]
fn a_lower_quality_is_taken_if_the_better_would_be_too_late() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = good_or_cheap(&mut scheduler);
    let within = |span: Nanos| TaskSpec { deadline: Some(Moment(9) + span), ..spec.clone() };
    let soon = scheduler.submit(Moment(9), within(Nanos::millis(2)), ()).unwrap();
    assert_eq!(started_rung(&mut scheduler, 9, soon), "cheap");
    let just = scheduler.submit(Moment(9), within(Nanos::millis(4)), ()).unwrap();
    assert_eq!(started_rung(&mut scheduler, 9, just), "good", "at the deadline is in time");
    let late = scheduler.submit(Moment(9), within(Nanos::millis(20)), ()).unwrap();
    assert_eq!(started_rung(&mut scheduler, 9, late), "good");
}

#[test]
fn what_the_caller_does_not_allow_is_not_taken_whatever_fits() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = TaskSpec { quality_min: Quality::FULL, ..good_or_cheap(&mut scheduler) };
    let (_lease, _) = scheduler.lease(Moment(1), &[(GPU, Bytes(600))]).unwrap();
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(3), GPU).is_none());
}

/// A device that could do it sooner, but not as well, does not steal it.
#[test]
fn stealing_lowers_no_quality() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 2);
    let other = DeviceId(2);
    let spec = good_or_cheap(&mut scheduler);
    scheduler.teach(spec.workload, "cheap", other, 10, Nanos::millis(1));
    scheduler.teach(spec.workload, "good", other, 10, Nanos::millis(4));
    let (_lease, _) = scheduler.lease(Moment(1), &[(other, Bytes(600))]).unwrap();
    let running = scheduler.submit(Moment(2), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(2), GPU.0);
    assert_eq!(run.task, running);
    for _ in 0..20 {
        scheduler.submit(Moment(2), spec.clone(), ()).unwrap();
    }
    let stolen = scheduler.take(Moment(3), other);
    assert!(stolen.is_none(), "stolen for rung {:?}", stolen.map(|run| run.rung));
}

/// Good on the CPU, cheap on the GPUs; the second GPU steals what is queued on the first.
#[test]
fn a_lower_quality_is_stolen_only_while_nothing_better_fits() {
    let (mut scheduler, half) = (a_box(Strategy::EarliestFinish, 2), Quality::new(0.5));
    let thief = DeviceId(2);
    let ladder = Ladder::from(vec![
        Rung::new("good", Place::On(DeviceKind::Cpu), Footprint::task(Bytes(500))),
        Rung::new("cheap", Place::On(DeviceKind::Gpu), Footprint::task(Bytes(10))).with_quality(half),
    ]);
    let spec = TaskSpec { quality_min: half, ..spec(&mut scheduler, ladder) };
    for (rung, device) in [("good", CPU), ("cheap", GPU), ("cheap", thief)] {
        scheduler.teach(spec.workload, rung, device, 10, Nanos::millis(1));
    }
    scheduler.device_faulted(Moment(1), thief, crate::Ailment::Lost);
    let (lease, _) = scheduler.lease(Moment(1), &[(CPU, Bytes(600))]).unwrap();
    for _ in 0..5 {
        scheduler.submit(Moment(2), spec.clone(), ()).unwrap();
    }
    scheduler.device_opened(Moment(3), thief);
    let stolen = scheduler.take(Moment(3), thief).expect("the other GPU has a long queue");
    settle(&mut scheduler, Moment(4), &stolen, None);
    scheduler.return_grant(Moment(5), lease);
    assert!(scheduler.take(Moment(5), thief).is_none(), "the CPU can do it well by now");
}

/// It was refused because its memory did not come in time; since then it has.
#[test]
fn memory_that_comes_late_is_used_all_the_same() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = good_or_cheap(&mut scheduler);
    scheduler.workloads.cell_mut(spec.workload, "good", GPU).cost = crate::profile::Cell::default();
    scheduler.teach(spec.workload, "good", GPU, 10, Nanos::micros(1));
    let (lease, _) = scheduler.lease(Moment(1), &[(GPU, Bytes(845))]).unwrap();
    let task = scheduler.submit(Moment(2), spec, ()).unwrap();
    let queued_for = |scheduler: &Scheduler<Nothing>| scheduler.queued(GPU).collect::<Vec<_>>();
    assert!(scheduler.take(Moment(2), GPU).is_none());
    assert_eq!(queued_for(&scheduler), [(task, 0)], "nothing fits: it waits for the one that would end first");
    let late = Moment(2) + scheduler.config().memory_wait_max;
    scheduler.tick(late);
    assert!(scheduler.take(late, GPU).is_none());
    assert_eq!(queued_for(&scheduler), [(task, 1)]);
    scheduler.return_grant(late, lease);
    assert_eq!(started_rung(&mut scheduler, late.0, task), "good");
}

#[test]
fn why_says_what_was_wrong_with_the_other_quality() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = good_or_cheap(&mut scheduler);
    let on_gpu = |scheduler: &mut Scheduler<Nothing>| {
        let why = scheduler.why(Moment(1), &spec).into_iter().filter(|candidate| candidate.device == GPU);
        why.map(|candidate| (candidate.rung, candidate.refusal)).collect::<Vec<_>>()
    };
    assert_eq!(on_gpu(&mut scheduler), [("good", None), ("cheap", Some(Refusal::BetterQualityFits))]);
    let (_lease, _) = scheduler.lease(Moment(1), &[(GPU, Bytes(600))]).unwrap();
    let by = scheduler.config().memory_wait_max + Nanos::millis(4);
    assert_eq!(on_gpu(&mut scheduler), [("cheap", None), ("good", Some(Refusal::FinishesLater { by }))]);
}
