//! Why a grant waits, and until when.

use super::*;
use crate::grant::{GrantWait, WaitReason};
use crate::{GrantKind, Nanos};

#[test]
fn who_holds_what_and_when_it_is_due() {
    let mut scheduler = three_gpus();
    others_leave(&mut scheduler, Moment(0), A, 900);
    let low = ask(&mut scheduler, 1, with(Priority::Low, on_a(&[500])));
    let normal = ask(&mut scheduler, 1, on_a(&[300]));
    let waits = ask(&mut scheduler, 2, GrantSpec { patience: Nanos(70), ..on_a(&[400]) });
    let until = Moment(2) + scheduler.config().sharing.leave_within;
    assert_eq!(
        scheduler.wait_of(waits),
        Some(GrantWait {
            before: 0,
            reason: WaitReason::ComingBack,
            device: A,
            wanted: Bytes(400),
            free: Bytes(100),
            strangers: Bytes(100),
            holders: vec![(low, Bytes(500)), (normal, Bytes(300))],
            expected: Some(until),
            until: Some(Moment(72)),
        })
    );
    assert_eq!(scheduler.wait_of(low), None, "it holds what it wants");
    assert_eq!(scheduler.wait_of(GrantId(99)), None);
}

#[test]
fn the_reason_is_the_one_that_keeps_it_waiting() {
    let mut scheduler = three_gpus();
    let work = task_on_a(&mut scheduler, 300);
    scheduler.submit(Moment(0), work, ()).unwrap();
    start(&mut scheduler, Moment(0), A.0);
    let runs = ask(&mut scheduler, 1, with(Priority::Critical, on_a(&[900])));
    let reason = |scheduler: &Scheduler<Nothing>, id| scheduler.wait_of(id).unwrap().reason;
    assert_eq!(reason(&scheduler, runs), WaitReason::Runs);
    let behind = ask(&mut scheduler, 2, on_a(&[100]));
    assert_eq!(reason(&scheduler, behind), WaitReason::Behind(runs));
    assert_eq!(scheduler.wait_of(behind).unwrap().expected, None, "nobody was asked");
    let larger = ask(&mut scheduler, 3, on_a(&[800]));
    assert_eq!(reason(&scheduler, larger), WaitReason::Runs, "it would not fit if it were the first either");
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, on_a(&[600]));
    let waits = ask(&mut scheduler, 2, on_a(&[500]));
    assert_eq!(reason(&scheduler, waits), WaitReason::Grants);
    others_leave(&mut scheduler, Moment(3), A, 400);
    assert_eq!(reason(&scheduler, waits), WaitReason::Strangers);
}

/// Whoever waits for another device alone is in nobody's way on this one, however long it has stood in line.
#[test]
fn nobody_is_behind_who_waits_elsewhere() {
    let mut scheduler = three_gpus();
    let on_b = |bytes| GrantSpec::new(GrantOwner::Caller, vec![rung(&[(B, bytes)])]);
    ask(&mut scheduler, 1, on_b(600));
    ask(&mut scheduler, 1, on_a(&[600]));
    let elsewhere = ask(&mut scheduler, 2, on_b(500));
    let large = ask(&mut scheduler, 3, on_a(&[500]));
    let small = ask(&mut scheduler, 4, on_a(&[100]));
    assert_eq!(phase(&scheduler, elsewhere), Some(GrantPhase::Waiting));
    let wait = scheduler.wait_of(small).unwrap();
    assert_eq!((wait.before, wait.reason), (2, WaitReason::Behind(large)));
}

#[test]
fn at_most_so_many_holders_are_named_the_largest_first() {
    let mut scheduler = three_gpus();
    for bytes in 1..=12 {
        ask(&mut scheduler, bytes, on_a(&[bytes]));
    }
    let waits = ask(&mut scheduler, 20, on_a(&[1_000]));
    let holders = scheduler.wait_of(waits).unwrap().holders;
    assert_eq!(holders.len(), GrantWait::HOLDERS_MAX);
    assert_eq!(holders[0], (GrantId(12), Bytes(12)));
}

#[test]
fn who_does_not_say_how_long_it_waits_is_refused_when_it_is_usual() {
    let mut scheduler = three_gpus();
    scheduler.lease(Moment(1), &[(A, Bytes(900))]).unwrap();
    let spec = GrantSpec { kind: GrantKind::Llm, ..on_a(&[500]) }.with_patience(None);
    let waits = ask(&mut scheduler, 2, spec);
    assert_eq!(scheduler.wait_of(waits).unwrap().until, Some(Moment(2) + Nanos::seconds(30)));
    let said = GrantSpec { kind: GrantKind::Llm, ..on_a(&[500]) }.with_patience(Some(Nanos(5)));
    assert_eq!(said.patience, Nanos(5));
}
