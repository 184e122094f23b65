//! Who gives way to whom, what is believed, and who is told.

use super::*;
use crate::process::Stop;
use crate::wire::{Kind, Sort, Step, Urgency};

fn urgent(priority: Urgency, rungs: &[u64]) -> LeaseRequest {
    LeaseRequest { priority, ..wants(rungs) }
}

#[test]
fn a_liar_is_not_believed() {
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(10, wants(&[600])));
    world.uses.insert((10, 0), 600);
    world.read();
    world.do_(10, Request::Return { lease });
    let said = world.ask(11, LeaseRequest { timeout_ms: Some(60_000), ..wants(&[600]) });
    assert!(matches!(said, Say::Queued(_)), "{said:?}");
    world.pass(9.0);
    assert!(!world.granted(11), "not verified: nobody gets it");
    world.pass(11.0);
    assert!(!world.granted(11), "given up on: it counts as a stranger's");
    assert_eq!((world.line(0), world.events("not-freed")), (400, 1));
    world.uses.clear();
    world.pass(1.0);
    assert!(world.granted(11), "now it is free");
}

#[test]
fn who_uses_more_than_was_promised_is_told_and_the_rest_counts_as_a_strangers() {
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(10, wants(&[400])));
    world.uses.insert((10, 0), 500);
    world.read();
    world.read();
    let over = Say::Over { lease, device: "gpu0".into(), promised: 400 * MIB, used: 500 * MIB };
    assert_eq!(world.told(10), [&over], "once");
    assert_eq!((world.line(0), world.events("over")), (900, 1));
    assert!(matches!(world.ask(11, wants(&[600])), Say::Queued(_)), "900 less 400 are 500");
    world.uses.insert((10, 0), 400);
    world.read();
    assert!(world.granted(11));
}

#[test]
fn strangers_lower_the_line_and_are_shown() {
    let mut world = World::new(1);
    world.uses.insert((77, 0), 300);
    world.read();
    assert_eq!(world.line(0), 700);
    let state = world.broker.state(world.now);
    assert_eq!((state.devices[0].strangers, state.holders[0].pid), (300 * MIB, Some(77)));
    assert_eq!(world.events("stranger"), 1);
}

/// A program that does not keep to the device it was given is seen on the other one.
#[test]
fn what_a_holder_uses_of_a_device_it_has_no_lease_for_is_a_strangers() {
    let mut world = World::new(2);
    world.ask(10, LeaseRequest { devices: vec!["gpu1".into()], ..wants(&[600]) });
    world.uses.insert((10, 0), 300);
    world.uses.insert((10, 1), 500);
    world.read();
    let state = world.broker.state(world.now);
    let found: Vec<_> = state.holders.iter().filter(|holder| holder.sort == Sort::Stranger).collect();
    let [stranger] = found[..] else { panic!("{found:?}") };
    assert_eq!((stranger.pid, stranger.portions[0].device.as_str()), (Some(10), "gpu0"));
    assert_eq!((stranger.portions[0].used, state.devices[0].strangers), (Some(300 * MIB), 300 * MIB));
    assert_eq!((world.line(0), world.line(1), world.events("stranger")), (700, 1_000, 1));
    let held = state.holders.iter().find(|holder| holder.lease.is_some()).unwrap();
    assert_eq!(held.portions[0].used, Some(500 * MIB), "what it has where it has a lease is its own");
}

/// A driver that knows the sum alone: nobody is said to use anything, and nothing counts as free before the sum has fallen.
#[test]
fn where_processes_are_not_told_apart_the_sum_is_what_counts() {
    let mut world = World { by_process: false, ..World::new(1) };
    world.uses.insert((77, 0), 100);
    let lease = lease_of(&world.ask(10, wants(&[600])));
    world.uses.insert((10, 0), 600);
    world.read();
    let state = world.broker.state(world.now);
    assert!(state.devices[0].by_sum.as_deref().is_some_and(|why| why.contains("tell processes apart")), "{state:?}");
    assert_eq!((state.devices[0].used, state.devices[0].strangers), (700 * MIB, 100 * MIB));
    let [holder] = &state.holders[..] else { panic!("strangers have no names here: {:?}", state.holders) };
    assert_eq!((holder.lease, holder.portions[0].used), (Some(lease), None));
    let because = world.broker.why(world.now, lease).unwrap();
    assert!(because.iter().any(|one| one.contains("its driver does not say what it uses")), "{because:?}");
    world.do_(10, Request::Return { lease });
    world.ask(11, LeaseRequest { timeout_ms: Some(60_000), ..wants(&[600]) });
    world.pass(3.0);
    assert!(!world.granted(11), "the sum has not fallen");
    world.uses.remove(&(10, 0));
    world.pass(1.0);
    assert!(world.granted(11));
    assert_eq!((world.promised(0), world.line(0), world.events("verified")), (600, 900, 1));
}

