//! The life of a lease: given, returned, believed; and every way it ends.

use super::*;
use crate::wire::Phase;

#[test]
fn a_lease_is_given_at_once_and_free_when_the_driver_says_so() {
    let mut world = World::new(1);
    let said = world.ask(10, wants(&[600]));
    let Say::Granted(granted) = &said else { panic!("{said:?}") };
    assert_eq!((granted.bytes, granted.devices.as_slice()), (600 * MIB, ["gpu0".to_owned()].as_slice()));
    assert_eq!(granted.environment, [("CUDA_VISIBLE_DEVICES".to_owned(), "0".to_owned())]);
    world.uses.insert((10, 0), 600);
    world.read();
    assert_eq!((world.promised(0), world.line(0)), (600, 1_000), "its use is not counted twice");
    assert_eq!(world.do_(10, Request::Return { lease: granted.lease }), Say::Done);
    world.read();
    assert_eq!(world.promised(0), 600, "it said so, the driver does not");
    assert_eq!(world.broker.state(world.now).holders[0].phase, Phase::Returning);
    world.uses.clear();
    world.read();
    assert_eq!((world.promised(0), world.events("verified")), (0, 1));
}

#[test]
fn a_lease_is_returned_once() {
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(10, wants(&[600])));
    assert_eq!(world.do_(10, Request::Return { lease }), Say::Done);
    for _ in 0..3 {
        assert!(matches!(world.do_(10, Request::Return { lease }), Say::Error { .. }));
        world.read();
    }
    assert_eq!(world.promised(0), 0);
    assert_eq!(lease_of(&world.ask(10, wants(&[600]))), LeaseId(lease.0 + 1), "a number is never used again");
}

#[test]
fn what_never_fits_is_refused_at_once() {
    let mut world = World::new(2);
    let said = world.ask(10, wants(&[1_001]));
    assert!(matches!(&said, Say::Refused { why, .. } if why.contains("gpu")), "{said:?}");
    let Say::Granted(granted) = world.ask(10, wants(&[1_001, 900])) else { panic!("its lower rung fits") };
    assert_eq!(granted.rung, 1);
}

#[test]
fn requests_that_cannot_be_meant_are_named() {
    let mut world = World::new(1);
    type Spoil = fn(&mut LeaseRequest);
    let wrong: [(&str, Spoil); 9] = [
        ("name", |request| request.name.clear()),
        ("rungs", |request| request.ladder.clear()),
        ("no bytes", |request| request.ladder[0].bytes = 0),
        ("quality", |request| request.ladder[0].quality = 1.5),
        ("quality", |request| request.ladder[0].quality = f64::NAN),
        ("goes down", |request| {
            request.ladder = vec![request.ladder[0], Rung { bytes: 900 * MIB, ..request.ladder[0] }]
        }),
        ("no device 'gpu7'", |request| request.devices = vec!["gpu7".to_owned()]),
        ("ttl", |request| request.ttl_ms = Some(1)),
        ("twice", |request| request.devices = vec!["gpu0".to_owned(), "gpu0".to_owned()]),
    ];
    for (named, spoil) in wrong {
        let mut request = wants(&[600]);
        spoil(&mut request);
        let said = world.ask(10, request);
        assert!(matches!(&said, Say::Refused { lease: None, why } if why.contains(named)), "{named}: {said:?}");
    }
    assert_eq!(world.promised(0), 0);
}

#[test]
fn several_devices_are_given_together_or_not_at_all() {
    let mut world = World::new(2);
    let both = |mib| LeaseRequest { devices: vec!["gpu0".into(), "gpu1".into()], ..wants(&[mib]) };
    let on_one = LeaseRequest { devices: vec!["gpu1".into()], ..wants(&[500]) };
    let first = lease_of(&world.ask(10, on_one));
    let second = world.ask(11, both(600));
    assert!(matches!(second, Say::Queued(_)), "{second:?}");
    assert_eq!((world.promised(0), world.promised(1)), (0, 500), "nothing is held by who waits");
    world.do_(10, Request::Return { lease: first });
    world.read();
    assert!(world.granted(11));
    assert_eq!((world.promised(0), world.promised(1)), (600, 600));
}

#[test]
fn any_one_device_means_every_quality_on_each_before_the_next() {
    let mut world = World::new(2);
    world.ask(10, LeaseRequest { devices: vec!["gpu0".into()], ..wants(&[500]) });
    let Say::Granted(granted) = world.ask(11, wants(&[800, 400])) else { panic!("it fits on gpu1") };
    assert_eq!((granted.rung, granted.devices.as_slice()), (0, ["gpu1".to_owned()].as_slice()));
    let Say::Granted(granted) = world.ask(12, wants(&[800, 400])) else { panic!("its lower rung fits on gpu0") };
    assert_eq!((granted.rung, granted.bytes, granted.devices[0].as_str()), (1, 400 * MIB, "gpu0"));
}

