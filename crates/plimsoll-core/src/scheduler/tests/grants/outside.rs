//! Other programs: what they hold does not count twice, and what they give back is free when the driver says so.

use super::*;
use crate::event::{GrantEdge, What};
use crate::line::Memory;

fn program(rungs: &[u64]) -> GrantSpec {
    GrantSpec { owner: GrantOwner::Program(42), ..on_a(rungs) }
}

/// The driver says that other programs hold so much of the first device; we hold nothing.
fn others_hold(scheduler: &mut Scheduler<Nothing>, at: u64, held: u64) {
    scheduler.memory_reading_begins(A);
    let memory = Memory { capacity: Bytes(1_000), free: Bytes(1_000 - held), ..Memory::default() };
    scheduler.set_memory(Moment(at), A, memory);
    scheduler.check_invariants().expect("the books agree");
}

fn free(scheduler: &Scheduler<Nothing>) -> u64 {
    scheduler.ledger().free(A).0
}

#[test]
fn what_a_program_uses_of_its_grant_is_promised_once() {
    let mut scheduler = three_gpus();
    others_hold(&mut scheduler, 1, 100);
    ask(&mut scheduler, 2, program(&[500]));
    assert_eq!(free(&scheduler), 400);
    for (at, used) in [(3, 0), (4, 250), (5, 500)] {
        others_hold(&mut scheduler, at, 100 + used);
        assert_eq!(free(&scheduler), 400, "{used} of its 500 in use");
    }
    others_hold(&mut scheduler, 6, 700);
    assert_eq!(free(&scheduler), 300, "somebody took 100 that nobody was granted");
}

#[test]
fn what_it_gives_back_is_not_promised_again_before_the_driver_says_that_it_is_free() {
    let mut scheduler = three_gpus();
    scheduler.listen(true);
    let id = ask(&mut scheduler, 1, program(&[800]));
    others_hold(&mut scheduler, 2, 800);
    let waits = ask(&mut scheduler, 3, on_a(&[900]));
    assert!(scheduler.return_grant(Moment(4), id));
    assert!(!scheduler.return_grant(Moment(4), id));
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0"]);
    assert_eq!((phase(&scheduler, id), free(&scheduler)), (Some(GrantPhase::Returning), 200));
    assert_eq!(scheduler.grant(id).unwrap().returning[..], [(A, Bytes(800))]);
    assert!(scheduler.needs_readings());
    others_hold(&mut scheduler, 5, 800);
    assert_eq!(phase(&scheduler, waits), Some(GrantPhase::Waiting), "it said so, the driver does not");
    others_hold(&mut scheduler, 6, 300);
    assert_eq!(scheduler.grant(id).unwrap().returning[..], [(A, Bytes(300))]);
    others_hold(&mut scheduler, 7, 0);
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"]);
    assert_eq!(phase(&scheduler, id), None);
    let ends = scheduler
        .drain_events()
        .into_iter()
        .filter(|event| matches!(event.what, What::Grant { edge: GrantEdge::Ended(_), .. }));
    assert_eq!(ends.count(), 1);
}

/// A reading that began before the return may have been taken while the program was between two allocations.
#[test]
fn a_reading_that_began_before_the_return_does_not_count() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, program(&[800]));
    others_hold(&mut scheduler, 2, 800);
    scheduler.memory_reading_begins(A);
    scheduler.return_grant(Moment(3), id);
    scheduler.set_memory(Moment(4), A, Memory { capacity: Bytes(1_000), free: Bytes(1_000), ..Memory::default() });
    assert_eq!(phase(&scheduler, id), Some(GrantPhase::Returning));
    others_hold(&mut scheduler, 5, 0);
    assert_eq!(phase(&scheduler, id), None);
}

