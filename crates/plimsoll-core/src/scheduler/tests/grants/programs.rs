//! A driver that tells programs apart, programs that stay where they are, and grants that outlive their scheduler.

use super::*;
use crate::line::Memory;

fn program(number: u64, rungs: &[u64]) -> GrantSpec {
    GrantSpec { owner: GrantOwner::Program(number), ..on_a(rungs) }
}

/// The driver says what each program holds of the first device; the rest of what is used is nobody's that it knows.
fn reads(scheduler: &mut Scheduler<Nothing>, at: u64, used: u64, by: &[(u64, u64)]) {
    scheduler.memory_reading_begins(A);
    let memory = Memory { capacity: Bytes(1_000), free: Bytes(1_000 - used), ..Memory::default() };
    let by: Vec<_> = by.iter().map(|&(program, bytes)| (GrantOwner::Program(program), Bytes(bytes))).collect();
    scheduler.set_memory_by_owner(Moment(at), A, memory, &by);
    scheduler.check_invariants().expect("the books agree");
}

fn line(scheduler: &Scheduler<Nothing>) -> u64 {
    scheduler.ledger().line(A).0
}

/// By the sum alone the one's excess would hide in what the other does not use.
#[test]
fn what_one_uses_too_much_does_not_hide_in_what_another_does_not_use() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, program(1, &[300]));
    ask(&mut scheduler, 1, program(2, &[300]));
    reads(&mut scheduler, 2, 450, &[(1, 450)]);
    assert_eq!((line(&scheduler), scheduler.strangers_on(A)), (850, Bytes(150)));
    reads(&mut scheduler, 3, 600, &[(1, 300), (2, 300)]);
    assert_eq!((line(&scheduler), scheduler.strangers_on(A)), (1_000, Bytes(0)));
}

#[test]
fn what_one_gave_back_is_not_free_because_another_freed_as_much() {
    let mut scheduler = three_gpus();
    let liar = ask(&mut scheduler, 1, program(1, &[300]));
    ask(&mut scheduler, 1, program(2, &[300]));
    reads(&mut scheduler, 2, 600, &[(1, 300), (2, 300)]);
    scheduler.return_grant(Moment(3), liar);
    reads(&mut scheduler, 4, 300, &[(1, 300)]);
    assert_eq!(phase(&scheduler, liar), Some(GrantPhase::Returning), "the other's use fell, not its own");
    reads(&mut scheduler, 5, 100, &[(1, 100)]);
    assert_eq!(scheduler.grant(liar).unwrap().returning[..], [(A, Bytes(100))]);
    reads(&mut scheduler, 6, 0, &[]);
    assert_eq!((phase(&scheduler, liar), promised(&scheduler)[0]), (None, 300));
}

/// A process is gone and its memory is still in use: it is nobody's that has a grant.
#[test]
fn what_nobody_is_known_to_use_is_strangers() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, program(1, &[300]));
    reads(&mut scheduler, 2, 300, &[(1, 300)]);
    scheduler.return_grant(Moment(3), id);
    reads(&mut scheduler, 4, 300, &[]);
    assert_eq!((phase(&scheduler, id), line(&scheduler)), (None, 700));
}

#[test]
fn who_stays_keeps_the_rungs_on_its_devices() {
    let mut scheduler = three_gpus();
    let ladder = vec![rung(&[(A, 800)]), rung(&[(B, 800)]), rung(&[(A, 400)]), rung(&[(B, 400)])];
    let spec = GrantSpec { stays: true, ..GrantSpec::new(GrantOwner::Program(9), ladder) };
    ask(&mut scheduler, 1, on_a(&[900]));
    let id = ask(&mut scheduler, 2, with(Priority::Low, spec));
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0", "grant 2 holds rung 1"], "as it was asked for");
    assert_eq!(scheduler.grant(id).unwrap().rung, Some(0), "of the two on its device");
    let urgent = GrantSpec::new(GrantOwner::Caller, vec![rung(&[(B, 600)])]);
    ask(&mut scheduler, 3, with(Priority::Critical, urgent));
    assert_eq!(heard(&mut scheduler), ["grant 2 should step down to 1"], "and not to another device");
    scheduler.stepped_to(Moment(4), id, 1).unwrap();
    assert_eq!(scheduler.grant(id).unwrap().promised[..], [(B, Bytes(400))]);
}

#[test]
fn a_grant_goes_on_in_the_next_scheduler() {
    let mut scheduler = three_gpus();
    let id = scheduler.adopt(Moment(1), program(1, &[800, 300]), 1).unwrap();
    assert_eq!(heard(&mut scheduler), [""; 0], "its owner knows");
    assert_eq!((promised(&scheduler)[0], scheduler.grant(id).unwrap().rung), (300, Some(1)));
    reads(&mut scheduler, 2, 300, &[(1, 300)]);
    assert_eq!(line(&scheduler), 1_000, "what it uses is its own");
    assert!(scheduler.adopt(Moment(3), program(2, &[800]), 0).is_err(), "it no longer fits");
    assert!(scheduler.adopt(Moment(3), program(2, &[100]), 1).is_err(), "there is no such rung");
    scheduler.return_grant(Moment(4), id);
    reads(&mut scheduler, 5, 0, &[]);
    assert_eq!(promised(&scheduler), [0, 0, 0]);
}

#[test]
fn a_grant_that_is_handed_over_is_the_other_programs() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, program(1, &[300]));
    scheduler.hand_over(id, 2);
    reads(&mut scheduler, 2, 300, &[(2, 300)]);
    assert_eq!(line(&scheduler), 1_000);
    scheduler.return_grant(Moment(3), id);
    reads(&mut scheduler, 4, 300, &[(2, 300)]);
    assert_eq!(phase(&scheduler, id), Some(GrantPhase::Returning));
}

/// By its old number it would use nothing, and its bytes would count as free.
#[test]
fn what_is_on_its_way_back_is_handed_over_too() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, program(1, &[300]));
    reads(&mut scheduler, 2, 300, &[(1, 300)]);
    scheduler.return_grant(Moment(3), id);
    scheduler.hand_over(id, 2);
    reads(&mut scheduler, 4, 300, &[(2, 300)]);
    assert_eq!(phase(&scheduler, id), Some(GrantPhase::Returning));
    reads(&mut scheduler, 5, 0, &[]);
    assert_eq!((phase(&scheduler, id), promised(&scheduler)[0]), (None, 0));
}

/// A daemon that starts again has nothing allotted yet, and what its programs hold is there all the same.
#[test]
fn what_is_there_already_counts_as_allotted() {
    let mut scheduler = three_gpus();
    scheduler.set_allotment(Moment(1), A, Some(Bytes(50)));
    let spec = || GrantSpec { owner: GrantOwner::Program(7), ..on_a(&[600]) };
    scheduler.adopt(Moment(2), spec(), 0).expect("it is held already");
    assert_eq!(scheduler.ledger().allotment(A), Some(Bytes(600)), "so that others hear of it");
    let waits = scheduler.request(Moment(3), GrantSpec { owner: GrantOwner::Program(8), ..on_a(&[10]) });
    assert!(waits.is_ok_and(|id| phase(&scheduler, id) == Some(GrantPhase::Waiting)), "and nobody is given more");
}