#[test]
fn a_connection_that_ends_takes_its_leases_with_it() {
    let mut world = World::new(1);
    world.ask(10, wants(&[600]));
    world.uses.insert((10, 0), 600);
    world.ask(11, wants(&[600]));
    world.gone(10);
    world.read();
    assert!(world.granted(11), "and the next one is given them");
    let waits = world.ask(12, wants(&[600]));
    assert!(matches!(waits, Say::Queued(_)));
    world.gone(12);
    assert_eq!(world.broker.state(world.now).queue.len(), 0);
}

#[test]
fn a_lease_that_another_process_holds_ends_with_that_process() {
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(10, wants(&[600])));
    let child = Process { pid: 20, started: 9 };
    let attach = Request::Attach { lease, pid: 20, secret: None };
    let said = world.broker.ask(world.now, &Asker::Client(ClientId(10)), Some(child), attach);
    assert_eq!(said, Say::Done);
    world.uses.insert((20, 0), 600);
    world.gone(10);
    world.pass(600.0);
    assert_eq!((world.promised(0), world.line(0)), (600, 1_000), "its process lives, and what it uses is its own");
    assert_eq!(world.broker.watched(), [child]);
    world.uses.clear();
    world.broker.processes_ended(world.now, &[child]);
    world.read();
    assert_eq!(world.promised(0), 0);
}

#[test]
fn what_children_use_is_counted_for_the_lease_above_them() {
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(100_020, wants(&[600])));
    world.uses.insert((20, 0), 500);
    world.read();
    let holder = world.broker.state(world.now).holders.remove(0);
    assert_eq!((holder.lease, holder.portions[0].used), (Some(lease), Some(500 * MIB)));
    assert_eq!(world.line(0), 1_000);
}

#[test]
fn a_lease_over_http_lives_from_heartbeat_to_heartbeat() {
    let mut world = World::new(1);
    let request = LeaseRequest { ttl_ms: Some(2_000), ..wants(&[600]) };
    let said = world.broker.lease(world.now, &Asker::Http, None, request, String::new());
    let lease = lease_of(&said);
    for _ in 0..5 {
        world.pass(1.5);
        let said = world.broker.ask(world.now, &Asker::Http, None, Request::Heartbeat { lease });
        assert!(matches!(said, Say::Granted(_)), "{said:?}");
    }
    world.pass(2.5);
    assert_eq!((world.promised(0), world.broker.lease_count()), (0, 0));
    assert!(matches!(world.broker.ask(world.now, &Asker::Http, None, Request::Heartbeat { lease }), Say::Error { .. }));
}

/// People and other clients may release any lease: whoever owns it hears of that.
#[test]
fn the_owner_of_a_lease_that_somebody_released_is_told() {
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(10, wants(&[300])));
    assert_eq!(world.do_(11, Request::Return { lease }), Say::Done);
    assert!(matches!(world.told(10)[..], [Say::Ended { lease: ended, .. }] if *ended == lease), "{:?}", world.heard);
    let engine = Asker::Engine("ollama".to_owned());
    let said = world.broker.lease(world.now, &engine, None, wants(&[300]), String::new());
    let lease = lease_of(&said);
    world.collect();
    world.heard.clear();
    assert_eq!(world.do_(11, Request::Return { lease }), Say::Done);
    let is_told = |effect: &Effect| matches!(effect, Effect::TellEngine { say: Say::Ended { .. }, .. });
    assert!(world.heard.iter().any(is_told), "{:?}", world.heard);
}

/// The clock on the wall is for people: whatever becomes of it, leases and plots go on.
#[test]
fn a_clock_that_jumps_moves_times_that_are_shown_and_nothing_else() {
    let mut world = World::new(1);
    let request = LeaseRequest { ttl_ms: Some(60_000), ..wants(&[600]) };
    let lease = lease_of(&world.broker.lease(world.now, &Asker::Http, None, request, String::new()));
    world.pass(5.0);
    let samples = |world: &World| world.broker.history().next().unwrap().1.len();
    let before = samples(&world);
    for wall_start_ms in [1_700_000_000_000 - 86_400_000, 1_700_000_000_000 + 86_400_000] {
        world.broker.set_wall_start(wall_start_ms);
        world.pass(5.0);
        let state = world.broker.state(world.now);
        assert!(state.at_ms.abs_diff(wall_start_ms) < 60_000, "{}", state.at_ms);
        assert!(state.at_ms - state.holders[0].since_ms < 60_000, "{state:?}");
    }
    assert!(samples(&world) >= before + 9, "{} samples", samples(&world));
    assert!(world.broker.status(world.now, lease).is_some(), "its time is not over");
    world.pass(50.0);
    assert!(world.broker.status(world.now, lease).is_none(), "now it is");
}