#[test]
fn a_program_that_steps_down_gives_back_the_same_way() {
    let mut scheduler = three_gpus();
    let id = ask(&mut scheduler, 1, with(Priority::Low, program(&[800, 300])));
    others_hold(&mut scheduler, 2, 800);
    let waits = ask(&mut scheduler, 3, on_a(&[600]));
    assert_eq!(heard(&mut scheduler), ["grant 1 holds rung 0", "grant 1 should step down to 1"]);
    scheduler.stepped_to(Moment(4), id, 1).unwrap();
    let status = scheduler.grant(id).unwrap();
    assert_eq!((status.phase, &status.promised[..]), (GrantPhase::Held, &[(A, Bytes(300))][..]));
    assert_eq!(status.returning[..], [(A, Bytes(500))]);
    assert!(heard(&mut scheduler).is_empty(), "nobody is asked again for what is on its way");
    others_hold(&mut scheduler, 5, 800);
    assert_eq!(phase(&scheduler, waits), Some(GrantPhase::Waiting));
    others_hold(&mut scheduler, 6, 300);
    assert_eq!(heard(&mut scheduler), ["grant 2 holds rung 0"]);
    assert_eq!((promised(&scheduler)[0], free(&scheduler)), (900, 100));
}

#[test]
fn what_is_never_seen_to_be_free_is_believed_to_be_what_the_driver_says() {
    let mut scheduler = three_gpus();
    scheduler.listen(true);
    let id = ask(&mut scheduler, 1, program(&[800]));
    others_hold(&mut scheduler, 2, 800);
    scheduler.return_grant(Moment(3), id);
    let until = Moment(3) + scheduler.config().return_wait_max;
    assert_eq!(scheduler.next_tick(), Some(until));
    others_hold(&mut scheduler, 4, 700);
    scheduler.tick(until);
    assert_eq!((phase(&scheduler, id), promised(&scheduler)[0]), (None, 0));
    assert_eq!(free(&scheduler), 300, "700 are in use, whoever has them: they are promised to nobody");
    let unseen = What::Grant { grant: id, edge: GrantEdge::Unseen { device: A, bytes: Bytes(700) } };
    assert!(scheduler.drain_events().iter().any(|event| event.what == unseen));
    others_hold(&mut scheduler, until.0 + 1, 0);
    assert_eq!(free(&scheduler), 1_000);
}

/// What one program gave back is not taken for free because another one uses less than it may.
#[test]
fn two_programs_are_told_apart_by_what_the_figure_falls_by() {
    let mut scheduler = three_gpus();
    let (first, second) = (ask(&mut scheduler, 1, program(&[400])), ask(&mut scheduler, 1, program(&[400])));
    others_hold(&mut scheduler, 2, 600);
    scheduler.return_grant(Moment(3), first);
    others_hold(&mut scheduler, 4, 600);
    assert_eq!(phase(&scheduler, first), Some(GrantPhase::Returning), "the 600 may be 400 of the first");
    others_hold(&mut scheduler, 5, 200);
    assert_eq!((phase(&scheduler, first), phase(&scheduler, second)), (None, Some(GrantPhase::Held)));
    assert_eq!(free(&scheduler), 600);
}

/// The host's memory is measured as a whole: what other programs are granted is no part of our own heap.
#[test]
fn a_programs_grant_is_not_taken_for_our_own_heap() {
    let mut scheduler = three_gpus();
    let read = |scheduler: &mut Scheduler<Nothing>, at: u64, resident: u64, others: u64| {
        scheduler.memory_reading_begins(A);
        let free = Bytes(1_000 - resident - others);
        let memory = Memory { capacity: Bytes(1_000), free, ours: Bytes::ZERO, resident: Some(Bytes(resident)) };
        scheduler.set_memory(Moment(at), A, memory);
    };
    read(&mut scheduler, 1, 100, 0);
    ask(&mut scheduler, 2, program(&[300]));
    read(&mut scheduler, 3, 250, 300);
    assert_eq!(scheduler.ledger().line(A), Bytes(750), "the 150 that came on top are not promised to anybody");
}

