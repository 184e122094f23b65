//! Stealing: a device with nothing to do takes over what it would finish sooner, if that is worth looking for.

use super::*;

const THIEF: DeviceId = DeviceId(1);
const OWNER: DeviceId = DeviceId(0);

/// A GPU with so many slots, and another that was away while tasks of 100 µs were queued on the first.
fn queued(slots: usize, tasks: usize, ladder: Ladder) -> (Scheduler<Nothing>, TaskSpec) {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    for slots in [slots, 1] {
        scheduler.add_device(exact(DeviceKind::Gpu, slots, 1_000));
    }
    let spec = spec(&mut scheduler, ladder);
    for device in [OWNER, THIEF] {
        scheduler.teach(spec.workload, "gpu", device, 10, Nanos::micros(100));
    }
    scheduler.device_opened(Moment::START, OWNER);
    for _ in 0..tasks {
        scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
    }
    scheduler.device_opened(Moment::START, THIEF);
    (scheduler, spec)
}

#[test]
fn a_queue_of_two_hundred_microseconds_for_each_slot_is_not_worth_stealing_from() {
    let steals = |slots, tasks| queued(slots, tasks, on_gpu(10)).0.take(Moment::START, THIEF).is_some();
    assert!(!steals(1, 2) && steals(1, 3));
    assert!(!steals(2, 4) && steals(2, 6));
}

/// The better rung is known to be slow here, the lower one gives the same answer and is fast.
#[test]
fn a_thief_uses_the_rung_that_is_fastest_there() {
    let rung = |name| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(10)));
    let ladder = Ladder::from(vec![rung("gpu"), rung("strip")]);
    let (mut scheduler, spec) = queued(1, 5, ladder);
    scheduler.teach(spec.workload, "strip", THIEF, 10, Nanos::micros(1));
    let stolen = scheduler.take(Moment::START, THIEF).expect("five are waiting");
    assert_eq!(spec.ladder.rungs()[stolen.rung].name, "strip");
}

#[test]
fn no_rung_that_was_never_measured_is_stolen_for() {
    let rung = |name| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(10)));
    let ladder = Ladder::from(vec![rung("gpu"), rung("strip")]);
    let (mut scheduler, spec) = queued(1, 5, ladder);
    let stolen = scheduler.take(Moment::START, THIEF).expect("five are waiting");
    assert_eq!(spec.ladder.rungs()[stolen.rung].name, "gpu");
}

/// What each device gets is fixed: nobody evens it out.
#[test]
fn where_shares_are_kept_nobody_steals() {
    for (strategy, steals) in
        [(Strategy::RoundRobin, false), (Strategy::WeightedCapacity, false), (Strategy::LeastLoaded, true)]
    {
        let (mut scheduler, _) = queued(1, 5, on_gpu(10));
        scheduler.config.strategy = strategy;
        assert_eq!(scheduler.take(Moment::START, THIEF).is_some(), steals, "{strategy}");
    }
}
