//! Who gives way to whom, what is believed, and who is told.

use super::*;
use crate::process::Stop;
use crate::wire::{Kind, Step, Urgency};

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
    let mut world = World::new(1);
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