/// What ran out of memory is compared by what others leave, and that a program with a grant does not leave its bytes.
#[test]
fn a_program_leaves_less_than_its_grant_makes_it_seem() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, program(&[600]));
    others_hold(&mut scheduler, 2, 600);
    assert_eq!(scheduler.left_by_others(A), Bytes(400));
}

/// The driver says what each of two programs uses of the first device, and what strangers do.
fn owners_use(scheduler: &mut Scheduler<Nothing>, at: u64, used: [u64; 2], strangers: u64) {
    scheduler.memory_reading_begins(A);
    let free = Bytes(1_000 - used[0] - used[1] - strangers);
    let memory = Memory { capacity: Bytes(1_000), free, ..Memory::default() };
    let used = [1, 2].map(|program| (GrantOwner::Program(program), Bytes(used[program as usize - 1])));
    scheduler.set_memory_by_owner(Moment(at), A, memory, &used);
    scheduler.check_invariants().expect("the books agree");
}

/// Who has freed what is known at once, where the sum alone could not tell.
#[test]
fn what_each_program_uses_tells_who_has_freed_what() {
    let mut scheduler = three_gpus();
    let by = |program, bytes| GrantSpec { owner: GrantOwner::Program(program), ..on_a(&[bytes]) };
    let (first, second) = (ask(&mut scheduler, 1, by(1, 400)), ask(&mut scheduler, 1, by(2, 400)));
    owners_use(&mut scheduler, 2, [0, 400], 0);
    scheduler.return_grant(Moment(3), first);
    owners_use(&mut scheduler, 4, [0, 400], 0);
    assert_eq!((phase(&scheduler, first), free(&scheduler)), (None, 600), "it never used them");
    scheduler.return_grant(Moment(5), second);
    owners_use(&mut scheduler, 6, [0, 300], 100);
    assert_eq!(scheduler.grant(second).unwrap().returning[..], [(A, Bytes(300))], "100 are free, whoever took as much");
    assert_eq!(free(&scheduler), 600);
    scheduler.tick(Moment(5) + scheduler.config().return_wait_max);
    assert_eq!((phase(&scheduler, second), free(&scheduler)), (None, 600), "nobody waits for it, and it is in use");
    owners_use(&mut scheduler, 1 << 40, [0, 300], 0);
    assert_eq!(free(&scheduler), 700);
    owners_use(&mut scheduler, 1 << 41, [0, 0], 0);
    assert_eq!(free(&scheduler), 1_000);
}

/// It gave back 300 that it went on using, and still has a grant of 400: of what it uses no more than those 300, and ever
/// less as it frees them, are beyond that grant.
#[test]
fn what_was_given_up_on_is_not_taken_for_use_of_what_its_owner_still_holds() {
    let mut scheduler = three_gpus();
    let of = |bytes| GrantSpec { owner: GrantOwner::Program(1), ..on_a(&[bytes]) };
    let (gone, stays) = (ask(&mut scheduler, 1, of(300)), ask(&mut scheduler, 1, of(400)));
    owners_use(&mut scheduler, 2, [300, 0], 0);
    scheduler.return_grant(Moment(3), gone);
    scheduler.tick(Moment(3) + scheduler.config().return_wait_max);
    assert_eq!((phase(&scheduler, gone), phase(&scheduler, stays)), (None, Some(GrantPhase::Held)));
    for (at, used, left) in [(1, 300, 300), (2, 500, 300), (3, 100, 500), (4, 500, 500)] {
        owners_use(&mut scheduler, at << 40, [used, 0], 0);
        assert_eq!(free(&scheduler), left, "{used} in use");
    }
}

