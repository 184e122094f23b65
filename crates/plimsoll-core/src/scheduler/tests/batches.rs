//! Tasks of one kind that a slot takes together: one run, one promise, one lesson.

use super::{CPU, Nothing, a_box, anywhere, errors, spec, start};
use crate::balancer::Strategy;
use crate::scheduler::{BatchOutcome, Measured, RunId, Settled};
use crate::task::ReferenceUse;
use crate::{
    Bytes, ContentKey, DeviceKind, Fault, Footprint, Ladder, Moment, Nanos, Place, Rung, Scheduler, SequenceId, TaskId,
    TaskSpec,
};

/// So many equal tasks, the first of which has been taken and the others stand behind it.
fn batch(count: usize) -> (Scheduler<Nothing>, RunId, Vec<TaskId>) {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(10));
    scheduler.teach(spec.workload, "any", CPU, 10, Nanos::micros(1));
    let tasks = (0..count).map(|_| scheduler.submit(Moment(1), spec.clone(), ()).unwrap()).collect();
    let head = start(&mut scheduler, Moment(1), CPU.0).run;
    while scheduler.take_behind(Moment(1), head).is_some() {}
    (scheduler, head, tasks)
}

/// How many of them count as done.
fn settle(scheduler: &mut Scheduler<Nothing>, run: RunId, done: usize, fault: Option<Fault>) -> usize {
    let measured = Measured { run: Nanos(1_000 * done as u64), ..Measured::default() };
    let session = fault.is_none().then_some(());
    let mut counted = 0;
    let outcome = BatchOutcome {
        done,
        fault: fault.map(|fault| (fault, Nanos(7))),
        session,
        measured,
        value: None,
        moves: Default::default(),
        state: None,
    };
    scheduler.settle_batch(Moment(10), run, outcome, |each| counted += usize::from(matches!(each, Settled::Done(_))));
    scheduler.check_invariants().unwrap();
    counted
}

#[test]
fn a_batch_takes_one_slot_and_is_promised_the_bytes_of_one_task() {
    let (mut scheduler, run, tasks) = batch(5);
    assert_eq!(scheduler.ledger().promised(CPU), Bytes(10));
    assert_eq!((scheduler.running(), scheduler.report(Moment(2), CPU).depth), (1, 5));
    scheduler.check_invariants().unwrap();
    assert_eq!(settle(&mut scheduler, run, tasks.len(), None), 5);
    assert_eq!(scheduler.ledger().promised(CPU), Bytes::ZERO);
    let report = scheduler.report(Moment(10), CPU);
    assert_eq!((report.dispatched, report.completed, report.depth), (5, 5, 0));
    assert_eq!(report.p50, Some(Nanos(1_023)), "each counts with its share of the time");
    scheduler.check_at_rest().unwrap();
}

#[test]
fn a_batch_is_expected_to_take_as_long_as_its_tasks_together() {
    let (mut scheduler, _, _) = batch(9);
    let long = spec(&mut scheduler, anywhere(10));
    scheduler.submit(Moment(1), long.clone(), ()).unwrap();
    start(&mut scheduler, Moment(1), CPU.0);
    let wait = scheduler.why(Moment(1), &long)[0].estimate.expect("it is possible").wait;
    assert_eq!(wait, Nanos::micros(5), "nine and one for two slots");
}

#[test]
fn the_one_that_failed_steps_down_and_those_behind_it_go_back() {
    let (mut scheduler, run, tasks) = batch(5);
    let lost = Fault::work("broken");
    assert_eq!(settle(&mut scheduler, run, 2, Some(lost)), 2);
    let failed: Vec<TaskId> = scheduler.drain_endings().into_iter().map(|ending| ending.task).collect();
    assert_eq!(failed, [tasks[2]]);
    let report = scheduler.report(Moment(10), CPU);
    assert_eq!((report.dispatched, report.completed, report.failed, report.depth), (3, 2, 1, 2));
    let next = start(&mut scheduler, Moment(11), CPU.0);
    assert_eq!(next.task, tasks[3], "in their order");
}

#[test]
fn one_that_was_cancelled_in_the_middle_of_a_batch_gives_no_result_and_costs_no_other_its() {
    let (mut scheduler, run, tasks) = batch(3);
    scheduler.cancel(Moment(2), tasks[1]);
    assert_eq!(errors(&mut scheduler).len(), 1);
    assert_eq!(settle(&mut scheduler, run, 3, None), 2);
    scheduler.check_at_rest().unwrap();
}

/// Nor is the next one blamed for a failure of the one that was cancelled.
#[test]
fn a_failure_of_a_cancelled_task_is_nobody_elses() {
    let (mut scheduler, run, tasks) = batch(3);
    scheduler.cancel(Moment(2), tasks[1]);
    scheduler.drain_endings();
    assert_eq!(settle(&mut scheduler, run, 1, Some(Fault::work("broken"))), 1);
    assert!(scheduler.drain_endings().is_empty());
    assert_eq!(start(&mut scheduler, Moment(11), CPU.0).task, tasks[2]);
}

