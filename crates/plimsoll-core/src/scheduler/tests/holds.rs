//! Sequences that own their session: one task at a time on it, nobody else, and nothing lost in silence.

use super::{CPU, GPU, Nothing, exact};
use crate::scheduler::{Assignment, BatchOutcome, Config, Measured, SessionTurn, Settled, Undrained};
use crate::{
    Bytes, DeviceId, DeviceKind, Fault, Footprint, Ladder, MemoryMoment, Moment, Nanos, Place, Rung, Scheduler,
    SequenceId, SubmitErrorKind, TaskError, TaskId, TaskSpec,
};

pub(super) const NOW: Moment = Moment(1);
pub(super) const HELD: SequenceId = SequenceId(7);

/// Two pools on the GPU, or one, or none at all on the CPU.
fn depths() -> Ladder {
    let rung = |name, kind, session| {
        let footprint = Footprint { session: Bytes(session), task: Bytes(10), reference: Bytes::ZERO };
        Rung::new(name, Place::On(kind), footprint)
    };
    Ladder::from(vec![
        rung("depth 2", DeviceKind::Gpu, 400),
        rung("depth 1", DeviceKind::Gpu, 200),
        rung("cpu", DeviceKind::Cpu, 100),
    ])
}

/// The CPU and a GPU of 1000 bytes each; the sequence is held.
pub(super) fn held() -> (Scheduler<Nothing>, TaskSpec) {
    let mut scheduler = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    for (kind, slots) in [(DeviceKind::Cpu, 2), (DeviceKind::Gpu, 2)] {
        let device = scheduler.add_device(exact(kind, slots, 1_000));
        scheduler.device_opened(Moment::START, device);
    }
    scheduler.hold(HELD);
    let mut spec = TaskSpec::new(scheduler.register("w"), depths(), 10);
    (spec.sequence, spec.holds) = (Some(HELD), true);
    for (rung, device, run) in [("depth 2", GPU, 1), ("depth 1", GPU, 2), ("cpu", CPU, 9)] {
        scheduler.teach(spec.workload, rung, device, 10, Nanos::millis(run));
    }
    (scheduler, spec)
}

pub(super) fn submit(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec, count: usize) -> Vec<TaskId> {
    (0..count).map(|_| scheduler.submit(NOW, spec.clone(), ()).unwrap()).collect()
}

pub(super) fn end(scheduler: &mut Scheduler<Nothing>, run: &Assignment<Nothing>, fault: Option<Fault>) -> bool {
    let measured = Measured { run: Nanos::millis(1), ..Measured::default() };
    let (done, session) = (usize::from(fault.is_none()), fault.is_none().then_some(()));
    let (fault, state) = (fault.map(|fault| (fault, Nanos(1))), run.leaves.then_some(()));
    let outcome = BatchOutcome { done, fault, session, measured, value: None, moves: Default::default(), state };
    let mut counts = false;
    scheduler.settle_batch(NOW, run.run, outcome, |settled| counts = matches!(settled, Settled::Done(_)));
    scheduler.check_invariants().unwrap();
    counts
}

pub(super) fn take(scheduler: &mut Scheduler<Nothing>, device: DeviceId) -> Assignment<Nothing> {
    scheduler.take(NOW, device).expect("something is queued there")
}

fn lost() -> Option<Fault> {
    Some(Fault::DeviceLost { detail: "on purpose".into() })
}

#[test]
fn tasks_run_one_at_a_time_in_order_on_one_session() {
    let (mut scheduler, spec) = held();
    let tasks = submit(&mut scheduler, &spec, 4);
    for (at, task) in tasks.into_iter().enumerate() {
        let run = take(&mut scheduler, GPU);
        assert_eq!(run.task, task);
        assert_eq!(matches!(run.session, SessionTurn::Warm(())), at > 0);
        assert!(scheduler.take(NOW, GPU).is_none() && scheduler.take(NOW, CPU).is_none(), "the next one waits");
        assert!(end(&mut scheduler, &run, None));
        assert_eq!(scheduler.ledger().promised(GPU), Bytes(400), "the session stays");
    }
    scheduler.close_hold(NOW, HELD);
    assert_eq!(scheduler.ledger().promised(GPU), Bytes::ZERO);
    scheduler.check_at_rest().unwrap();
}

#[test]
fn nobody_else_gets_the_session_and_nothing_evicts_it() {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, None);
    // Of the same kind, but of no sequence; then one that would need its bytes.
    let free = TaskSpec { sequence: None, holds: false, rung: Some("depth 2"), ..spec.clone() };
    submit(&mut scheduler, &free, 1);
    let run = take(&mut scheduler, GPU);
    assert!(matches!(run.session, SessionTurn::Open(_)));
    end(&mut scheduler, &run, None);
    let large = Rung::new("large", Place::On(DeviceKind::Gpu), Footprint::task(Bytes(700)));
    submit(&mut scheduler, &TaskSpec { ladder: Ladder::from(vec![large]), ..free.clone() }, 1);
    assert!(scheduler.take(NOW, GPU).is_none(), "the warm session may go, the held one may not");
    submit(&mut scheduler, &spec, 1);
    assert!(matches!(take(&mut scheduler, GPU).session, SessionTurn::Warm(())));
}