#[test]
fn what_a_program_uses_beyond_its_grant_is_a_strangers() {
    let mut scheduler = three_gpus();
    ask(&mut scheduler, 1, GrantSpec { owner: GrantOwner::Program(1), ..on_a(&[400]) });
    ask(&mut scheduler, 1, GrantSpec { owner: GrantOwner::Program(2), ..on_a(&[400]) });
    owners_use(&mut scheduler, 2, [600, 0], 0);
    assert_eq!(free(&scheduler), 0, "what one has too much is not what the other has not used yet");
    owners_use(&mut scheduler, 3, [400, 0], 0);
    assert_eq!(free(&scheduler), 200);
}

/// The figure may be all of what the first gave back, and some of what the second did after the reading had begun.
#[test]
fn what_was_given_back_during_a_reading_is_no_reason_to_believe_in_what_was_before() {
    let mut scheduler = three_gpus();
    let (first, second) = (ask(&mut scheduler, 1, program(&[300])), ask(&mut scheduler, 1, program(&[500])));
    others_hold(&mut scheduler, 2, 600);
    scheduler.return_grant(Moment(3), first);
    scheduler.memory_reading_begins(A);
    scheduler.return_grant(Moment(4), second);
    scheduler.set_memory(Moment(5), A, Memory { capacity: Bytes(1_000), free: Bytes(400), ..Memory::default() });
    let returning = |id| scheduler.grant(id).map(|status| status.returning.iter().map(|(_, bytes)| bytes.0).sum());
    assert_eq!([first, second].map(returning), [Some(300_u64), Some(500)]);
}

/// Of a program on two devices each comes back when its own driver says so.
#[test]
fn what_is_free_on_one_device_says_nothing_of_another() {
    let mut scheduler = three_gpus();
    let spec = GrantSpec::new(GrantOwner::Program(42), vec![rung(&[(A, 800), (B, 500)])]);
    let id = ask(&mut scheduler, 1, spec);
    let read = |scheduler: &mut Scheduler<Nothing>, at: u64, device: DeviceId, held: u64| {
        scheduler.memory_reading_begins(device);
        let memory = Memory { capacity: Bytes(1_000), free: Bytes(1_000 - held), ..Memory::default() };
        scheduler.set_memory(Moment(at), device, memory);
        scheduler.check_invariants().expect("the books agree");
    };
    read(&mut scheduler, 2, A, 800);
    read(&mut scheduler, 2, B, 500);
    scheduler.return_grant(Moment(3), id);
    read(&mut scheduler, 4, A, 800);
    read(&mut scheduler, 5, B, 0);
    assert_eq!(promised(&scheduler), [800, 0, 0]);
    read(&mut scheduler, 6, A, 0);
    assert_eq!((promised(&scheduler), phase(&scheduler, id)), ([0, 0, 0], None));
}

/// On the host, where the process as a whole is measured: of the 150 that came on top at most 50 are ours.
#[test]
fn what_programs_still_have_is_no_part_of_our_heap_when_another_is_given_up_on() {
    let mut scheduler = three_gpus();
    let read = |scheduler: &mut Scheduler<Nothing>, at: u64, resident: u64| {
        scheduler.memory_reading_begins(A);
        let (free, resident) = (Bytes(1_000 - resident), Some(Bytes(resident)));
        let memory = Memory { capacity: Bytes(1_000), free, ours: Bytes::ZERO, resident };
        scheduler.set_memory(Moment(at), A, memory);
    };
    read(&mut scheduler, 1, 100);
    scheduler.lease(Moment(2), &[(A, Bytes(50))]).unwrap();
    let gone = ask(&mut scheduler, 2, program(&[200]));
    ask(&mut scheduler, 2, program(&[300]));
    read(&mut scheduler, 3, 250);
    assert_eq!(scheduler.ledger().line(A), Bytes(800));
    scheduler.return_grant(Moment(4), gone);
    scheduler.tick(Moment(4) + scheduler.config().return_wait_max);
    assert_eq!((phase(&scheduler, gone), scheduler.ledger().line(A)), (None, Bytes(800)));
}
