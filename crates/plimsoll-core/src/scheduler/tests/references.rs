//! References: how many without a handle are kept, and what becomes of them when a handle goes.

use super::*;
use crate::ContentKey;
use crate::residency::WINDOW;
use crate::scheduler::ReferenceTurn;
use crate::task::ReferenceUse;

fn with_references(scheduler: &mut Scheduler<Nothing>) -> TaskSpec {
    let footprint = Footprint { session: Bytes::ZERO, task: Bytes(1), reference: Bytes(2) };
    spec(scheduler, Ladder::from(vec![Rung::new("any", Place::Anywhere, footprint)]))
}

fn using(spec: &TaskSpec, contents: impl IntoIterator<Item = u128>, pinned: bool) -> TaskSpec {
    let used = contents.into_iter().map(|content| ReferenceUse { content: ContentKey(content), pinned });
    TaskSpec { references: used.collect(), ..spec.clone() }
}

fn run(scheduler: &mut Scheduler<Nothing>, now: u64, spec: TaskSpec) {
    let count = spec.references.len();
    scheduler.submit(Moment(now), spec, ()).unwrap();
    let run = start(scheduler, Moment(now), CPU.0);
    (0..count).for_each(|which| scheduler.prepared(run.run, which, ()));
    settle(scheduler, Moment(now), &run, None);
    scheduler.check_invariants().unwrap();
}

fn kept(scheduler: &Scheduler<Nothing>) -> usize {
    scheduler.device(CPU).cache.leases().count()
}

#[test]
fn references_without_a_handle_are_bounded_however_many_a_task_names() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = with_references(&mut scheduler);
    for n in 0..50_u128 {
        run(&mut scheduler, 1 + n as u64, using(&spec, 5 * n..5 * n + 5, false));
        assert!(kept(&scheduler) <= WINDOW, "{} after task {n}", kept(&scheduler));
    }
    assert_eq!(scheduler.ledger().promised(CPU), Bytes(2 * WINDOW as u64));
}

#[test]
fn a_handle_that_is_dropped_frees_what_it_held() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = with_references(&mut scheduler);
    scheduler.pin(ContentKey(7));
    run(&mut scheduler, 1, using(&spec, [7], true));
    assert_eq!(scheduler.ledger().promised(CPU), Bytes(2));
    scheduler.drain_wakes();
    scheduler.unpin(ContentKey(7));
    assert_eq!(scheduler.ledger().promised(CPU), Bytes::ZERO);
    assert!(scheduler.drain_wakes().contains(CPU), "whoever waits for memory there looks again");
    assert_eq!(scheduler.drain_discards().references.len(), 1, "and it is given out to be dropped");
}

#[test]
fn a_handle_dropped_while_a_run_uses_it_frees_it_when_the_run_ends() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = with_references(&mut scheduler);
    scheduler.pin(ContentKey(7));
    scheduler.submit(Moment(1), using(&spec, [7], true), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    scheduler.prepared(run.run, 0, ());
    scheduler.unpin(ContentKey(7));
    assert_eq!(scheduler.ledger().promised(CPU), Bytes(3));
    settle(&mut scheduler, Moment(2), &run, None);
    assert_eq!(scheduler.ledger().promised(CPU), Bytes::ZERO);
}

/// What was prepared before a device was lost is not there afterwards.
#[test]
fn a_reference_of_an_older_epoch_is_prepared_again() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = with_references(&mut scheduler);
    run(&mut scheduler, 1, using(&spec, [7], false));
    scheduler.device_faulted(Moment(2), CPU, crate::Ailment::Lost);
    scheduler.device_opened(Moment(3), CPU);
    run(&mut scheduler, 4, using(&spec, [7], false));
    assert_eq!(scheduler.residency(CPU).misses, 2);
}

#[test]
fn a_handle_protects_what_was_prepared_before_it() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = with_references(&mut scheduler);
    run(&mut scheduler, 1, using(&spec, [7], false));
    scheduler.pin(ContentKey(7));
    for other in 0..2 * WINDOW as u64 {
        run(&mut scheduler, 2 + other, using(&spec, [100 + u128::from(other)], false));
    }
    let misses = scheduler.residency(CPU).misses;
    run(&mut scheduler, 900, using(&spec, [7], true));
    assert_eq!(scheduler.residency(CPU).misses, misses, "it was still there");
}

#[test]
fn content_is_held_only_while_there_is_a_handle() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = with_references(&mut scheduler);
    (0..2).for_each(|_| scheduler.pin(ContentKey(7)));
    (0..2).for_each(|_| scheduler.unpin(ContentKey(7)));
    run(&mut scheduler, 1, using(&spec, [7], false));
    for other in 0..2 * WINDOW as u64 {
        run(&mut scheduler, 2 + other, using(&spec, [100 + u128::from(other)], false));
    }
    assert_eq!(kept(&scheduler), WINDOW, "it has gone with the others");
}

#[test]
fn everything_warm_goes_when_that_is_asked_for() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = with_references(&mut scheduler);
    run(&mut scheduler, 1, using(&spec, [7, 8], false));
    scheduler.discard_warm();
    let discards = scheduler.drain_discards();
    assert_eq!((discards.sessions.len(), discards.references.len()), (1, 2));
    assert_eq!(scheduler.ledger().promised(CPU), Bytes::ZERO);
    scheduler.check_at_rest().unwrap();
}

#[test]
fn a_reference_of_an_older_epoch_is_given_out_when_its_last_user_ends() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = with_references(&mut scheduler);
    scheduler.submit(Moment(1), using(&spec, [7], false), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    scheduler.prepared(run.run, 0, ());
    scheduler.discard_warm();
    assert!(scheduler.drain_discards().is_empty(), "it is in use");
    settle(&mut scheduler, Moment(2), &run, None);
    assert_eq!(scheduler.drain_discards().references.len(), 1);
    assert_eq!(scheduler.ledger().promised(CPU), Bytes::ZERO);
}

#[test]
fn what_is_prepared_once_is_there_for_all_and_those_who_wait_are_woken() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = with_references(&mut scheduler);
    for _ in 0..2 {
        scheduler.submit(Moment(1), using(&spec, [7, 8], false), ()).unwrap();
    }
    let first = start(&mut scheduler, Moment(1), CPU.0);
    assert!(matches!(first.references[..], [ReferenceTurn::Prepare, ReferenceTurn::Prepare]));
    assert!(scheduler.take(Moment(1), CPU).is_none(), "nothing is prepared twice");
    (0..2).for_each(|which| {
        scheduler.drain_wakes();
        scheduler.prepared(first.run, which, ());
        assert!(scheduler.drain_wakes().contains(CPU));
    });
    let second = start(&mut scheduler, Moment(2), CPU.0);
    assert!(matches!(second.references[..], [ReferenceTurn::Ready(()), ReferenceTurn::Ready(())]));
}

/// The task that prepares it need not know of the handle.
#[test]
fn content_with_a_handle_is_held_whoever_prepares_it() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = with_references(&mut scheduler);
    scheduler.pin(ContentKey(7));
    run(&mut scheduler, 1, using(&spec, [7], false));
    for other in 0..2 * WINDOW as u64 {
        run(&mut scheduler, 2 + other, using(&spec, [100 + u128::from(other)], false));
    }
    assert_eq!(kept(&scheduler), WINDOW + 1);
}
