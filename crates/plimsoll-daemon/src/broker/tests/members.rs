//! Other programs of the user that share the book: what is left beside them, and how they are shown.

use plimsoll::book::{Entry, MemberId};
use plimsoll_core::Priority;
use plimsoll_core::allotment::Want;

use super::*;
use crate::wire::{Sort, Urgency};

const GPU: plimsoll_core::DeviceId = plimsoll_core::DeviceId(0);

/// What a process says of the first device in the book.
fn entry(pid: u32, allotted: u64, wanted: Option<u64>) -> Entry {
    let wanted = wanted.map(|mib| Want { bytes: Bytes::mib(mib), priority: Priority::High, since: Moment(5_000_000) });
    let member = MemberId { pid, started: 7, number: 0 };
    Entry { program: "score".to_owned(), allotted: Bytes::mib(allotted), wanted, ..Entry::new(member, "card 0") }
}

fn sharing() -> World {
    let mut world = World::new(1);
    world.broker.join_book(world.now);
    world
}

#[test]
fn no_more_is_promised_than_the_book_allots() {
    let mut world = sharing();
    assert!(matches!(world.ask(10, wants(&[600])), Say::Queued(_)), "nothing is allotted yet");
    assert!(world.broker.wants_allotment(), "so the book is asked");
    assert!(!world.broker.wants_allotment(), "once");
    let seen = world.broker.stand(GPU);
    assert_eq!((seen.allotment, seen.wanted), (Some(Bytes::ZERO), Some((Bytes::mib(600), Priority::Normal))));
    world.broker.allot(world.now, GPU, Some(Bytes::mib(599)));
    world.collect();
    assert!(!world.granted(10));
    world.broker.allot(world.now, GPU, Some(Bytes::mib(600)));
    world.collect();
    assert!(world.granted(10));
    assert!(matches!(world.ask(11, wants(&[1])), Say::Queued(_)));
    world.broker.allot(world.now, GPU, None);
    world.collect();
    assert!(world.granted(11), "without a book what is free is promised");
}

#[test]
fn what_is_promised_stays_allotted_whatever_the_book_wants_back() {
    let mut world = sharing();
    world.broker.allot(world.now, GPU, Some(Bytes::mib(1_000)));
    let mut request = LeaseRequest { priority: Urgency::Background, ..wants(&[600, 100]) };
    // As good as is recommended for it, so that it is given the first.
    request.ladder.iter_mut().for_each(|rung| rung.quality = 0.4);
    world.ask(10, request);
    world.pass(60.0);
    world.broker.lower(world.now, GPU, Bytes::mib(200), None);
    world.pass(60.0);
    assert_eq!(world.broker.allotted(GPU), Bytes::mib(600));
    assert_eq!(world.told(10).len(), 0, "nobody more urgent wants it: {:?}", world.heard);
    world.broker.lower(world.now, GPU, Bytes::mib(200), Some(Priority::High));
    world.collect();
    assert!(matches!(world.told(10)[..], [Say::Recall(recall)] if recall.bytes == 100 * MIB), "{:?}", world.heard);
}

/// Who asks beside what is promised beyond the allotment has it asked for on top of that, not instead of it.
#[test]
fn what_is_wanted_comes_on_top_of_what_is_promised() {
    let mut world = World::new(1);
    world.ask(10, wants(&[300]));
    world.broker.join_book(world.now);
    assert_eq!(world.broker.stand(GPU).allotment, Some(Bytes::mib(300)), "an earlier daemon's leases are there");
    world.broker.lower(world.now, GPU, Bytes::mib(50), None);
    world.ask(11, wants(&[100]));
    assert_eq!(world.broker.stand(GPU).wanted, Some((Bytes::mib(400), Priority::Normal)));
}

#[test]
fn a_device_that_comes_later_is_in_the_book_too() {
    let mut world = sharing();
    world.devices = 2;
    world.read();
    assert_eq!(world.broker.in_book().len(), 2);
    let second = LeaseRequest { devices: vec!["gpu1".into()], ..wants(&[1]) };
    assert!(matches!(world.ask(10, second), Say::Queued(_)));
}

