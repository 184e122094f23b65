//! Outputs that stay where they were made: who holds their bytes, who copies them, and what a lost device costs.

use super::{GPU, Nothing, a_box, errors, exact};
use crate::balancer::Strategy;
use crate::scheduler::{Assignment, BatchOutcome, Config, Measured, Moved, Settled, ValueTurn};
use crate::{
    Ailment, Bytes, DeviceId, DeviceKind, DeviceSet, Fault, Footprint, Ladder, Moment, Nanos, Place, Priority, Rung,
    Scheduler, SubmitErrorKind, TaskError, TaskSpec, ValueId,
};

const NOW: Moment = Moment(1);

/// A rung for any device that takes 10 bytes while it runs and leaves so many.
fn leaves(bytes: u64) -> Ladder {
    Ladder::from(vec![Rung::new("any", Place::Anywhere, Footprint::task(Bytes(10))).with_value(Bytes(bytes))])
}

/// The CPU and two GPUs of 1000 bytes each, all as fast.
fn box_of_three() -> (Scheduler<Nothing>, TaskSpec) {
    let mut scheduler = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    for (kind, slots) in [(DeviceKind::Cpu, 2), (DeviceKind::Gpu, 1), (DeviceKind::Gpu, 1)] {
        let device = scheduler.add_device(exact(kind, slots, 1_000));
        scheduler.device_opened(Moment::START, device);
    }
    let spec = TaskSpec::new(scheduler.register("w"), leaves(100), 10);
    for device in 0..3 {
        scheduler.teach(spec.workload, "any", DeviceId(device), 10, Nanos::millis(1));
    }
    (scheduler, spec)
}

fn only(device: DeviceId, spec: &TaskSpec) -> TaskSpec {
    TaskSpec { devices: DeviceSet::only(device), ..spec.clone() }
}

/// A task that takes these values and leaves nothing.
fn reader(spec: &TaskSpec, takes: &[ValueId]) -> TaskSpec {
    TaskSpec { ladder: leaves(0), takes: takes.into(), ..spec.clone() }
}

fn end(scheduler: &mut Scheduler<Nothing>, run: &Assignment<Nothing>, fault: Option<Fault>) -> bool {
    let measured = Measured { run: Nanos::millis(1), ..Measured::default() };
    let (done, session) = (usize::from(fault.is_none()), fault.is_none().then_some(()));
    let (value, moves) = (fault.is_none().then_some(()), Default::default());
    let fault = fault.map(|fault| (fault, Nanos(1)));
    // Whoever runs a task holds what it keeps; whoever makes a value again gives it to those who hold it already.
    if value.is_some() && run.value == ValueId::of(run.task) {
        scheduler.share_value(run.value);
    }
    let mut counts = false;
    let outcome = BatchOutcome { done, fault, session, measured, value, moves, state: None };
    scheduler.settle_batch(NOW, run.run, outcome, |settled| counts = matches!(settled, Settled::Done(_)));
    scheduler.check_invariants().unwrap();
    counts
}

/// Runs what is queued on a device to its end.
fn run_on(scheduler: &mut Scheduler<Nothing>, device: DeviceId) -> Assignment<Nothing> {
    let run = scheduler.take(NOW, device).expect("something is queued there");
    end(scheduler, &run, None);
    run
}

/// A value on a device, made of these.
fn made_on(scheduler: &mut Scheduler<Nothing>, device: DeviceId, spec: &TaskSpec, takes: &[ValueId]) -> ValueId {
    scheduler.submit(NOW, TaskSpec { takes: takes.into(), ..only(device, spec) }, ()).unwrap();
    let run = run_on(scheduler, device);
    assert_eq!(scheduler.value_lies_on(run.value), Some(device));
    run.value
}

fn lose(scheduler: &mut Scheduler<Nothing>, device: DeviceId, spec: &TaskSpec) {
    let plain = TaskSpec { ladder: leaves(0), priority: Priority::Critical, ..only(device, spec) };
    let task = scheduler.submit(NOW, plain, ()).unwrap();
    let run = scheduler.take(NOW, device).expect("it is free");
    end(scheduler, &run, Some(Fault::DeviceLost { detail: "on purpose".into() }));
    scheduler.cancel(NOW, task);
    scheduler.drain_endings();
}

