//! Sessions that a sequence owned and that are closed, lost or given up on: who ends with them, and what is handed out to be
//! dropped.

use super::holds::{HELD, NOW, end, held, submit, take};
use super::{CPU, GPU, Nothing, errors};
use crate::grant::{GrantOwner, GrantRung, GrantSpec};
use crate::scheduler::{Assignment, BatchOutcome, Measured, SessionTurn};
use crate::{Ailment, Bytes, Fault, MemoryMoment, Moment, Nanos, Priority, Refusal, Scheduler, TaskError, TaskSpec};

/// How much there is to drop: sessions, states and payloads.
fn dropped(scheduler: &mut Scheduler<Nothing>) -> (usize, usize, usize) {
    let discards = scheduler.drain_discards();
    (discards.sessions.len(), discards.states.len(), discards.jobs.len())
}

/// A session of 400 bytes is open on the GPU, and idle.
fn idle() -> (Scheduler<Nothing>, TaskSpec) {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, None);
    assert_eq!((scheduler.ledger().promised(GPU), dropped(&mut scheduler)), (Bytes(400), (0, 0, 0)));
    (scheduler, spec)
}

/// The task was done, but its session cannot be used again.
fn end_without_session(scheduler: &mut Scheduler<Nothing>, run: &Assignment<Nothing>) {
    let measured = Measured { run: Nanos::millis(1), ..Measured::default() };
    let (fault, session, value) = (None, None, None);
    let outcome = BatchOutcome { done: 1, fault, session, measured, value, moves: Default::default(), state: None };
    scheduler.settle_batch(NOW, run.run, outcome, |_| ());
    scheduler.check_invariants().unwrap();
}

fn is_lost(error: &TaskError) -> bool {
    matches!(error, TaskError::SessionLost { .. })
}

#[test]
fn what_a_closed_sequence_had_is_handed_out_to_be_dropped() {
    let (mut scheduler, _) = idle();
    scheduler.close_hold(NOW, HELD);
    assert_eq!(dropped(&mut scheduler), (1, 0, 1), "its session, and the payload that was kept");
    let (mut scheduler, _) = idle();
    assert!(scheduler.recall_hold(NOW, HELD, "cpu"));
    let leave = take(&mut scheduler, GPU);
    end(&mut scheduler, &leave, None);
    assert_eq!(dropped(&mut scheduler).0, 1);
    scheduler.close_hold(NOW, HELD);
    assert_eq!(dropped(&mut scheduler).1, 1, "its state, on the way from one rung to another");
}

#[test]
fn what_comes_back_after_a_sequence_was_closed_is_handed_out_to_be_dropped() {
    let (mut scheduler, spec) = idle();
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    scheduler.close_hold(NOW, HELD);
    dropped(&mut scheduler);
    end(&mut scheduler, &run, None);
    assert_eq!(dropped(&mut scheduler), (1, 0, 0));
    let (mut scheduler, _) = idle();
    assert!(scheduler.recall_hold(NOW, HELD, "cpu"));
    let leave = take(&mut scheduler, GPU);
    scheduler.close_hold(NOW, HELD);
    dropped(&mut scheduler);
    end(&mut scheduler, &leave, None);
    assert_eq!(dropped(&mut scheduler), (1, 1, 0));
}

/// The run that is to take its state out is ended first; whoever asked for that asks again, and must not be heard.
#[test]
fn a_sequence_that_is_closed_while_it_is_asked_to_step_down_leaves_no_task_behind() {
    let (mut scheduler, spec) = idle();
    let ladder = vec![GrantRung::new(&[(GPU, Bytes(900))])];
    let urgent = GrantSpec { priority: Priority::Critical, ..GrantSpec::new(GrantOwner::Caller, ladder) };
    scheduler.request(NOW, urgent).unwrap();
    submit(&mut scheduler, &spec, 1);
    assert_eq!(scheduler.unsettled(), 2, "the task, and the one that takes the state out before it");
    scheduler.close_hold(NOW, HELD);
    scheduler.check_at_rest().unwrap();
}

#[test]
fn a_session_that_was_asked_to_leave_is_not_asked_twice() {
    let (mut scheduler, spec) = idle();
    submit(&mut scheduler, &spec, 2);
    let run = take(&mut scheduler, GPU);
    for rung in ["depth 1", "depth 1", "cpu"] {
        assert!(scheduler.recall_hold(NOW, HELD, rung));
        assert_eq!(scheduler.unsettled(), 3, "two tasks and one that takes the state out");
    }
    end(&mut scheduler, &run, None);
}