#[test]
fn a_lease_whose_process_is_not_known_makes_the_sum_count_and_that_is_said() {
    let mut world = World::new(1);
    let by_sum = |world: &World| world.broker.state(world.now).devices[0].by_sum.clone();
    assert_eq!(by_sum(&world), None);
    let request = LeaseRequest { name: "curl".into(), ..wants(&[600]) };
    let said = world.broker.lease(world.now, &Asker::Http, None, request, String::new());
    world.uses.insert((10, 0), 600);
    world.read();
    assert!(by_sum(&world).is_some_and(|why| why.contains("curl")), "{:?}", by_sum(&world));
    assert_eq!(world.line(0), 1_000, "what is used may be the lease's");
    let lease = lease_of(&said);
    assert_eq!(world.broker.ask(world.now, &Asker::Http, None, Request::Return { lease }), Say::Done);
    world.uses.clear();
    world.pass(1.0);
    assert_eq!(by_sum(&world), None);
}

#[test]
fn a_reserve_is_left_to_the_desktop() {
    let mut world = World::with(1, Settings { reserve: Bytes::mib(200), ..settings() });
    assert_eq!(world.line(0), 800);
    world.uses.insert((77, 0), 150);
    world.read();
    assert_eq!(world.line(0), 800, "the desktop grows into its reserve");
    world.uses.insert((77, 0), 300);
    world.read();
    assert_eq!(world.line(0), 700);
    assert!(matches!(world.ask(10, wants(&[801])), Say::Refused { .. }));
    // A device without a screen has none to leave anything to.
    let cpu = DeviceTruth { name: "cpu".to_owned(), kind: DeviceKind::Cpu, ..world.truths().remove(0) };
    world.broker.read(world.now, vec![cpu]);
    assert_eq!(world.broker.state(world.now).devices[1].reserve, 0);
}

/// Something two levels above makes a holder leave, and is given the room only once the driver shows it.
#[test]
fn the_more_urgent_makes_a_holder_leave() {
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(10, urgent(Urgency::Low, &[800])));
    world.uses.insert((10, 0), 800);
    world.pass(30.0);
    let said = world.ask(11, urgent(Urgency::High, &[800]));
    assert!(matches!(said, Say::Queued(_)), "{said:?}");
    let recalls = world.told(10);
    let Some(Say::Recall(recall)) = recalls.last() else { panic!("{recalls:?}") };
    assert_eq!((recall.step, recall.bytes), (Step::Leave, 0));
    assert!(recall.because.contains("job"), "{recall:?}");
    world.do_(10, Request::Return { lease });
    world.pass(1.0);
    assert!(!world.granted(11), "what it gave back is still in use");
    world.uses.clear();
    world.pass(1.0);
    assert!(world.granted(11));
}

#[test]
fn a_holder_steps_down_and_rises_again() {
    let mut fixed = settings();
    fixed.sharing.policy = plimsoll_core::SharePolicy::Fixed;
    let mut world = World::with(1, fixed);
    let lease = lease_of(&world.ask(10, urgent(Urgency::Low, &[800, 400])));
    world.uses.insert((10, 0), 800);
    world.pass(30.0);
    world.ask(11, urgent(Urgency::High, &[600]));
    let recalls = world.told(10);
    let Some(Say::Recall(recall)) = recalls.last() else { panic!("{recalls:?}") };
    assert_eq!((recall.step, recall.rung, recall.bytes), (Step::StepDown, Some(1), 400 * MIB));
    world.uses.insert((10, 0), 400);
    assert_eq!(world.do_(10, Request::Stepped { lease, rung: 1 }), Say::Done);
    world.pass(1.0);
    assert!(world.granted(11));
    world.uses.insert((11, 0), 600);
    world.pass(30.0);
    world.heard.clear();
    world.gone(11);
    world.pass(60.0);
    assert!(world.told(10).contains(&&Say::MayRise { lease, rung: 0 }), "{:?}", world.heard);
    assert_eq!(world.do_(10, Request::Rise { lease, rung: 0 }), Say::Done);
    assert_eq!(world.do_(10, Request::Stepped { lease, rung: 0 }), Say::Done);
    assert_eq!(world.promised(0), 800);
}

#[test]
fn who_agreed_is_stopped_in_the_end_and_nobody_else() {
    for may_be_stopped in [false, true] {
        let mut world = World::new(1);
        world.ask(10, LeaseRequest { may_be_stopped, ..urgent(Urgency::Low, &[800]) });
        world.uses.insert((10, 0), 800);
        world.pass(30.0);
        world.ask(11, LeaseRequest { timeout_ms: Some(300_000), ..urgent(Urgency::High, &[800]) });
        world.pass(60.0);
        let stops = world.heard.iter().filter_map(|effect| match effect {
            Effect::Stop { process, how, .. } if process.pid == 10 => Some(*how),
            _ => None,
        });
        let stops: Vec<Stop> = stops.collect();
        assert_eq!(stops, if may_be_stopped { vec![Stop::Ask, Stop::Kill] } else { vec![] });
        assert!(!world.granted(11), "the driver still shows it");
        assert!(world.events("overdue") + world.events("stopped") > 0);
        world.gone(10);
        world.pass(1.0);
        assert!(world.granted(11), "stoppable: {may_be_stopped}");
    }
}