#[test]
fn a_value_holds_its_bytes_until_its_last_reader_has_ended() {
    let (mut scheduler, spec) = box_of_three();
    let value = made_on(&mut scheduler, GPU, &spec, &[]);
    scheduler.share_value(value);
    for _ in 0..2 {
        scheduler.submit(NOW, reader(&only(GPU, &spec), &[value]), ()).unwrap();
    }
    for left in [100, 0] {
        assert_eq!(scheduler.ledger().promised(GPU), Bytes(100));
        let run = scheduler.take(NOW, GPU).expect("a reader");
        assert!(matches!(run.values[..], [ValueTurn::Here(())]));
        end(&mut scheduler, &run, None);
        assert_eq!(scheduler.ledger().promised(GPU), Bytes(left));
    }
    assert_eq!(scheduler.values(), 0);
    scheduler.check_at_rest().unwrap();
}

#[test]
fn a_value_that_nobody_will_read_goes_with_its_handle_made_or_not() {
    let (mut scheduler, spec) = box_of_three();
    let value = made_on(&mut scheduler, GPU, &spec, &[]);
    scheduler.drop_value(NOW, value);
    assert_eq!((scheduler.values(), scheduler.ledger().promised(GPU)), (0, Bytes::ZERO));
    scheduler.submit(NOW, only(GPU, &spec), ()).unwrap();
    let run = scheduler.take(NOW, GPU).unwrap();
    assert_eq!(scheduler.ledger().promised(GPU), Bytes(110), "its bytes are promised while it is made");
    scheduler.share_value(run.value);
    scheduler.drop_value(NOW, run.value);
    assert!(end(&mut scheduler, &run, None));
    scheduler.drop_value(NOW, run.value);
    assert_eq!((scheduler.values(), scheduler.ledger().promised(GPU)), (0, Bytes::ZERO));
}

#[test]
fn what_failed_or_was_never_made_cannot_be_read() {
    let (mut scheduler, spec) = box_of_three();
    scheduler.submit(NOW, only(GPU, &spec), ()).unwrap();
    let run = scheduler.take(NOW, GPU).unwrap();
    let value = run.value;
    let refused = |scheduler: &mut Scheduler<Nothing>| {
        let refused = scheduler.submit(NOW, reader(&spec, &[value]), ()).unwrap_err();
        assert_eq!(refused.refusal, SubmitErrorKind::UnknownValue { value });
    };
    refused(&mut scheduler);
    end(&mut scheduler, &run, Some(Fault::work("broken")));
    scheduler.share_value(value);
    refused(&mut scheduler);
    assert_eq!((scheduler.values(), scheduler.ledger().promised(GPU)), (0, Bytes::ZERO));
}

#[test]
fn a_reader_goes_where_its_value_lies_unless_moving_it_is_cheaper_than_waiting() {
    let (mut scheduler, spec) = box_of_three();
    let value = made_on(&mut scheduler, GPU, &spec, &[]);
    let wait = |scheduler: &mut Scheduler<Nothing>, takes: &[ValueId]| {
        let reader = reader(&TaskSpec { devices: [GPU, DeviceId(2)].into_iter().collect(), ..spec.clone() }, takes);
        scheduler.why(NOW, &reader)[0].device
    };
    assert_eq!(wait(&mut scheduler, &[value]), GPU);
    for _ in 0..5 {
        scheduler.submit(NOW, TaskSpec { ladder: leaves(0), ..only(GPU, &spec) }, ()).unwrap();
    }
    assert_eq!(wait(&mut scheduler, &[value]), DeviceId(2), "five tasks stand before it there");
    // It is measured that moving takes longer than that.
    let copier = TaskSpec { takes: [value].into_iter().collect(), ladder: leaves(0), ..only(DeviceId(2), &spec) };
    scheduler.share_value(value);
    scheduler.submit(NOW, copier, ()).unwrap();
    let run = scheduler.take(NOW, DeviceId(2)).unwrap();
    assert!(matches!(run.values[..], [ValueTurn::Fetch(GPU, ())]));
    assert_eq!(scheduler.ledger().promised(DeviceId(2)), Bytes(110), "a copy of it while the task runs");
    let moves = [Moved { from: GPU, bytes: Bytes(100), took: Nanos::millis(50) }].into_iter().collect();
    let measured = Measured { run: Nanos::millis(1), ..Measured::default() };
    let outcome = BatchOutcome { done: 1, fault: None, session: Some(()), measured, value: None, moves, state: None };
    scheduler.settle_batch(NOW, run.run, outcome, |_| ());
    assert_eq!(wait(&mut scheduler, &[value]), GPU);
}