#[test]
fn a_lost_device_ends_what_would_have_gone_on_and_says_what_was_not_drained() {
    let (mut scheduler, spec) = held();
    let drain = TaskSpec { drains: true, ..spec.clone() };
    let first = submit(&mut scheduler, &spec, 3);
    let drained = submit(&mut scheduler, &drain, 1)[0];
    submit(&mut scheduler, &spec, 5);
    for _ in 0..first.len() + 1 + 2 {
        let run = take(&mut scheduler, GPU);
        end(&mut scheduler, &run, None);
    }
    let not_drained = Undrained { since: Some(drained), tasks: 2 };
    assert_eq!(scheduler.undrained(HELD), not_drained);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, lost());
    let endings = scheduler.drain_endings();
    assert_eq!(endings.len(), 3, "the one that ran, and two that waited");
    let told = |error: &TaskError| match error.first_cause() {
        TaskError::SessionLost { since, undrained } => (*since, *undrained) == (Some(drained), 2),
        _ => false,
    };
    assert!(endings.iter().all(|ending| told(&ending.error)), "{endings:?}");
    let refused = scheduler.submit(NOW, spec.clone(), ()).unwrap_err().refusal;
    assert_eq!(refused, SubmitErrorKind::SessionLost { undrained: 2 });
    assert_eq!(scheduler.restart(HELD), not_drained);
    submit(&mut scheduler, &spec, 1);
    assert!(matches!(take(&mut scheduler, CPU).session, SessionTurn::Open(_)), "the GPU is not back yet");
}

/// Idle, with nobody waiting for it.
#[test]
fn a_session_that_is_lost_while_idle_is_lost_all_the_same() {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, None);
    let free = TaskSpec { sequence: None, holds: false, rung: Some("depth 1"), ..spec.clone() };
    submit(&mut scheduler, &free, 1);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, lost());
    assert!(scheduler.is_hold_lost(HELD));
    assert_eq!(scheduler.ledger().promised(GPU), Bytes::ZERO);
    assert_eq!(scheduler.undrained(HELD).tasks, 1);
}

#[test]
fn a_first_task_that_cannot_open_its_session_steps_down_like_any_other() {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 2);
    let run = take(&mut scheduler, GPU);
    let full = Fault::OutOfMemory { moment: MemoryMoment::Open, wanted: Bytes(400) };
    end(&mut scheduler, &run, Some(full));
    assert!(!scheduler.is_hold_lost(HELD));
    let run = take(&mut scheduler, GPU);
    assert_eq!(run.rung, 1);
    assert!(end(&mut scheduler, &run, None));
    let next = take(&mut scheduler, GPU);
    assert!(next.rung == 1 && matches!(next.session, SessionTurn::Warm(())));
}

#[test]
fn a_run_that_fails_on_it_loses_it() {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 3);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, None);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, Some(Fault::work("broken")));
    assert!(scheduler.is_hold_lost(HELD));
    assert_eq!(scheduler.drain_endings().len(), 2);
    assert_eq!(scheduler.ledger().promised(GPU), Bytes::ZERO);
}

/// From two pools to one to the CPU, between tasks and while one runs; what it holds goes along.
#[test]
fn a_recalled_session_steps_down_before_its_next_task() {
    let (mut scheduler, spec) = held();
    let tasks = submit(&mut scheduler, &spec, 4);
    let run = take(&mut scheduler, GPU);
    assert!(scheduler.recall_hold(NOW, HELD, "depth 1"));
    assert!(scheduler.recall_hold(NOW, HELD, "depth 1"), "twice is once");
    assert!(end(&mut scheduler, &run, None));
    let leave = take(&mut scheduler, GPU);
    assert!(leave.leaves && matches!(leave.session, SessionTurn::Warm(())));
    assert!(!end(&mut scheduler, &leave, None), "nobody is told of it");
    assert_eq!(scheduler.ledger().promised(GPU), Bytes::ZERO);
    let run = take(&mut scheduler, GPU);
    assert_eq!((run.task, run.rung), (tasks[1], 1));
    assert!(matches!(run.session, SessionTurn::Resume(..)));
    end(&mut scheduler, &run, None);
    assert_eq!(scheduler.ledger().promised(GPU), Bytes(200));
    // The next one is queued, but has not started.
    assert!(scheduler.recall_hold(NOW, HELD, "cpu"));
    let leave = take(&mut scheduler, GPU);
    assert!(leave.leaves);
    end(&mut scheduler, &leave, None);
    for (at, task) in tasks[2..].iter().enumerate() {
        let run = take(&mut scheduler, CPU);
        assert_eq!((run.task, run.rung, matches!(run.session, SessionTurn::Resume(..))), (*task, 2, at == 0));
        assert!(end(&mut scheduler, &run, None));
    }
    assert_eq!(scheduler.undrained(HELD).tasks, 4);
    assert!(scheduler.drain_endings().is_empty() && scheduler.unsettled() == 0);
    assert!(!scheduler.recall_hold(NOW, HELD, "nothing"), "there is no such rung");
}

