//! Stealing: a device with nothing to do takes over what it would finish sooner, if that is worth looking for.

use super::*;
use crate::event::What;

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

/// The lower rung is known to be fast here, but it is for when the better one does not fit.
#[test]
fn a_thief_uses_the_best_rung_that_fits_there() {
    let rung = |name| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(10)));
    let ladder = Ladder::from(vec![rung("gpu"), rung("strip")]);
    let (mut scheduler, spec) = queued(1, 5, ladder);
    scheduler.teach(spec.workload, "strip", THIEF, 10, Nanos::micros(1));
    let stolen = scheduler.take(Moment::START, THIEF).expect("five are waiting");
    assert_eq!(spec.ladder.rungs()[stolen.rung].name, "gpu");
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

#[test]
fn a_thief_steals_where_most_is_gained_and_listeners_hear_of_it() {
    for longest in [0, 1, 2] {
        let mut scheduler: Scheduler<Nothing> =
            Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
        let devices = [0; 4].map(|_| scheduler.add_device(exact(DeviceKind::Gpu, 1, 1_000)));
        let [owners @ .., thief] = devices;
        let spec = spec(&mut scheduler, on_gpu(10));
        for (at, owner) in owners.into_iter().enumerate() {
            scheduler.teach(spec.workload, "gpu", owner, 10, Nanos::micros(100));
            scheduler.device_opened(Moment::START, owner);
            let spec = TaskSpec { devices: [owner, thief].into_iter().collect(), ..spec.clone() };
            for _ in 0..if at == longest { 9 } else { 4 } {
                scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
            }
        }
        scheduler.teach(spec.workload, "gpu", thief, 10, Nanos::micros(100));
        scheduler.device_opened(Moment::START, thief);
        scheduler.listen(true);
        let task = scheduler.take(Moment::START, thief).expect("all have a long queue").task;
        let moved = What::Moved { task, from: owners[longest], to: thief };
        assert!(scheduler.drain_events().iter().any(|event| event.what == moved), "from {longest}");
    }
}

/// A guess is no reason to take over what somebody is known to be able to do.
#[test]
fn a_device_without_figures_steals_only_from_others_without() {
    for (owner_is_known, thief_is_known, steals) in
        [(true, true, true), (true, false, false), (false, true, true), (false, false, true)]
    {
        let (mut scheduler, spec) = queued(1, 0, on_gpu(10));
        let forget = |scheduler: &mut Scheduler<Nothing>, device| {
            scheduler.workloads.cell_mut(spec.workload, "gpu", device).cost = crate::profile::Cell::default();
        };
        scheduler.device_faulted(Moment::START, THIEF, crate::Ailment::Lost);
        (!owner_is_known).then(|| forget(&mut scheduler, OWNER));
        for _ in 0..5 {
            scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
        }
        (!thief_is_known).then(|| forget(&mut scheduler, THIEF));
        scheduler.device_opened(Moment::START, THIEF);
        let stolen = scheduler.take(Moment::START, THIEF).is_some();
        assert_eq!(stolen, steals, "owner {owner_is_known}, thief {thief_is_known}");
    }
}

#[test]
fn a_thief_without_the_memory_or_that_is_not_to_be_trusted_leaves_all_where_it_is() {
    let (mut scheduler, _) = queued(1, 5, on_gpu(500));
    let (lease, _) = scheduler.lease(Moment::START, &[(THIEF, Bytes(600))]).unwrap();
    assert!(scheduler.take(Moment::START, THIEF).is_none());
    assert_eq!(depths(&scheduler), [5, 0]);
    scheduler.return_grant(Moment::START, lease);
    let suspicion = scheduler.suspect(THIEF);
    assert!(scheduler.take(Moment::START, THIEF).is_none());
    scheduler.drain_wakes();
    scheduler.cleared(suspicion);
    assert!(scheduler.drain_wakes().contains(THIEF), "it may start again");
    scheduler.device_faulted(Moment::START, THIEF, crate::Ailment::Lost);
    assert!(scheduler.take(Moment::START, THIEF).is_none());
    scheduler.device_opened(Moment::START, THIEF);
    assert!(scheduler.take(Moment::START, THIEF).is_some());
}

const FAST: DeviceId = DeviceId(2);