/// The maker runs again, elsewhere, without a second result; then the reader does.
#[test]
fn a_lost_device_takes_its_values_with_it_and_they_are_made_again_for_who_needs_them() {
    let (mut scheduler, spec) = box_of_three();
    let gpus = TaskSpec { devices: [GPU, DeviceId(2)].into_iter().collect(), ..spec.clone() };
    scheduler.submit(NOW, gpus.clone(), ()).unwrap();
    let value = run_on(&mut scheduler, GPU).value;
    let unread = made_on(&mut scheduler, GPU, &spec, &[]);
    let task = scheduler.submit(NOW, reader(&gpus, &[value]), ()).unwrap();
    lose(&mut scheduler, GPU, &spec);
    assert_eq!((scheduler.value_lies_on(value), scheduler.ledger().promised(GPU)), (None, Bytes::ZERO));
    let again = scheduler.take(NOW, DeviceId(2)).expect("the maker");
    assert_ne!(again.task, task);
    assert!(!end(&mut scheduler, &again, None), "nobody is told of it");
    assert_eq!(scheduler.value_lies_on(value), Some(DeviceId(2)));
    let read = scheduler.take(NOW, DeviceId(2)).expect("the reader");
    assert_eq!(read.task, task);
    assert!(end(&mut scheduler, &read, None) && scheduler.drain_endings().is_empty());
    assert!(scheduler.take(NOW, DeviceId(2)).is_none(), "what nobody reads is not made again");
    scheduler.drop_value(NOW, unread);
    assert_eq!(scheduler.values(), 0);
}

/// Of a chain only the last value lies anywhere; all of it can be made again from the start.
#[test]
fn what_a_value_was_made_from_is_made_again_with_it() {
    let (mut scheduler, spec) = box_of_three();
    let gpus = TaskSpec { devices: [GPU, DeviceId(2)].into_iter().collect(), ..spec.clone() };
    let mut values = Vec::new();
    for stage in 0..3 {
        let takes: Vec<ValueId> = values.last().copied().into_iter().collect();
        scheduler.submit(NOW, TaskSpec { takes: takes.into(), ..gpus.clone() }, ()).unwrap();
        values.push(run_on(&mut scheduler, GPU).value);
        assert_eq!(scheduler.ledger().promised(GPU), Bytes(100), "after stage {stage} only its own");
    }
    let task = scheduler.submit(NOW, reader(&gpus, &values[2..]), ()).unwrap();
    lose(&mut scheduler, GPU, &spec);
    let order: Vec<_> = std::iter::from_fn(|| {
        let run = scheduler.take(NOW, DeviceId(2))?;
        end(&mut scheduler, &run, None);
        Some(run.task)
    })
    .collect();
    assert_eq!((order.len(), order.last()), (4, Some(&task)), "three stages, then the reader");
    assert_eq!((scheduler.values(), scheduler.unsettled()), (0, 0));
    scheduler.check_at_rest().unwrap();
}