/// Whatever the device did in the same breath as a wrong answer is done again.
#[test]
fn a_wrong_answer_in_a_batch_makes_the_answers_before_it_doubtful() {
    let (mut scheduler, run, _) = batch(4);
    let wrong = Fault::WrongAnswer { detail: "on purpose".into() };
    assert_eq!(settle(&mut scheduler, run, 2, Some(wrong)), 0);
    assert_eq!(scheduler.unsettled(), 4);
}

#[test]
fn a_batch_that_hangs_moves_all_its_tasks() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let mut device = super::exact(DeviceKind::Gpu, 1, 1_000);
    device.stall_after = Some(Nanos::millis(1));
    let gpu = scheduler.add_device(device);
    scheduler.device_opened(Moment::START, gpu);
    let spec = spec(&mut scheduler, anywhere(10));
    scheduler.teach(spec.workload, "any", gpu, 10, Nanos::micros(1));
    scheduler.teach(spec.workload, "any", CPU, 10, Nanos::seconds(1));
    for _ in 0..4 {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    let head = start(&mut scheduler, Moment(1), gpu.0).run;
    while scheduler.take_behind(Moment(1), head).is_some() {}
    scheduler.tick(Moment(Nanos::seconds(1).0));
    scheduler.check_invariants().unwrap();
    assert_eq!(scheduler.report(Moment(1), CPU).depth, 4);
    assert_eq!(settle(&mut scheduler, head, 4, None), 0, "it came back too late");
    assert_eq!(scheduler.unsettled(), 4);
}

/// Whether a task stands behind one of kind `w` that was just taken.
fn stands_behind(change: impl FnOnce(&mut Scheduler<Nothing>, &mut TaskSpec)) -> bool {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let first = spec(&mut scheduler, anywhere(10));
    let mut next = first.clone();
    change(&mut scheduler, &mut next);
    for (workload, units) in [(first.workload, 10), (next.workload, next.units)] {
        scheduler.teach(workload, "any", CPU, units, Nanos::micros(1));
    }
    scheduler.submit(Moment(1), first, ()).unwrap();
    scheduler.submit(Moment(1), next, ()).unwrap();
    let head = start(&mut scheduler, Moment(1), CPU.0).run;
    scheduler.take_behind(Moment(1), head).is_some()
}

#[test]
fn only_what_is_of_one_kind_stands_behind() {
    assert!(stands_behind(|_, _| ()));
    assert!(!stands_behind(|scheduler, next| next.workload = scheduler.register("another")));
    assert!(!stands_behind(|_, next| next.session.shape = 7));
    assert!(!stands_behind(|_, next| next.units = 1_000), "each counts with an equal share of the time");
    assert!(!stands_behind(|_, next| next.ladder = anywhere(11)), "more bytes than are promised");
    assert!(stands_behind(|_, next| next.ladder = anywhere(9)));
    assert!(!stands_behind(|_, next| {
        next.ladder = Ladder::from(vec![anywhere(10).rungs()[0].clone().with_value(Bytes(1))]);
    }));
    assert!(!stands_behind(|scheduler, next| {
        scheduler.hold(SequenceId(1));
        (next.sequence, next.holds) = (Some(SequenceId(1)), true);
    }));
    assert!(!stands_behind(|_, next| {
        next.references.push(ReferenceUse { content: ContentKey(1), pinned: false });
    }));
}

/// Those that share a reference stand behind each other once it is there; the run holds it for all of them.
#[test]
fn tasks_with_the_same_reference_stand_behind_each_other() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let footprint = Footprint { session: Bytes::ZERO, task: Bytes(10), reference: Bytes(100) };
    let ladder = Ladder::from(vec![Rung::new("any", Place::Anywhere, footprint)]);
    let mut spec = spec(&mut scheduler, ladder);
    scheduler.teach(spec.workload, "any", CPU, 10, Nanos::micros(1));
    spec.references.push(ReferenceUse { content: ContentKey(1), pinned: false });
    let mut other = spec.clone();
    other.references[0].content = ContentKey(2);
    for spec in [&spec, &spec, &spec, &other] {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    let head = start(&mut scheduler, Moment(1), CPU.0).run;
    assert!(scheduler.take_behind(Moment(1), head).is_none(), "it is not prepared yet");
    scheduler.prepared(head, 0, ());
    while scheduler.take_behind(Moment(1), head).is_some() {}
    assert_eq!(scheduler.residency(CPU).hits, 2);
    assert_eq!(settle(&mut scheduler, head, 1, None), 1);
    assert_eq!((scheduler.residency(CPU).hits, scheduler.unsettled()), (0, 3), "two were not started");
}