/// Its session could not be opened where it was to leave.
#[test]
fn who_finds_nothing_to_take_out_ends_and_is_told_of_and_dropped() {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    scheduler.listen(true);
    assert!(scheduler.recall_hold(NOW, HELD, "depth 1"));
    end(&mut scheduler, &run, Some(Fault::OutOfMemory { moment: MemoryMoment::Open, wanted: Bytes(400) }));
    let run = take(&mut scheduler, GPU);
    end(&mut scheduler, &run, None);
    let told = scheduler.drain_events();
    let ended = told.iter().filter(|event| matches!(event.what, crate::event::What::Ended { .. })).count();
    assert_eq!((ended, scheduler.unsettled()), (2, 0));
    assert_eq!(dropped(&mut scheduler).2, 1);
}

#[test]
fn a_task_may_run_only_where_the_session_of_its_sequence_is() {
    let (mut scheduler, spec) = idle();
    let refused = scheduler.why(NOW, &spec);
    let refused = refused.iter().filter(|each| matches!(each.refusal, Some(Refusal::SessionElsewhere)));
    assert_eq!(refused.map(|each| (each.rung, each.device)).collect::<Vec<_>>(), [("depth 1", GPU), ("cpu", CPU)]);
}

#[test]
fn an_idle_session_that_is_lost_ends_who_was_queued_for_it() {
    let (mut scheduler, spec) = idle();
    submit(&mut scheduler, &spec, 1);
    scheduler.device_faulted(NOW, GPU, Ailment::Lost);
    let ended = errors(&mut scheduler);
    assert!(matches!(&ended[..], [error] if is_lost(error)), "{ended:?}");
    assert_eq!((dropped(&mut scheduler).0, scheduler.unsettled()), (1, 0));
    // The next one opens a session as any first task does, and is promised its bytes.
    scheduler.device_opened(NOW, GPU);
    scheduler.restart(HELD);
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    assert!(matches!(run.session, SessionTurn::Open(_)));
    assert_eq!(scheduler.ledger().promised(GPU), Bytes(410));
}

#[test]
fn a_session_that_a_task_did_not_bring_back_ends_who_waits_for_it() {
    let (mut scheduler, spec) = idle();
    let tasks = submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    // Nobody waits for the one that runs, so that nobody ends because it did.
    scheduler.cancel(NOW, tasks[0]);
    errors(&mut scheduler);
    submit(&mut scheduler, &spec, 1);
    end_without_session(&mut scheduler, &run);
    let ended = errors(&mut scheduler);
    assert!(matches!(&ended[..], [error] if is_lost(error)), "{ended:?}");
}

/// What was computed on it is not believed, and cannot be done again on it.
#[test]
fn a_session_of_a_device_that_is_not_trusted_is_dropped_and_its_task_ends() {
    let (mut scheduler, spec) = idle();
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    let _suspicion = scheduler.suspect(GPU);
    scheduler.listen(true);
    end(&mut scheduler, &run, None);
    let ended = errors(&mut scheduler);
    assert!(matches!(&ended[..], [error] if is_lost(error)), "{ended:?}");
    assert_eq!(dropped(&mut scheduler).0, 1);
    let told = scheduler.drain_events();
    let is_placed = told.iter().any(|event| matches!(event.what, crate::event::What::Placed { .. }));
    assert!(!is_placed, "it has nowhere to go: {told:?}");
}

/// The device was opened anew while the first task ran.
#[test]
fn a_session_of_a_device_that_is_no_more_gives_its_bytes_back() {
    let (mut scheduler, spec) = held();
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    scheduler.device_faulted(NOW, GPU, Ailment::Lost);
    scheduler.device_opened(NOW, GPU);
    end(&mut scheduler, &run, None);
    assert_eq!((scheduler.ledger().promised(GPU), dropped(&mut scheduler).0), (Bytes::ZERO, 1));
    assert!(!scheduler.is_hold_lost(HELD), "there was nothing in it that anybody could miss");
}

#[test]
fn a_session_that_was_given_up_on_is_opened_anew_beside_the_run_that_hangs() {
    let (mut scheduler, spec) = idle();
    scheduler.device_mut(GPU).spec.stall_after = Some(Nanos::millis(1));
    submit(&mut scheduler, &spec, 1);
    let hangs = take(&mut scheduler, GPU);
    scheduler.tick(Moment(Nanos::seconds(1).0));
    assert!(matches!(&errors(&mut scheduler)[..], [error] if is_lost(error)));
    scheduler.device_opened(NOW, GPU);
    scheduler.restart(HELD);
    submit(&mut scheduler, &spec, 1);
    let run = take(&mut scheduler, GPU);
    assert!(matches!(run.session, SessionTurn::Open(_)));
    assert_eq!(scheduler.ledger().promised(GPU), Bytes(2 * 410), "what the run has that hangs stays promised");
    end(&mut scheduler, &run, None);
    end(&mut scheduler, &hangs, None);
    assert_eq!(scheduler.ledger().promised(GPU), Bytes(400));
}