#[test]
fn a_sequence_that_nobody_holds_is_refused() {
    let (mut scheduler, spec) = held();
    let sequence = SequenceId(8);
    let other = TaskSpec { sequence: Some(sequence), ..spec };
    let refused = scheduler.submit(NOW, other, ()).unwrap_err().refusal;
    assert_eq!(refused, SubmitErrorKind::NotHeld { sequence });
}

#[test]
fn a_session_that_a_cancelled_task_still_uses_is_waited_for() {
    let (mut scheduler, spec) = held();
    let tasks = submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    scheduler.cancel(NOW, tasks[0]);
    submit(&mut scheduler, &spec, 1);
    assert!(scheduler.take(NOW, GPU).is_none());
    end(&mut scheduler, &run, None);
    assert!(matches!(take(&mut scheduler, GPU).session, SessionTurn::Warm(())));
}

#[test]
fn closing_cancels_what_has_not_ended_and_leaves_nothing() {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 3);
    let run = take(&mut scheduler, GPU);
    scheduler.close_hold(NOW, HELD);
    assert_eq!(scheduler.drain_endings().len(), 3);
    assert!(!end(&mut scheduler, &run, None));
    assert_eq!(scheduler.ledger().promised(GPU), Bytes::ZERO);
    scheduler.check_at_rest().unwrap();
}

/// Its first task could not open it where it was recalled from, and opened another.
#[test]
fn a_recall_of_a_session_that_was_never_opened_holds_nobody_up() {
    let (mut scheduler, spec) = held();
    let tasks = submit(&mut scheduler, &spec, 2);
    let run = take(&mut scheduler, GPU);
    assert!(scheduler.recall_hold(NOW, HELD, "depth 1"));
    end(&mut scheduler, &run, Some(Fault::OutOfMemory { moment: MemoryMoment::Open, wanted: Bytes(400) }));
    for task in tasks {
        let run = take(&mut scheduler, GPU);
        assert_eq!((run.task, run.rung, run.leaves), (task, 1, false));
        assert!(end(&mut scheduler, &run, None));
    }
    assert!(scheduler.drain_endings().is_empty() && scheduler.unsettled() == 0);
    assert!(scheduler.recall_hold(NOW, HELD, "cpu"), "it can be recalled again");
    assert!(take(&mut scheduler, GPU).leaves);
}

#[test]
fn a_recalled_session_needs_no_memory_to_leave() {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, None);
    let large = Rung::new("large", Place::On(DeviceKind::Gpu), Footprint::task(Bytes(595)));
    let free = TaskSpec { sequence: None, holds: false, ladder: Ladder::from(vec![large]), ..spec };
    submit(&mut scheduler, &free, 1);
    let large = take(&mut scheduler, GPU);
    assert!(scheduler.recall_hold(NOW, HELD, "cpu"));
    let leave = take(&mut scheduler, GPU);
    assert!(leave.leaves);
    end(&mut scheduler, &leave, None);
    end(&mut scheduler, &large, None);
}

#[test]
fn a_session_that_is_recalled_before_it_is_opened_is_opened_lower() {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 1);
    assert!(scheduler.recall_hold(NOW, HELD, "cpu"));
    assert!(scheduler.take(NOW, GPU).is_none());
    assert_eq!(take(&mut scheduler, CPU).rung, 2);
}

/// The task that ran on it was cancelled before, so that nothing else ends with it.
#[test]
fn who_waits_for_a_session_that_does_not_come_back_ends_with_it() {
    let mut scheduler = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let mut device = exact(DeviceKind::Gpu, 2, 1_000);
    device.stall_after = Some(Nanos::millis(1));
    let gpu = scheduler.add_device(device);
    scheduler.device_opened(Moment::START, gpu);
    scheduler.hold(HELD);
    let mut spec = TaskSpec::new(scheduler.register("w"), depths(), 10);
    (spec.sequence, spec.holds) = (Some(HELD), true);
    scheduler.teach(spec.workload, "depth 2", gpu, 10, Nanos::millis(1));
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, gpu);
    end(&mut scheduler, &run, None);
    let cancelled = submit(&mut scheduler, &spec, 1)[0];
    take(&mut scheduler, gpu);
    scheduler.cancel(NOW, cancelled);
    submit(&mut scheduler, &spec, 1);
    scheduler.drain_endings();
    scheduler.tick(Moment(Nanos::seconds(1).0));
    let endings = scheduler.drain_endings();
    assert!(
        matches!(endings[..], [crate::scheduler::Ending { error: TaskError::SessionLost { .. }, .. }]),
        "{endings:?}"
    );
    scheduler.check_invariants().unwrap();
}