/// What a slot takes to open its session and prepare references counts once, for the task that it did so for.
#[test]
fn only_the_first_of_a_batch_is_told_what_opening_took() {
    let (mut scheduler, run, _) = batch(2);
    let measured =
        Measured { open: Some(Nanos(30)), bring: Nanos(20), brought: 1, run: Nanos(2_000), ..Measured::default() };
    let (fault, session, value) = (None, Some(()), None);
    let outcome = BatchOutcome { done: 2, fault, session, measured, value, moves: Default::default(), state: None };
    let mut costs = Vec::new();
    scheduler.settle_batch(Moment(10), run, outcome, |each| {
        let Settled::Done(report) = each else { panic!("it was done") };
        costs.push([report.open, report.bring, report.run].map(|time| time.0));
    });
    assert_eq!(costs, [[30, 20, 1_000], [0, 0, 1_000]]);
}

#[test]
fn a_task_that_goes_back_counts_neither_as_started_nor_as_tried_again() {
    let (mut scheduler, run, tasks) = batch(1);
    settle(&mut scheduler, run, 1, None);
    let spec = spec(&mut scheduler, anywhere(10));
    for _ in 0..2 {
        let task = scheduler.submit(Moment(11), spec.clone(), ()).unwrap();
        let setback = crate::Setback::Failed(Fault::DeviceLost { detail: "on purpose".into() });
        let attempt = crate::Attempt { rung: "any", device: crate::DeviceId(7), setback };
        scheduler.tasks.get_mut(task).expect("it is queued").attempts.push(attempt);
    }
    let head = start(&mut scheduler, Moment(11), CPU.0).run;
    assert!(scheduler.take_behind(Moment(11), head).is_some());
    assert_eq!(scheduler.report(Moment(11), CPU).retried, 2);
    scheduler.listen(true);
    settle(&mut scheduler, head, 0, Some(Fault::work("broken")));
    assert_eq!(scheduler.report(Moment(11), CPU).retried, 1, "the second was not started");
    let told = scheduler.drain_events();
    assert!(told.iter().any(|event| matches!(event.what, crate::event::What::PutBack { .. })), "{told:?}");
    assert_eq!(tasks.len(), 1);
}

#[test]
fn a_batch_is_expected_to_end_once() {
    let (mut scheduler, run, _) = batch(5);
    settle(&mut scheduler, run, 5, None);
    let spec = spec(&mut scheduler, anywhere(10));
    for _ in 0..2 {
        scheduler.submit(Moment(10), spec.clone(), ()).unwrap();
        start(&mut scheduler, Moment(10), CPU.0);
    }
    let takes = scheduler.device(CPU).each_left(Moment(10)).map(|left| left.0).max().expect("two run");
    assert_eq!(scheduler.device(CPU).wait_for_memory(Moment(10)), Some(Nanos(takes)), "two that take as long");
}

#[test]
fn a_batch_counts_as_stalled_by_the_time_of_all_its_tasks() {
    let mut scheduler = Scheduler::<Nothing>::new(super::Config { lookahead: 0, ..Default::default() }, Moment::START);
    let mut device = super::exact(DeviceKind::Gpu, 1, 1_000);
    device.stall_after = Some(Nanos::seconds(1));
    let gpu = scheduler.add_device(device);
    scheduler.device_opened(Moment::START, gpu);
    let spec = spec(&mut scheduler, anywhere(10));
    scheduler.teach(spec.workload, "any", gpu, 10, Nanos::seconds(1));
    for _ in 0..3 {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    let head = start(&mut scheduler, Moment(1), gpu.0).run;
    while scheduler.take_behind(Moment(1), head).is_some() {}
    assert_eq!(scheduler.next_tick(), Some(Moment(1) + Nanos::seconds(3 * 8 + 1)));
    // Each took four fifths of what was expected: that is no surprise.
    let measured = Measured { run: Nanos::millis(2_400), ..Measured::default() };
    let (fault, session, value) = (None, Some(()), None);
    let outcome = BatchOutcome { done: 3, fault, session, measured, value, moves: Default::default(), state: None };
    scheduler.settle_batch(Moment(2), head, outcome, |_| ());
    let cell = scheduler.workloads.cell(spec.workload, "any", gpu).expect("it ran");
    assert!(!cell.is_stale(Moment(2), Nanos::seconds(1)));
}

/// What was seen to take more than it says does not fit into what was promised before that was known.
#[test]
fn nothing_stands_behind_in_memory_that_is_known_not_to_be_enough() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(100));
    scheduler.teach(spec.workload, "any", CPU, 10, Nanos::micros(1));
    for _ in 0..3 {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    let [other, head] = [(); 2].map(|()| start(&mut scheduler, Moment(1), CPU.0).run);
    let measured = Measured { run: Nanos(1_000), peak: Some(Bytes(120)), ..Measured::default() };
    let (fault, session, value) = (None, Some(()), None);
    let outcome = BatchOutcome { done: 1, fault, session, measured, value, moves: Default::default(), state: None };
    scheduler.settle_batch(Moment(2), other, outcome, |_| ());
    assert!(scheduler.take_behind(Moment(2), head).is_none());
}
