//! Grants beside values and held sessions: what lasts is not waited for as if a run gave it back.

use super::*;
use crate::scheduler::{BatchOutcome, Settled};
use crate::{SequenceId, ValueId};

/// Ends a run that leaves its output and its session where they are.
fn end(scheduler: &mut Scheduler<Nothing>, at: u64, run: &Assignment<Nothing>) {
    let measured = Measured { run: Nanos(1_000), ..Measured::default() };
    let (value, moves, state) = (Some(()), Default::default(), None);
    let outcome = BatchOutcome { done: 1, fault: None, session: Some(()), measured, value, moves, state };
    scheduler.share_value(run.value);
    let mut counts = false;
    scheduler.settle_batch(Moment(at), run.run, outcome, |settled| counts = matches!(settled, Settled::Done(_)));
    assert!(counts);
    scheduler.check_invariants().expect("the books agree");
}

/// Leaves a value of so many bytes on the first device.
fn value_on_a(scheduler: &mut Scheduler<Nothing>, bytes: u64) -> (ValueId, TaskSpec) {
    let rung = Rung::new("gpu", Place::On(DeviceKind::Gpu), Footprint::task(Bytes(10)));
    let reader = TaskSpec { ladder: Ladder::from(vec![rung.clone()]), ..task_on_a(scheduler, 10) };
    let maker = TaskSpec { ladder: Ladder::from(vec![rung.with_value(Bytes(bytes))]), ..reader.clone() };
    scheduler.submit(Moment(1), maker, ()).unwrap();
    let run = start(scheduler, Moment(1), A.0);
    end(scheduler, 1, &run);
    (run.value, reader)
}

/// If bytes were kept for the grant, the reader that frees the value could not run, and both would wait for ever.
#[test]
fn a_grant_that_waits_for_a_value_keeps_nothing_from_its_reader() {
    let mut scheduler = three_gpus();
    let (value, reader) = value_on_a(&mut scheduler, 600);
    ask(&mut scheduler, 2, on_a(&[1_000]));
    assert_eq!((heard(&mut scheduler).len(), scheduler.ledger().kept(A)), (0, Bytes::ZERO));
    scheduler.submit(Moment(3), TaskSpec { takes: [value].into_iter().collect(), ..reader }, ()).unwrap();
    let run = start(&mut scheduler, Moment(3), A.0);
    end(&mut scheduler, 4, &run);
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
}

/// A value goes when it was read: nobody has to step down for that.
#[test]
fn nobody_is_asked_for_what_a_value_will_give_back() {
    let mut scheduler = three_gpus();
    let (value, _) = value_on_a(&mut scheduler, 600);
    ask(&mut scheduler, 2, with(Priority::Low, on_a(&[300, 1])));
    heard(&mut scheduler);
    ask(&mut scheduler, 3, on_a(&[700]));
    assert!(heard(&mut scheduler).is_empty());
    scheduler.drop_value(Moment(4), value);
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"]);
}

#[test]
fn beside_a_held_session_less_urgent_grants_step_down() {
    let mut scheduler = three_gpus();
    let sequence = SequenceId(7);
    scheduler.hold(sequence);
    let footprint = Footprint { session: Bytes(500), ..Footprint::default() };
    let ladder = Ladder::from(vec![Rung::new("held", Place::On(DeviceKind::Gpu), footprint)]);
    let (sequence_of, holds) = (Some(sequence), true);
    let held = TaskSpec { ladder, sequence: sequence_of, holds, ..task_on_a(&mut scheduler, 1) };
    scheduler.submit(Moment(1), held.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), A.0);
    end(&mut scheduler, 1, &run);
    ask(&mut scheduler, 2, with(Priority::Low, on_a(&[300, 100])));
    heard(&mut scheduler);
    let wants = ask(&mut scheduler, 3, on_a(&[400]));
    assert_eq!(heard(&mut scheduler), ["grant 1 should step down to 1"], "the session stays, whoever runs");
    assert_eq!(scheduler.ledger().kept(A), Bytes::ZERO);
    scheduler.submit(Moment(4), held, ()).unwrap();
    let run = start(&mut scheduler, Moment(4), A.0);
    end(&mut scheduler, 5, &run);
    scheduler.cancel_grant(Moment(6), wants);
    ask(&mut scheduler, 7, on_a(&[600]));
    assert!(heard(&mut scheduler).is_empty(), "not even if the other left");
    scheduler.close_hold(Moment(8), sequence);
    assert_eq!(heard(&mut scheduler), ["grant 3 holds rung 0"]);
}

#[test]
fn a_grant_is_given_what_a_lost_device_no_longer_keeps() {
    let mut scheduler = three_gpus();
    value_on_a(&mut scheduler, 600);
    ask(&mut scheduler, 2, on_a(&[700]));
    assert!(heard(&mut scheduler).is_empty());
    scheduler.device_faulted(Moment(3), A, crate::Ailment::Lost);
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
}
