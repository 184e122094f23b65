//! Quality: a lower one is taken only while a better one does not fit, or would be too late.

use super::*;
use crate::{Quality, TaskId};

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
    scheduler.release(Moment(4), lease);
    assert_eq!(started_rung(&mut scheduler, 4, queued), "good", "it was queued for the cheap one");
    let later = scheduler.submit(Moment(5), spec, ()).unwrap();
    assert_eq!(started_rung(&mut scheduler, 5, later), "good");
}

#[test]
fn a_lower_quality_is_taken_if_the_better_would_be_too_late() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = good_or_cheap(&mut scheduler);
    let within = |span: Nanos| TaskSpec { deadline: Some(Moment(9) + span), ..spec.clone() };
    let soon = scheduler.submit(Moment(9), within(Nanos::millis(2)), ()).unwrap();
    assert_eq!(started_rung(&mut scheduler, 9, soon), "cheap");
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