#[test]
fn a_reader_whose_value_cannot_be_made_again_ends_with_the_reason() {
    let (mut scheduler, spec) = box_of_three();
    let value = made_on(&mut scheduler, GPU, &spec, &[]);
    scheduler.submit(NOW, reader(&spec, &[value]), ()).unwrap();
    lose(&mut scheduler, GPU, &spec);
    // Only that device could make it, and it is not coming back.
    scheduler.tick(Moment(Nanos::seconds(3_600).0));
    for _ in 0..100 {
        scheduler.device_failed_to_open(Moment(Nanos::seconds(3_600).0), GPU);
        scheduler.tick(Moment(Nanos::seconds(360_000).0));
    }
    let errors = errors(&mut scheduler);
    assert!(matches!(errors[..], [TaskError::PredecessorFailed { .. }]), "{errors:?}");
    assert_eq!(scheduler.unsettled(), 0);
    scheduler.check_at_rest().unwrap();
}

#[test]
fn a_source_that_is_gone_is_quarantined_and_the_reader_done_after_its_value_was_made_again() {
    let (mut scheduler, spec) = box_of_three();
    let gpus = TaskSpec { devices: [GPU, DeviceId(2)].into_iter().collect(), ..spec.clone() };
    scheduler.submit(NOW, gpus.clone(), ()).unwrap();
    let value = run_on(&mut scheduler, GPU).value;
    let task = scheduler.submit(NOW, reader(&only(DeviceId(2), &spec), &[value]), ()).unwrap();
    let run = scheduler.take(NOW, DeviceId(2)).unwrap();
    end(&mut scheduler, &run, Some(Fault::SourceLost { device: GPU, detail: "on purpose".into() }));
    assert!(!scheduler.health(GPU).is_well() && scheduler.health(DeviceId(2)).is_well());
    run_on(&mut scheduler, DeviceId(2));
    assert_eq!(run_on(&mut scheduler, DeviceId(2)).task, task);
    assert_eq!(scheduler.unsettled(), 0);
}

#[test]
fn what_a_device_made_before_it_was_lost_is_lost_although_its_result_counts() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let gpu = scheduler.add_device(exact(DeviceKind::Gpu, 2, 1_000));
    scheduler.device_opened(Moment::START, gpu);
    let spec = TaskSpec::new(scheduler.register("w"), leaves(100), 10);
    for _ in 0..2 {
        scheduler.submit(NOW, only(gpu, &spec), ()).unwrap();
    }
    let runs = [scheduler.take(NOW, gpu).unwrap(), scheduler.take(NOW, gpu).unwrap()];
    end(&mut scheduler, &runs[0], Some(Fault::DeviceLost { detail: "on purpose".into() }));
    assert!(end(&mut scheduler, &runs[1], None));
    assert_eq!((scheduler.value_lies_on(runs[1].value), scheduler.ledger().promised(gpu)), (None, Bytes::ZERO));
    assert_eq!(scheduler.values(), 1, "it can still be made again");
}

#[test]
fn a_cancelled_reader_lets_go_of_its_values() {
    let (mut scheduler, spec) = box_of_three();
    let value = made_on(&mut scheduler, GPU, &spec, &[]);
    let task = scheduler.submit(NOW, reader(&spec, &[value]), ()).unwrap();
    scheduler.cancel(NOW, task);
    assert_eq!((scheduler.values(), scheduler.ledger().promised(GPU)), (0, Bytes::ZERO));
}

/// Cancelled, or on a device that does not answer: the run still has it in hand.
#[test]
fn a_value_that_a_run_has_in_hand_stays_promised_until_that_is_over() {
    let (mut scheduler, spec) = box_of_three();
    let value = made_on(&mut scheduler, GPU, &spec, &[]);
    let task = scheduler.submit(NOW, reader(&only(GPU, &spec), &[value]), ()).unwrap();
    let run = scheduler.take(NOW, GPU).unwrap();
    scheduler.cancel(NOW, task);
    assert_eq!((scheduler.values(), scheduler.ledger().promised(GPU)), (0, Bytes(110)));
    assert_eq!(scheduler.ledger().values(GPU), Bytes::ZERO, "they come back with the run, not with a reader");
    scheduler.check_invariants().unwrap();
    end(&mut scheduler, &run, None);
    assert_eq!(scheduler.ledger().promised(GPU), Bytes::ZERO);
    let value = made_on(&mut scheduler, GPU, &spec, &[]);
    scheduler.submit(NOW, reader(&only(DeviceId(2), &spec), &[value]), ()).unwrap();
    let run = scheduler.take(NOW, DeviceId(2)).unwrap();
    scheduler.device_faulted(NOW, GPU, Ailment::Stalled);
    assert_eq!((scheduler.value_lies_on(value), scheduler.ledger().promised(GPU)), (None, Bytes(100)));
    end(&mut scheduler, &run, None);
    assert_eq!(scheduler.ledger().promised(GPU), Bytes::ZERO);
    scheduler.check_at_rest().unwrap();
}

