//! Predecessors: those that have yet to end, those that have ended, and those that were never there.

use super::*;
use crate::scheduler::Settled;
use crate::scheduler::failed_lately::FAILURES_MAX;
use crate::{SubmitErrorKind, TaskError, TaskId};

fn fail_one(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec) -> TaskId {
    let failed = scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let run = start(scheduler, Moment(1), CPU.0);
    settle(scheduler, Moment(1), &run, Some(Fault::work("it failed")));
    errors(scheduler);
    failed
}

fn after(spec: &TaskSpec, task: TaskId) -> TaskSpec {
    TaskSpec { after: [task].into_iter().collect(), ..spec.clone() }
}

/// Many other tasks that run at the same time end without a result.
fn cancel_others(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec, count: usize) {
    let others: Vec<TaskId> = (0..count).map(|_| scheduler.submit(Moment(2), spec.clone(), ()).unwrap()).collect();
    others.into_iter().for_each(|other| assert!(scheduler.cancel(Moment(2), other)));
    errors(scheduler);
}

#[test]
fn a_failed_predecessor_stays_failed_however_many_fail_after_it() {
    for others in [10, 5_000, 16_000] {
        let mut scheduler = a_box(Strategy::EarliestFinish, 0);
        let spec = spec(&mut scheduler, anywhere(10));
        let failed = fail_one(&mut scheduler, &spec);
        cancel_others(&mut scheduler, &spec, others);
        scheduler.submit(Moment(3), after(&spec, failed), ()).unwrap();
        let ended = errors(&mut scheduler);
        assert!(matches!(ended[..], [TaskError::PredecessorFailed { task, .. }] if task == failed), "{ended:?}");
    }
}

#[test]
fn what_is_not_known_any_more_is_refused_and_never_taken_for_done() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(10));
    let earlier = scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    settle(&mut scheduler, Moment(1), &run, None);
    let failed = fail_one(&mut scheduler, &spec);
    // One at a time, so that each takes the place of the one before.
    (0..FAILURES_MAX).for_each(|_| cancel_others(&mut scheduler, &spec, 1));
    let refused = scheduler.submit(Moment(3), after(&spec, failed), ()).unwrap_err();
    assert_eq!(refused.refusal, SubmitErrorKind::ForgottenPredecessor { task: failed });
    assert_eq!(refused.spec.after[0], failed, "it comes back whole");
    let refused = scheduler.submit(Moment(3), after(&spec, earlier), ()).unwrap_err();
    assert_eq!(refused.refusal, SubmitErrorKind::ForgottenPredecessor { task: earlier }, "it had the same place");
}

#[test]
fn a_predecessor_that_succeeded_holds_nobody_up() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(10));
    let first = scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    settle(&mut scheduler, Moment(1), &run, None);
    (0..500).for_each(|_| cancel_others(&mut scheduler, &spec, 1));
    scheduler.submit(Moment(3), after(&spec, first), ()).unwrap();
    assert!(scheduler.take(Moment(3), CPU).is_some());
}

#[test]
fn a_task_of_another_scheduler_is_no_predecessor() {
    let named = |owner| {
        let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { owner, ..Config::default() }, Moment::START);
        let device = scheduler.add_device(exact(DeviceKind::Cpu, 1, 1_000));
        scheduler.device_opened(Moment::START, device);
        scheduler
    };
    let (mut here, mut there) = (named(1), named(2));
    let specs = [&mut here, &mut there].map(|scheduler| spec(scheduler, anywhere(10)));
    let foreign = there.submit(Moment(1), specs[1].clone(), ()).unwrap();
    let own = here.submit(Moment(1), specs[0].clone(), ()).unwrap();
    assert_ne!(own, foreign);
    let refused = here.submit(Moment(2), after(&specs[0], foreign), ()).unwrap_err();
    assert_eq!(refused.refusal, SubmitErrorKind::UnknownPredecessor { task: foreign });
    assert!(!here.cancel(Moment(2), foreign), "nor is it anything else here");
}

#[test]
fn a_task_starts_once_all_its_predecessors_have_succeeded() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(10));
    let before = [0; 2].map(|_| scheduler.submit(Moment(1), spec.clone(), ()).unwrap());
    let last = TaskSpec { after: before.into_iter().collect(), ..spec };
    let last = scheduler.submit(Moment(1), last, ()).unwrap();
    let runs = [0; 2].map(|_| start(&mut scheduler, Moment(1), CPU.0));
    settle(&mut scheduler, Moment(5), &runs[0], None);
    assert!(scheduler.take(Moment(5), CPU).is_none(), "one of the two still runs");
    settle(&mut scheduler, Moment(8), &runs[1], None);
    let run = start(&mut scheduler, Moment(10), CPU.0);
    assert_eq!(run.task, last);
    let outcome = Outcome { result: Ok(()), session: Some(()), measured: Measured::default() };
    let Settled::Done(report) = scheduler.settle(Moment(12), run.run, outcome) else { panic!("it is done") };
    assert_eq!(report.queued, Nanos(2), "it was ready at 8");
}

#[test]
fn all_that_waits_for_a_failure_ends_with_its_cause() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(10));
    let first = scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let second = scheduler.submit(Moment(1), after(&spec, first), ()).unwrap();
    let third = scheduler.submit(Moment(1), after(&spec, second), ()).unwrap();
    assert!(scheduler.cancel(Moment(2), first));
    let mut ended = scheduler.drain_endings();
    ended.sort_by_key(|ending| ending.task);
    assert_eq!(ended.iter().map(|ending| ending.task).collect::<Vec<_>>(), [first, second, third]);
    let is_caused = |error: &TaskError| matches!(error, TaskError::PredecessorFailed { task, .. } if *task == first);
    assert!(matches!(ended[0].error, TaskError::Cancelled) && ended[1..].iter().all(|each| is_caused(&each.error)));
    scheduler.check_at_rest().unwrap();
}
