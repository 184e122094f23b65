//! Deadlines: those that pass, and those that have already passed when somebody looks.

use super::*;
use crate::TaskError;

#[test]
fn a_deadline_that_has_passed_ends_a_task_at_submission() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = TaskSpec { deadline: Some(Moment(5)), ..spec(&mut scheduler, anywhere(1)) };
    scheduler.submit(Moment(5), spec, ()).unwrap();
    assert!(scheduler.take(Moment(5), CPU).is_none());
    let ended = errors(&mut scheduler);
    assert!(matches!(ended[..], [TaskError::DeadlinePassed { started: false }]), "{ended:?}");
    assert_eq!(scheduler.unsettled(), 0);
}

#[test]
fn a_deadline_that_has_passed_ends_a_task_instead_of_starting_it() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let base = spec(&mut scheduler, anywhere(1));
    scheduler.teach(base.workload, "any", CPU, 10, Nanos(1));
    let due = TaskSpec { deadline: Some(Moment(5)), ..base.clone() };
    for spec in [&due, &base, &due, &base] {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    let head = scheduler.take(Moment(6), CPU).expect("there is one without a deadline");
    assert!(scheduler.take_behind(Moment(6), head.run).is_some(), "there are two");
    assert_eq!(errors(&mut scheduler).len(), 2);
    assert!(scheduler.take_behind(Moment(6), head.run).is_none());
    scheduler.check_invariants().unwrap();
}

/// The list of deadlines is swept: it does not grow with every task that ever had one.
#[test]
fn deadlines_of_tasks_that_have_ended_are_forgotten() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = TaskSpec { deadline: Some(Moment(u64::MAX - 1)), ..spec(&mut scheduler, anywhere(1)) };
    for now in 1..5_000 {
        scheduler.submit(Moment(now), spec.clone(), ()).unwrap();
        let run = start(&mut scheduler, Moment(now), CPU.0);
        settle(&mut scheduler, Moment(now), &run, None);
    }
    assert!(scheduler.deadlines.len() < 200, "{} are kept", scheduler.deadlines.len());
    let ids: Vec<_> = (0..5_000).map(|_| scheduler.submit(Moment(5_000), spec.clone(), ()).unwrap()).collect();
    ids.into_iter().for_each(|id| assert!(scheduler.cancel(Moment(5_000), id)));
    scheduler.submit(Moment(5_000), spec, ()).unwrap();
    assert!(scheduler.deadlines.len() < 200, "{} are kept of many at once", scheduler.deadlines.len());
}

#[test]
fn a_deadline_ends_a_task_when_it_passes_started_or_not() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let base = spec(&mut scheduler, anywhere(1));
    for deadline in [50, 60] {
        scheduler.submit(Moment(1), TaskSpec { deadline: Some(Moment(deadline)), ..base.clone() }, ()).unwrap();
    }
    let run = start(&mut scheduler, Moment(2), CPU.0);
    assert_eq!(scheduler.next_tick(), Some(Moment(50)));
    scheduler.tick(Moment(49));
    assert!(errors(&mut scheduler).is_empty());
    scheduler.tick(Moment(50));
    assert!(matches!(errors(&mut scheduler)[..], [TaskError::DeadlinePassed { started: true }]));
    scheduler.tick(Moment(60));
    assert!(matches!(errors(&mut scheduler)[..], [TaskError::DeadlinePassed { started: false }]));
    settle(&mut scheduler, Moment(70), &run, None);
    scheduler.check_at_rest().unwrap();
}

/// Whoever calls `tick` sleeps until then: the next moment is the earliest of all.
#[test]
fn the_next_tick_is_the_first_thing_that_is_due() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let base = spec(&mut scheduler, on_gpu(1));
    let second = |n: u64| Moment(Nanos::seconds(n).0);
    assert_eq!(scheduler.next_tick(), None);
    scheduler.device_faulted(second(1), GPU, crate::Ailment::Lost);
    scheduler.drain_orders();
    for at in [2, 5] {
        scheduler.submit(second(at), base.clone(), ()).unwrap();
    }
    assert_eq!(scheduler.next_tick(), Some(second(62)), "the first of them gives up on its device");
    for deadline in [40, 30, 70] {
        scheduler.submit(second(6), TaskSpec { deadline: Some(second(deadline)), ..base.clone() }, ()).unwrap();
    }
    assert_eq!(scheduler.next_tick(), Some(second(30)));
}