/// Handed in together: the readers wait for the maker, and what it makes goes with the last of them.
#[test]
fn a_value_can_be_taken_before_it_is_made() {
    let (mut scheduler, spec) = box_of_three();
    let claimed = TaskSpec { is_claimed: true, ..only(GPU, &spec) };
    let maker = scheduler.submit(NOW, claimed, ()).unwrap();
    let value = ValueId::of(maker);
    let readers = [(); 2].map(|()| {
        scheduler.share_value(value);
        scheduler.submit(NOW, reader(&only(GPU, &spec), &[value]), ()).unwrap()
    });
    assert_eq!(run_on(&mut scheduler, GPU).task, maker);
    // Whoever ran it and whoever submitted it give it up.
    scheduler.drop_value(NOW, value);
    scheduler.drop_value(NOW, value);
    for reader in readers {
        assert_eq!(scheduler.ledger().promised(GPU), Bytes(100));
        assert_eq!(run_on(&mut scheduler, GPU).task, reader);
    }
    assert_eq!((scheduler.values(), scheduler.ledger().promised(GPU)), (0, Bytes::ZERO));
    scheduler.check_at_rest().unwrap();
}

/// A second attempt makes what the readers of the first wait for.
#[test]
fn a_value_is_waited_for_however_often_making_it_is_tried() {
    let (mut scheduler, spec) = box_of_three();
    let gpus = TaskSpec { devices: [GPU, DeviceId(2)].into_iter().collect(), ..spec.clone() };
    let maker = scheduler.submit(NOW, gpus.clone(), ()).unwrap();
    scheduler.share_value(ValueId::of(maker));
    let task = scheduler.submit(NOW, reader(&gpus, &[ValueId::of(maker)]), ()).unwrap();
    let run = scheduler.take(NOW, GPU).unwrap();
    // What an attempt that fails had kept is given up by whoever ran it.
    scheduler.share_value(run.value);
    scheduler.drop_value(NOW, run.value);
    end(&mut scheduler, &run, Some(Fault::DeviceLost { detail: "on purpose".into() }));
    assert_eq!([(); 2].map(|()| run_on(&mut scheduler, DeviceId(2)).task), [maker, task]);
    scheduler.drop_value(NOW, ValueId::of(maker));
    assert_eq!((scheduler.values(), scheduler.unsettled()), (0, 0));
    scheduler.check_at_rest().unwrap();
}

#[test]
fn whoever_waits_for_a_value_that_is_not_made_ends_with_the_reason() {
    let (mut scheduler, spec) = box_of_three();
    let mut reader_of_what = |ends: fn(&mut Scheduler<Nothing>, &Assignment<Nothing>)| {
        let maker = scheduler.submit(NOW, only(GPU, &spec), ()).unwrap();
        scheduler.share_value(ValueId::of(maker));
        scheduler.submit(NOW, reader(&spec, &[ValueId::of(maker)]), ()).unwrap();
        let run = scheduler.take(NOW, GPU).unwrap();
        ends(&mut scheduler, &run);
        assert_eq!((scheduler.values(), scheduler.unsettled()), (0, 0));
        errors(&mut scheduler)
    };
    let failed = reader_of_what(|scheduler, run| {
        end(scheduler, run, Some(Fault::work("broken")));
    });
    assert!(failed.iter().any(|error| matches!(error, TaskError::PredecessorFailed { .. })), "{failed:?}");
    let cancelled = reader_of_what(|scheduler, run| {
        scheduler.cancel(NOW, run.task);
        end(scheduler, run, None);
    });
    assert!(cancelled.iter().any(|error| matches!(error, TaskError::PredecessorFailed { .. })), "{cancelled:?}");
    let kept_none = reader_of_what(|scheduler, run| {
        let (measured, moves) = (Measured { run: Nanos(1), ..Measured::default() }, Default::default());
        let (fault, value, state) = (None, None, None);
        let outcome = BatchOutcome { done: 1, fault, session: Some(()), measured, value, moves, state };
        scheduler.settle_batch(NOW, run.run, outcome, |_| ());
    });
    assert!(matches!(kept_none[..], [TaskError::WorkFailed(_)]), "{kept_none:?}");
}