#[test]
fn a_batch_is_not_disturbed_between_its_items() {
    let batch = LeaseRequest { batch_items: 5, ..urgent(Urgency::Low, &[800]) };
    let late = LeaseRequest { timeout_ms: Some(600_000), ..urgent(Urgency::High, &[800]) };
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(10, batch));
    world.uses.insert((10, 0), 800);
    world.pass(30.0);
    let stored: Vec<_> = world.broker.drain_changed().into_iter().filter_map(|(_, lease)| lease).collect();
    for is_adopted in [false, true] {
        if is_adopted {
            world.broker = Broker::new(world.now, settings(), 1, 1);
            let truths = world.truths();
            world.broker.add_devices(world.now, &truths);
            world.broker.adopt(world.now, stored.clone());
            let claim = Request::Claim { lease, secret: "secret 10".to_owned() };
            assert!(matches!(world.do_(10, claim), Say::Granted(_)));
            world.pass(30.0);
        }
        world.heard.clear();
        world.ask(11, late.clone());
        world.pass(20.0);
        assert!(world.told(10).is_empty(), "adopted: {is_adopted}, {:?}", world.told(10));
    }
    assert_eq!(world.do_(10, Request::SetBatch { lease, items: 0 }), Say::Done);
    world.pass(2.0);
    assert!(matches!(world.told(10).first(), Some(Say::Recall(_))), "its items are done: {:?}", world.told(10));
}

#[test]
fn a_priority_that_is_set_counts_from_then_on() {
    let mut world = World::new(1);
    world.ask(10, urgent(Urgency::Low, &[800]));
    world.uses.insert((10, 0), 800);
    world.pass(30.0);
    let late = LeaseRequest { timeout_ms: Some(600_000), ..urgent(Urgency::Low, &[800]) };
    let lease = lease_of(&world.ask(11, late));
    world.pass(5.0);
    assert!(world.told(10).is_empty(), "{:?}", world.told(10));
    assert_eq!(world.do_(12, Request::SetPriority { lease, priority: Urgency::High }), Say::Done);
    world.pass(2.0);
    assert!(matches!(world.told(10).first(), Some(Say::Recall(_))), "{:?}", world.told(10));
}

#[test]
fn what_is_pinned_is_never_asked_back() {
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(10, LeaseRequest { pinned: true, ..urgent(Urgency::Low, &[800]) }));
    world.uses.insert((10, 0), 800);
    world.pass(30.0);
    world.ask(11, urgent(Urgency::Critical, &[800]));
    world.pass(2.0);
    assert!(world.told(10).is_empty(), "{:?}", world.told(10));
    assert_eq!(world.do_(11, Request::SetPinned { lease, pinned: false }), Say::Done);
    world.pass(2.0);
    assert!(matches!(world.told(10).first(), Some(Say::Recall(_))));
}

#[test]
fn why_says_who_holds_it() {
    let mut world = World::new(1);
    world.ask(10, LeaseRequest { name: "holder".into(), ..wants(&[800]) });
    let said = world.ask(11, LeaseRequest { name: "waiter".into(), kind: Kind::Llm, ..wants(&[800]) });
    let lease = lease_of(&said);
    let Say::Queued(queued) = &said else { panic!("{said:?}") };
    assert!(queued.reason.contains("holder") && queued.reason.contains("gpu0"), "{}", queued.reason);
    let because = world.broker.why(world.now, lease).unwrap();
    assert!(because.iter().any(|one| one.contains("holder holds 800.0 MiB")), "{because:?}");
    assert!(because.iter().any(|one| one.contains("refused if it still waits in 30 s")), "{because:?}");
    world.pass(31.0);
    assert!(matches!(world.told(11).last(), Some(Say::Refused { .. })), "its patience is over");
    let because = world.broker.why(world.now, lease).unwrap();
    assert!(because[0].contains("over"), "{because:?}");
    assert!(world.broker.why(world.now, LeaseId(99)).is_err());
}

#[test]
fn only_who_was_asked_is_said_to_be_asked() {
    let mut world = World::new(1);
    for (pid, name, urgency) in [(10, "above", Urgency::High), (11, "below", Urgency::Low)] {
        world.ask(pid, LeaseRequest { name: name.to_owned(), ..urgent(urgency, &[400]) });
        world.uses.insert((pid, 0), 400);
    }
    world.pass(30.0);
    let Say::Queued(queued) = world.ask(12, urgent(Urgency::High, &[400])) else { panic!("there is room") };
    assert!(queued.reason.ends_with("the rest was asked back from below (400.0 MiB)"), "{}", queued.reason);
}

#[test]
fn a_reason_has_room_for_more_than_the_name_of_a_holder() {
    let mut world = World::new(1);
    let name = "python serve.py model=/models/large-instruct port=8080 more".to_owned();
    world.ask(10, LeaseRequest { name, ..wants(&[800]) });
    let said = world.ask(11, wants(&[800]));
    let Say::Queued(queued) = &said else { panic!("{said:?}") };
    assert!(queued.reason.ends_with("held by python serve.py model=/models/l… (800.0 MiB)"), "{}", queued.reason);
}
