//! Programs that asked nobody: what they use becomes a grant, counted once, and nobody else gets at it in between.

use super::*;
use crate::line::Memory;

const PROGRAM: u64 = 42;

fn of_program(rungs: &[u64]) -> GrantSpec {
    GrantSpec { owner: GrantOwner::Program(PROGRAM), ..on_a(rungs) }
}

/// The driver says that the program uses so much of the first device, and others so much.
fn uses(scheduler: &mut Scheduler<Nothing>, at: u64, program: u64, others: u64) {
    scheduler.memory_reading_begins(A);
    let memory = Memory { capacity: Bytes(1_000), free: Bytes(1_000 - program - others), ..Memory::default() };
    scheduler.set_memory_by_owner(Moment(at), A, memory, &[(GrantOwner::Program(PROGRAM), Bytes(program))]);
    scheduler.check_invariants().expect("the books agree");
}

fn take_in(
    scheduler: &mut Scheduler<Nothing>,
    at: u64,
    rungs: &[u64],
    used: u64,
) -> Result<GrantId, crate::GrantError> {
    let taken = scheduler.take_in(Moment(at), of_program(rungs), A, Bytes(used));
    scheduler.check_invariants().expect("the books agree");
    taken
}

fn free(scheduler: &Scheduler<Nothing>) -> u64 {
    scheduler.ledger().free(A).0
}

#[test]
fn what_a_stranger_uses_becomes_its_grant_and_is_counted_once() {
    let mut scheduler = three_gpus();
    uses(&mut scheduler, 1, 700, 100);
    assert_eq!((free(&scheduler), scheduler.strangers_on(A)), (200, Bytes(800)));
    let id = take_in(&mut scheduler, 2, &[700, 300], 700).unwrap();
    assert_eq!((free(&scheduler), scheduler.strangers_on(A)), (200, Bytes(100)));
    assert_eq!(phase(&scheduler, id), Some(GrantPhase::Held));
    uses(&mut scheduler, 3, 700, 100);
    assert_eq!((free(&scheduler), scheduler.strangers_on(A)), (200, Bytes(100)), "the next reading agrees");
    assert!(scheduler.return_grant(Moment(4), id));
    assert_eq!(free(&scheduler), 200, "it says so, the driver does not");
    uses(&mut scheduler, 5, 0, 100);
    assert_eq!(free(&scheduler), 900);
}

#[test]
fn it_is_recalled_like_anybody_and_nobody_gets_its_bytes_while_it_is_taken_in() {
    let mut scheduler = three_gpus();
    uses(&mut scheduler, 1, 800, 0);
    let waits = ask(&mut scheduler, 2, with(Priority::Critical, on_a(&[600])));
    assert_eq!(heard(&mut scheduler), [""; 0]);
    let id = take_in(&mut scheduler, 3, &[800, 300], 800).unwrap();
    assert_eq!(phase(&scheduler, waits), Some(GrantPhase::Waiting), "the line rose for the program alone");
    assert_eq!(promised(&scheduler)[0], 800);
    scheduler.tick(Moment(4));
    uses(&mut scheduler, 5, 800, 0);
    assert_eq!(heard(&mut scheduler), [format!("{id} should step down to 1")]);
    scheduler.stepped_to(Moment(6), id, 1).unwrap();
    assert_eq!(phase(&scheduler, waits), Some(GrantPhase::Waiting), "its word alone frees nothing");
    uses(&mut scheduler, 7, 300, 0);
    assert_eq!(heard(&mut scheduler), [format!("{waits} holds rung 0")]);
}

#[test]
fn what_it_has_more_or_less_replaces_what_it_had() {
    let mut scheduler = three_gpus();
    uses(&mut scheduler, 1, 300, 50);
    let first = take_in(&mut scheduler, 2, &[300], 300).unwrap();
    // It has loaded more without asking.
    uses(&mut scheduler, 3, 700, 50);
    assert_eq!((free(&scheduler), scheduler.strangers_on(A)), (250, Bytes(450)));
    let second = take_in(&mut scheduler, 4, &[700], 700).unwrap();
    assert_eq!((phase(&scheduler, first), phase(&scheduler, second)), (None, Some(GrantPhase::Held)));
    assert_eq!((free(&scheduler), scheduler.strangers_on(A)), (250, Bytes(50)));
    // It has let most of it go.
    uses(&mut scheduler, 5, 200, 50);
    let third = take_in(&mut scheduler, 6, &[200], 200).unwrap();
    assert_eq!((free(&scheduler), scheduler.strangers_on(A)), (750, Bytes(50)));
    uses(&mut scheduler, 7, 200, 50);
    assert_eq!((free(&scheduler), phase(&scheduler, third)), (750, Some(GrantPhase::Held)));
}

#[test]
fn what_does_not_fit_beside_others_stays_a_strangers() {
    let mut scheduler = three_gpus();
    let other = ask(&mut scheduler, 1, GrantSpec { owner: GrantOwner::Program(7), ..on_a(&[500]) });
    assert_eq!(heard(&mut scheduler), [format!("{other} holds rung 0")]);
    // Promised and not used yet, while somebody else took more than was left.
    uses(&mut scheduler, 2, 700, 0);
    assert_eq!(scheduler.room_to_take_in(A, PROGRAM, Bytes(700)), Bytes(0));
    assert!(take_in(&mut scheduler, 3, &[700], 700).is_err());
    assert_eq!(scheduler.strangers_on(A), Bytes(700), "nothing has changed");
    scheduler.return_grant(Moment(4), other);
    uses(&mut scheduler, 5, 700, 0);
    ask(&mut scheduler, 6, GrantSpec { owner: GrantOwner::Program(7), ..on_a(&[300]) });
    assert_eq!(scheduler.room_to_take_in(A, PROGRAM, Bytes(700)), Bytes(700));
    take_in(&mut scheduler, 7, &[700], 700).unwrap();
    assert_eq!((free(&scheduler), scheduler.strangers_on(A)), (0, Bytes(0)));
}

#[test]
fn what_it_uses_beyond_its_new_grant_is_a_strangers_again() {
    let mut scheduler = three_gpus();
    uses(&mut scheduler, 1, 700, 50);
    take_in(&mut scheduler, 2, &[700], 700).unwrap();
    take_in(&mut scheduler, 3, &[300], 700).unwrap();
    assert_eq!((free(&scheduler), scheduler.strangers_on(A)), (250, Bytes(450)));
}

#[test]
fn who_waits_gets_at_once_what_a_smaller_grant_leaves() {
    let mut scheduler = three_gpus();
    uses(&mut scheduler, 1, 700, 0);
    take_in(&mut scheduler, 2, &[700], 700).unwrap();
    let waits = ask(&mut scheduler, 3, on_a(&[600]));
    uses(&mut scheduler, 4, 200, 0);
    assert_eq!(phase(&scheduler, waits), Some(GrantPhase::Waiting), "the rest is still promised");
    take_in(&mut scheduler, 5, &[200], 200).unwrap();
    assert_eq!(phase(&scheduler, waits), Some(GrantPhase::Held));
}