#[test]
fn a_value_that_was_promised_and_not_wanted_any_more_is_not_kept() {
    let (mut scheduler, spec) = box_of_three();
    let maker = scheduler.submit(NOW, only(GPU, &spec), ()).unwrap();
    let value = ValueId::of(maker);
    scheduler.share_value(value);
    scheduler.drop_value(NOW, value);
    let run = run_on(&mut scheduler, GPU);
    assert_eq!(run.value, value);
    scheduler.drop_value(NOW, value);
    assert_eq!((scheduler.values(), scheduler.ledger().promised(GPU)), (0, Bytes::ZERO));
    scheduler.share_value(value);
    assert_eq!(scheduler.values(), 0, "its maker has ended");
}

/// What holds its memory goes when a reader has run, and that may stand behind it: to wait for it would be to wait for ever.
#[test]
fn a_device_does_not_stand_still_for_a_task_whose_memory_values_hold() {
    let (mut scheduler, spec) = box_of_three();
    scheduler.submit(NOW, TaskSpec { ladder: leaves(600), ..only(GPU, &spec) }, ()).unwrap();
    run_on(&mut scheduler, GPU);
    let large = Ladder::from(vec![Rung::new("any", Place::Anywhere, Footprint::task(Bytes(500)))]);
    let large = scheduler.submit(NOW, TaskSpec { ladder: large, ..only(GPU, &spec) }, ()).unwrap();
    scheduler.tasks.get_mut(large).expect("it waits").bypassed = u16::MAX;
    let small = scheduler.submit(NOW, TaskSpec { ladder: leaves(0), ..only(GPU, &spec) }, ()).unwrap();
    assert_eq!(scheduler.take(NOW, GPU).map(|run| run.task), Some(small));
}

#[test]
fn an_estimate_counts_the_copy_of_a_value_that_lies_elsewhere() {
    let (mut scheduler, spec) = box_of_three();
    let value = made_on(&mut scheduler, GPU, &spec, &[]);
    let why = scheduler.why(NOW, &reader(&spec, &[value]));
    let mut bytes: Vec<_> = why.iter().filter_map(|each| Some((each.device, each.estimate?.bytes))).collect();
    bytes.sort_unstable();
    assert_eq!(bytes, [(DeviceId(0), Bytes(110)), (GPU, Bytes(10)), (DeviceId(2), Bytes(110))]);
}

#[test]
fn a_value_that_goes_is_handed_out_and_its_device_looks_for_work() {
    let (mut scheduler, spec) = box_of_three();
    let value = made_on(&mut scheduler, GPU, &spec, &[]);
    scheduler.drain_discards();
    scheduler.drain_wakes();
    scheduler.drop_value(NOW, value);
    let discards = scheduler.drain_discards();
    assert_eq!((discards.values.len(), discards.jobs.len()), (1, 1), "with the payload that could make it again");
    assert!(scheduler.drain_wakes().contains(GPU), "what did not fit may fit by now");
    // One that a run has in hand goes with the run, which may be on another device.
    let value = made_on(&mut scheduler, GPU, &spec, &[]);
    let task = scheduler.submit(NOW, reader(&only(DeviceId(2), &spec), &[value]), ()).unwrap();
    let run = scheduler.take(NOW, DeviceId(2)).unwrap();
    scheduler.cancel(NOW, task);
    scheduler.drain_wakes();
    end(&mut scheduler, &run, None);
    assert!(scheduler.drain_wakes().contains(GPU));
}