/// Two GPUs on which a task takes 10 and 1 milliseconds, and a few tasks that wait for the fast one.
fn one_slow_gpu(priority: crate::Priority, deadline: Option<Moment>) -> Scheduler<Nothing> {
    let mut scheduler = a_box(Strategy::EarliestFinish, 2);
    let spec = TaskSpec { priority, deadline, ..spec(&mut scheduler, on_gpu(10)) };
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos::millis(10));
    scheduler.teach(spec.workload, "gpu", FAST, 10, Nanos::millis(1));
    for _ in 0..6 {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    assert_eq!(depths(&scheduler), [0, 0, 6]);
    scheduler
}

fn ends_after(scheduler: &mut Scheduler<Nothing>, now: Moment, run: &Assignment<Nothing>, took: Nanos) {
    let measured = Measured { run: took, ..Measured::default() };
    scheduler.settle(now, run.run, Outcome { result: Ok(()), session: Some(()), measured });
}

/// It may be fast again; nobody would notice if it got nothing.
#[test]
fn a_slow_device_that_was_idle_for_long_takes_a_task_that_has_time() {
    use crate::Priority::{Background, Critical, High, Normal};
    let (soon, long) = (Moment(Nanos::millis(319).0), Moment(Nanos::millis(320).0));
    for (priority, takes) in [(Background, true), (Normal, true), (High, false), (Critical, false)] {
        let mut scheduler = one_slow_gpu(priority, None);
        assert!(scheduler.take(soon, GPU).is_none(), "it would be later than on the fast one");
        assert_eq!(scheduler.take(long, GPU).is_some(), takes, "{priority:?}");
    }
    let mut scheduler = one_slow_gpu(Normal, Some(Moment(Nanos::seconds(9).0)));
    assert!(scheduler.take(long, GPU).is_none(), "it is expected at some time");
}

#[test]
fn what_was_as_slow_as_expected_is_left_alone_again_and_what_was_not_is_looked_into() {
    let long = Moment(Nanos::millis(320).0);
    for (took, goes_on) in [(Nanos::millis(10), false), (Nanos::millis(1), true)] {
        let mut scheduler = one_slow_gpu(crate::Priority::Normal, None);
        let run = start(&mut scheduler, long, GPU.0);
        assert!(scheduler.take(long, GPU).is_none(), "one at a time");
        ends_after(&mut scheduler, long + took, &run, took);
        assert_eq!(scheduler.take(long + took, GPU).is_some(), goes_on, "after {took}");
    }
}

/// As slow as was expected of the other: 3 ms of queue are no reason to steal what takes 4, a surprise is.
#[test]
fn what_took_less_than_half_of_what_was_expected_is_looked_into_though_nothing_is_gained() {
    let long = Moment(Nanos::millis(320).0);
    let mut scheduler = one_slow_gpu(crate::Priority::Normal, None);
    let run = start(&mut scheduler, long, GPU.0);
    let waiting: Vec<_> = scheduler.queued(FAST).map(|(task, _)| task).take(2).collect();
    waiting.into_iter().for_each(|task| assert!(scheduler.cancel(long, task)));
    ends_after(&mut scheduler, long + Nanos::millis(4), &run, Nanos::millis(4));
    assert!(scheduler.take(long + Nanos::millis(4), GPU).is_some());
}

#[test]
fn one_task_at_a_time_is_taken_to_measure_a_slow_device_again() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, anywhere(10));
    scheduler.teach(spec.workload, "any", CPU, 10, Nanos::millis(10));
    scheduler.teach(spec.workload, "any", GPU, 10, Nanos::millis(1));
    for _ in 0..4 {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    let long = Moment(Nanos::millis(320).0);
    assert!(scheduler.take(long, CPU).is_some());
    assert!(scheduler.take(long, CPU).is_none(), "its other slot waits for what comes of it");
}

/// The better rung would have to wait for what others hold there.
#[test]
fn a_thief_uses_the_rung_that_is_done_first_there() {
    let rung = |name, bytes| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(bytes)));
    let ladder = Ladder::from(vec![rung("gpu", 500), rung("strip", 10)]);
    let (mut scheduler, spec) = queued(1, 5, ladder);
    scheduler.teach(spec.workload, "strip", THIEF, 10, Nanos::micros(50));
    scheduler.lease(Moment::START, &[(THIEF, Bytes(600))]).unwrap();
    assert_eq!(scheduler.take(Moment::START, THIEF).map(|run| run.rung), Some(1));
}