#[test]
fn members_are_shown_with_what_they_may_promise_and_what_they_use() {
    let mut world = sharing();
    world.broker.allot(world.now, GPU, Some(Bytes::mib(300)));
    world.ask(10, wants(&[300]));
    world.uses.insert((10, 0), 250);
    world.uses.insert((40, 0), 120);
    world.uses.insert((50, 0), 30);
    world.broker.set_members(vec![entry(40, 200, None), entry(40, 100, None), entry(41, 0, Some(400))]);
    world.read();
    let state = world.broker.state(world.now);
    let of = |sort: Sort| state.holders.iter().filter(|holder| holder.sort == sort).collect::<Vec<_>>();
    let members = of(Sort::Member);
    assert_eq!(members.len(), 2, "one for each process");
    assert_eq!((members[0].name.as_str(), members[0].pid), ("score", Some(40)));
    assert_eq!((members[0].portions[0].promised, members[0].portions[0].used), (300 * MIB, Some(120 * MIB)));
    assert_eq!(of(Sort::Stranger).iter().map(|each| each.pid).collect::<Vec<_>>(), [Some(50)], "40 is known");
    let device = &state.devices[0];
    assert_eq!((device.promised, device.members), (600 * MIB, 300 * MIB));
    assert_eq!((device.strangers, device.line, device.used), (30 * MIB, 970 * MIB, 400 * MIB));
    let waiting = &state.queue[0];
    assert_eq!((waiting.pid, waiting.bytes, waiting.priority), (Some(41), 400 * MIB, Urgency::High));
    assert!(waiting.reason.contains("wants 400.0 MiB"), "{}", waiting.reason);
}

/// A program on a lease of one card that shares another by the book is a member there, and no stranger.
#[test]
fn a_member_with_a_lease_elsewhere_is_still_a_member() {
    let mut world = World::new(2);
    world.ask(40, LeaseRequest { devices: vec!["gpu1".into()], ..wants(&[100]) });
    world.broker.join_book(world.now);
    world.uses.insert((40, 0), 120);
    world.broker.set_members(vec![entry(40, 200, None)]);
    world.read();
    let state = world.broker.state(world.now);
    let member = state.holders.iter().find(|holder| holder.sort == Sort::Member).unwrap();
    assert_eq!((member.pid, member.portions[0].used), (Some(40), Some(120 * MIB)));
    assert_eq!((state.devices[0].strangers, state.devices[0].line), (0, 1_000 * MIB));
    assert!(state.holders.iter().all(|holder| holder.sort != Sort::Stranger), "{:?}", state.holders);
}

#[test]
fn who_waits_for_a_member_is_told_so() {
    let mut world = sharing();
    world.broker.set_members(vec![entry(40, 800, None)]);
    let said = world.ask(10, wants(&[600]));
    let Say::Queued(queued) = said else { panic!("{said:?}") };
    assert!(queued.reason.contains("other programs of yours: score (800.0 MiB)"), "{}", queued.reason);
}

/// Somebody who does not wait is not refused only because the book has to be asked.
#[test]
fn who_does_not_wait_is_given_what_the_book_has_in_a_moment() {
    let mut world = sharing();
    let at_once = LeaseRequest { timeout_ms: Some(0), ..wants(&[600]) };
    assert!(matches!(world.ask(10, at_once.clone()), Say::Queued(_)));
    world.broker.allot(world.now, GPU, Some(Bytes::mib(600)));
    world.collect();
    assert!(world.granted(10));
    assert!(matches!(world.ask(11, at_once), Say::Queued(_)));
    world.pass(0.3);
    assert!(matches!(world.told(11)[..], [Say::Refused { .. }]), "{:?}", world.told(11));
}

#[test]
fn half_of_what_nobody_has_is_kept_at_hand_while_nobody_wants_it() {
    let mut world = sharing();
    let wanted = |world: &mut World| world.broker.stand(GPU).wanted;
    assert_eq!(wanted(&mut world), Some((Bytes::mib(500), Priority::Background)));
    world.broker.allot(world.now, GPU, Some(Bytes::mib(500)));
    assert_eq!(wanted(&mut world), None, "that is at hand");
    world.broker.set_members(vec![entry(40, 300, None)]);
    world.ask(10, wants(&[480]));
    assert_eq!(wanted(&mut world), Some((Bytes::mib(600), Priority::Background)), "of the 200 that are left");
    world.broker.set_members(vec![entry(40, 300, Some(350))]);
    assert_eq!(wanted(&mut world), None, "somebody wants it");
}