#[test]
fn a_lease_over_http_lives_a_minute_if_its_client_does_not_say() {
    let mut world = World::new(1);
    let lease = lease_of(&world.broker.lease(world.now, &Asker::Http, None, wants(&[600]), String::new()));
    world.pass(59.0);
    assert!(world.broker.status(world.now, lease).is_some());
    world.pass(2.0);
    assert!(world.broker.status(world.now, lease).is_none());
}

/// The journal forgets a lease whose process ended while no daemon served, or every daemon would read it again.
#[test]
fn what_dead_processes_held_is_over_for_the_next_daemon_too() {
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(10, wants(&[600])));
    let stored: Vec<_> = world.broker.drain_changed().into_iter().filter_map(|(_, lease)| lease).collect();
    world.broker = Broker::new(world.now, settings(), 1, 1);
    world.broker.left_behind(world.now, stored);
    assert_eq!(world.broker.drain_changed(), [(lease, None)]);
    assert_eq!((world.events("ended"), world.broker.next_lease()), (1, lease.0 + 1));
}

#[test]
fn only_its_owner_steps_a_lease_and_only_its_secret_claims_it() {
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(10, wants(&[600, 300])));
    let stepped = Request::Stepped { lease, rung: 1 };
    assert!(matches!(world.do_(11, stepped.clone()), Say::Error { .. }));
    for secret in ["", "secret 1", "secret 100"] {
        let claim = Request::Claim { lease, secret: secret.to_owned() };
        assert!(matches!(world.do_(11, claim), Say::Error { .. }), "{secret}");
    }
    let claim = Request::Claim { lease, secret: "secret 10".to_owned() };
    assert!(matches!(world.do_(11, claim), Say::Granted(_)));
    assert_eq!(world.do_(11, stepped), Say::Done);
}

#[test]
fn the_next_daemon_takes_over_what_is_held() {
    let mut world = World::new(2);
    let lease = lease_of(&world.ask(10, LeaseRequest { devices: vec!["gpu1".into()], ..wants(&[600, 300]) }));
    world.do_(10, Request::Stepped { lease, rung: 1 });
    world.ask(11, LeaseRequest { devices: vec!["gpu1".into()], ..wants(&[900]) });
    world.uses.insert((10, 1), 300);
    let stored: Vec<_> = world.broker.drain_changed().into_iter().filter_map(|(_, lease)| lease).collect();
    assert_eq!(stored.len(), 1, "who waits is not kept");
    let text = serde_json::to_string(&stored).unwrap();
    let next = world.broker.next_lease();

    let mut world = World { broker: Broker::new(Moment(1), settings(), next, 1), ..world };
    world.now = Moment(1);
    let truths = world.truths();
    world.broker.add_devices(world.now, &truths);
    world.broker.adopt(world.now, serde_json::from_str(&text).unwrap());
    world.read();
    assert_eq!((world.promised(1), world.line(1)), (300, 1_000), "what it uses is its own");
    let claim = Request::Claim { lease, secret: "secret 10".to_owned() };
    let Say::Granted(granted) = world.do_(10, claim) else { panic!("it is claimed") };
    assert_eq!((granted.rung, granted.bytes), (1, 300 * MIB));
    assert!(lease_of(&world.ask(12, wants(&[1]))).0 >= next, "numbers go on");
    world.gone(10);
    world.read();
    assert_eq!(world.promised(1), 0);
}

/// A driver that is slow when the daemon begins costs nobody its lease.
#[test]
fn a_lease_waits_for_its_device_to_be_known() {
    let mut world = World::new(1);
    let lease = lease_of(&world.ask(10, wants(&[600])));
    world.uses.insert((10, 0), 600);
    let stored: Vec<_> = world.broker.drain_changed().into_iter().filter_map(|(_, lease)| lease).collect();
    world.broker = Broker::new(world.now, settings(), 1, 1);
    world.broker.adopt(world.now, stored);
    assert!(world.broker.drain_changed().is_empty(), "the journal keeps it");
    world.read();
    assert_eq!((world.promised(0), world.line(0)), (600, 1_000));
    assert!(lease_of(&world.ask(11, wants(&[100]))) > lease);
}

#[test]
fn what_nobody_claims_from_the_next_daemon_is_over() {
    let mut world = World::new(1);
    world.ask(10, wants(&[600]));
    let stored: Vec<_> = world.broker.drain_changed().into_iter().filter_map(|(_, lease)| lease).collect();
    world.broker = Broker::new(world.now, settings(), 1, 1);
    let truths = world.truths();
    world.broker.add_devices(world.now, &truths);
    world.broker.adopt(world.now, stored);
    world.pass(59.0);
    assert_eq!(world.promised(0), 600);
    world.pass(2.0);
    assert_eq!(world.promised(0), 0);
}