#[test]
fn what_a_run_kept_that_nobody_waits_for_is_handed_out_to_be_dropped() {
    let settle = |scheduler: &mut Scheduler<Nothing>, run: &Assignment<Nothing>| {
        let measured = Measured { run: Nanos::millis(1), ..Measured::default() };
        let (fault, session, value, moves) = (None, Some(()), Some(()), Default::default());
        let outcome = BatchOutcome { done: 1, fault, session, measured, value, moves, state: None };
        scheduler.settle_batch(NOW, run.run, outcome, |_| ());
        let dropped = scheduler.drain_discards().values.len();
        (dropped, scheduler.values(), scheduler.ledger().promised(GPU))
    };
    let (mut scheduler, spec) = box_of_three();
    let task = scheduler.submit(NOW, only(GPU, &spec), ()).unwrap();
    let run = scheduler.take(NOW, GPU).unwrap();
    scheduler.cancel(NOW, task);
    assert_eq!(settle(&mut scheduler, &run), (1, 0, Bytes::ZERO), "its task was cancelled");
    let task = scheduler.submit(NOW, only(GPU, &spec), ()).unwrap();
    let run = scheduler.take(NOW, GPU).unwrap();
    scheduler.share_value(ValueId::of(task));
    scheduler.drop_value(NOW, ValueId::of(task));
    assert_eq!(
        settle(&mut scheduler, &run),
        (1, 0, Bytes::ZERO),
        "whoever was to have it gave it up before it was made"
    );
}

#[test]
fn who_claims_a_value_holds_it_from_the_start() {
    let (mut scheduler, spec) = box_of_three();
    let claimed = TaskSpec { is_claimed: true, ..only(GPU, &spec) };
    let value = ValueId::of(scheduler.submit(NOW, claimed, ()).unwrap());
    run_on(&mut scheduler, GPU);
    scheduler.drop_value(NOW, value);
    assert_eq!(scheduler.value_lies_on(value), Some(GPU), "whoever ran it gave it up, whoever claimed it did not");
    scheduler.drop_value(NOW, value);
    assert_eq!(scheduler.values(), 0);
}

/// It is made once for both, whatever its own deadline was; when neither wants it any more it is not made.
#[test]
fn a_lost_value_is_made_again_once_and_only_as_long_as_it_is_read() {
    let (mut scheduler, spec) = box_of_three();
    let gpus = TaskSpec { devices: [GPU, DeviceId(2)].into_iter().collect(), ..spec.clone() };
    scheduler.submit(NOW, TaskSpec { deadline: Some(Moment(2)), ..gpus.clone() }, ()).unwrap();
    let value = run_on(&mut scheduler, GPU).value;
    scheduler.share_value(value);
    let readers = [(); 2].map(|()| scheduler.submit(NOW, reader(&gpus, &[value]), ()).unwrap());
    scheduler.device_faulted(Moment(3), GPU, Ailment::Lost);
    assert_eq!(scheduler.unsettled(), 3, "the readers, and one that makes it again");
    scheduler.tick(Moment(4));
    assert!(scheduler.drain_endings().is_empty());
    scheduler.drain_discards();
    for reader in readers {
        scheduler.cancel(Moment(5), reader);
    }
    assert_eq!((scheduler.unsettled(), scheduler.values()), (0, 0));
    assert_eq!(scheduler.drain_discards().jobs.len(), 2, "the one that was to make it, and what it was made from");
    scheduler.check_at_rest().unwrap();
}

#[test]
fn a_task_needs_the_bytes_of_what_it_leaves_too() {
    let (mut scheduler, spec) = box_of_three();
    let (lease, _) = scheduler.lease(NOW, &[(GPU, Bytes(895))]).unwrap();
    scheduler.submit(NOW, only(GPU, &spec), ()).unwrap();
    assert!(scheduler.take(NOW, GPU).is_none(), "105 are free, and 10 and 100 wanted");
    scheduler.return_grant(NOW, lease);
    assert!(scheduler.take(NOW, GPU).is_some());
}