#[test]
fn a_session_that_is_low_enough_already_stays_where_it_is() {
    let (mut scheduler, spec) = held();
    assert!(!scheduler.recall_hold(NOW, HELD, "depth 1"), "no task has said which rungs there are");
    let low = TaskSpec { rung: Some("depth 1"), ..spec };
    let tasks = submit(&mut scheduler, &low, 2);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, None);
    assert!(scheduler.recall_hold(NOW, HELD, "depth 1"));
    let next = take(&mut scheduler, GPU);
    assert_eq!((next.task, next.leaves), (tasks[1], false));
}

#[test]
fn a_session_that_has_left_is_given_out_to_be_closed() {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 2);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, None);
    assert!(scheduler.recall_hold(NOW, HELD, "cpu"));
    let leave = take(&mut scheduler, GPU);
    assert!(leave.leaves && scheduler.drain_discards().sessions.is_empty());
    end(&mut scheduler, &leave, None);
    assert_eq!(scheduler.drain_discards().sessions.len(), 1);
}

/// The device was opened anew while the first task ran: what that made belongs to a device that is no more.
#[test]
fn a_session_of_a_device_that_was_lost_meanwhile_is_not_gone_on_with() {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 1);
    let first = take(&mut scheduler, GPU);
    let free = TaskSpec { sequence: None, holds: false, rung: Some("depth 1"), ..spec.clone() };
    submit(&mut scheduler, &free, 1);
    let other = take(&mut scheduler, GPU);
    end(&mut scheduler, &other, lost());
    scheduler.device_opened(NOW, GPU);
    end(&mut scheduler, &first, None);
    submit(&mut scheduler, &spec, 1);
    let next = scheduler.take(NOW, GPU);
    assert!(next.is_none_or(|run| matches!(run.session, SessionTurn::Open(_))));
}

/// Its own session is no other's: what it waits for is the run beside it, and not as long as it may wait at all.
#[test]
fn a_task_of_a_held_session_waits_for_memory_beside_that_session_only() {
    let (mut scheduler, mut spec) = held();
    let footprint = Footprint { session: Bytes(700), task: Bytes(200), reference: Bytes::ZERO };
    spec.ladder = Ladder::from(vec![Rung::new("depth 2", Place::On(DeviceKind::Gpu), footprint)]);
    let (lease, _) = scheduler.lease(NOW, &[(GPU, Bytes(250))]).unwrap();
    let wait = scheduler.why(NOW, &spec)[0].estimate.expect("it may fit later").wait;
    assert_eq!(wait, scheduler.config().memory_wait_max, "it has to be opened, beside what another holds");
    scheduler.return_grant(NOW, lease);
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, None);
    let beside = Rung::new("depth 1", Place::On(DeviceKind::Gpu), Footprint::task(Bytes(250)));
    let free = TaskSpec { sequence: None, holds: false, ladder: Ladder::from(vec![beside]), ..spec.clone() };
    submit(&mut scheduler, &free, 1);
    take(&mut scheduler, GPU);
    let wait = scheduler.why(NOW, &spec)[0].estimate.expect("it fits later").wait;
    assert_eq!(wait, Nanos::millis(2), "until the run beside it has ended");
}

/// What it has yet to open is not its own: what others hold is waited for as long as may be, whatever runs beside it.
#[test]
fn a_session_that_has_yet_to_be_opened_waits_for_what_others_hold() {
    let (mut scheduler, mut spec) = held();
    let footprint = Footprint { session: Bytes(700), task: Bytes(200), reference: Bytes::ZERO };
    spec.ladder = Ladder::from(vec![Rung::new("depth 2", Place::On(DeviceKind::Gpu), footprint)]);
    scheduler.lease(NOW, &[(GPU, Bytes(250))]).unwrap();
    let beside = Rung::new("depth 1", Place::On(DeviceKind::Gpu), Footprint::task(Bytes(50)));
    let free = TaskSpec { sequence: None, holds: false, ladder: Ladder::from(vec![beside]), ..spec.clone() };
    submit(&mut scheduler, &free, 1);
    take(&mut scheduler, GPU);
    let wait = scheduler.why(NOW, &spec)[0].estimate.expect("it may fit later").wait;
    assert_eq!(wait, scheduler.config().memory_wait_max);
}
