//! Slots that hang: spare ones step in, and a device without any says so.

use super::*;
use crate::health::Health;
use crate::{Ailment, Refusal};

const STALL: Nanos = Nanos::millis(100);

/// A GPU whose runs are watched, with so many slots of which so many are used at first.
fn watched(slots: usize, width: usize) -> (Scheduler<Nothing>, TaskSpec) {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let device =
        DeviceSpec { width_first: Some(width), stall_after: Some(STALL), ..exact(DeviceKind::Gpu, slots, 1_000) };
    let device = scheduler.add_device(device);
    scheduler.device_opened(Moment::START, device);
    let spec = spec(&mut scheduler, on_gpu(10));
    (scheduler, spec)
}

const ONLY: DeviceId = DeviceId(0);

/// Starts so many tasks that never come back; the device is reopened after that.
fn hang(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec, count: usize) -> Vec<Assignment<Nothing>> {
    for _ in 0..count {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    let runs: Vec<_> = (0..count).map(|_| start(scheduler, Moment(1), ONLY.0)).collect();
    scheduler.tick(Moment(1) + Nanos::seconds(60));
    assert_eq!(scheduler.health(ONLY).ailment(), Some(Ailment::Stalled), "a stall is the device's fault");
    scheduler.device_opened(Moment(2) + Nanos::seconds(60), ONLY);
    scheduler.check_invariants().unwrap();
    runs
}

#[test]
fn a_spare_slot_steps_in_for_one_that_hangs() {
    for (slots, width, hung) in [(2, 1, 1), (4, 2, 2), (4, 2, 1)] {
        let (mut scheduler, spec) = watched(slots, width);
        let runs = hang(&mut scheduler, &spec, hung);
        let now = Moment(3) + Nanos::seconds(60);
        assert!(scheduler.drain_wakes().contains(ONLY));
        assert_eq!(scheduler.slots_wanted(ONLY), width + hung, "{slots} slots, {width} in use, {hung} hang");
        let run = start(&mut scheduler, now, ONLY.0);
        settle(&mut scheduler, now, &run, None);
        for hung in &runs {
            settle(&mut scheduler, now, hung, None);
        }
        assert_eq!(scheduler.slots_wanted(ONLY), width, "those that hung came back");
        scheduler.check_invariants().unwrap();
    }
}

#[test]
fn a_device_all_of_whose_slots_hang_says_so_everywhere() {
    let (mut scheduler, spec) = watched(2, 2);
    let runs = hang(&mut scheduler, &spec, 2);
    let now = Moment(3) + Nanos::seconds(60);
    let stalled = |scheduler: &mut Scheduler<Nothing>| {
        let why = scheduler.why(now, &spec)[0].refusal.clone();
        (scheduler.health(ONLY).ailment(), why == Some(Refusal::Unwell(Ailment::Stalled)))
    };
    assert_eq!(stalled(&mut scheduler), (Some(Ailment::Stalled), true));
    settle(&mut scheduler, now, &runs[0], None);
    assert_eq!(stalled(&mut scheduler), (None, false));
    assert_eq!(scheduler.health(ONLY), Health::Well);
    assert!(scheduler.take(now, ONLY).is_some(), "the tasks that had to wait go on");
}

/// It has nothing of its own to do, but may steal.
#[test]
fn a_slot_that_hung_is_woken_when_it_comes_back() {
    let (mut scheduler, spec) = watched(1, 1);
    let runs = hang(&mut scheduler, &spec, 1);
    assert!(scheduler.cancel(Moment(3) + Nanos::seconds(60), runs[0].task));
    scheduler.drain_wakes();
    settle(&mut scheduler, Moment(4) + Nanos::seconds(60), &runs[0], None);
    assert!(scheduler.drain_wakes().contains(ONLY));
    scheduler.check_at_rest().unwrap();
}

#[test]
fn the_next_tick_is_when_the_first_run_counts_as_stalled() {
    let (mut scheduler, spec) = watched(2, 2);
    scheduler.teach(spec.workload, "gpu", ONLY, 10, Nanos::millis(1));
    for at in [1, 2] {
        let now = Moment(Nanos::millis(at).0);
        scheduler.submit(now, spec.clone(), ()).unwrap();
        start(&mut scheduler, now, ONLY.0);
    }
    let stalled = Moment(Nanos::millis(1 + 8).0) + STALL;
    assert_eq!(scheduler.next_tick(), Some(stalled), "eight times what it should take, and the device's patience");
    scheduler.tick(stalled - Nanos(1));
    assert!(scheduler.health(ONLY).is_well());
    scheduler.tick(stalled);
    assert_eq!(scheduler.health(ONLY).ailment(), Some(Ailment::Stalled));
}

/// The time left of the runs on a device, each.
fn left(scheduler: &Scheduler<Nothing>, now: u64) -> Vec<u64> {
    scheduler.device(ONLY).each_left(Moment(now)).map(|left| left.0).collect()
}

/// On a device of which all slots but one are in use; memory comes back when a run ends, on the average.
#[test]
fn the_time_left_is_that_of_the_runs_that_are_left() {
    let (mut scheduler, _) = watched(4, 4);
    let memory_in = |scheduler: &Scheduler<Nothing>, now| scheduler.device(ONLY).wait_for_memory(Moment(now));
    assert_eq!(memory_in(&scheduler, 0), None);
    scheduler.device_mut(ONLY).began(Moment(10));
    scheduler.device_mut(ONLY).began(Moment(20));
    assert_eq!((left(&scheduler, 0), memory_in(&scheduler, 0)), (vec![10, 20], Some(Nanos(15))));
    // A task stands behind the one that ends first; that is then neither the first nor the last.
    scheduler.device_mut(ONLY).began(Moment(40));
    scheduler.device_mut(ONLY).stood_behind(Moment(10), Moment(26));
    assert_eq!((left(&scheduler, 12), memory_in(&scheduler, 12)), (vec![8, 14, 28], Some(Nanos(50 / 3))));
    // Behind the last one, which stays where it is.
    scheduler.device_mut(ONLY).stood_behind(Moment(40), Moment(50));
    assert_eq!(left(&scheduler, 12), [8, 14, 38]);
    scheduler.device_mut(ONLY).ended(Moment(26), 2);
    scheduler.device_mut(ONLY).ended(Moment(20), 1);
    scheduler.device_mut(ONLY).began(Moment(30));
    assert_eq!((left(&scheduler, 12), memory_in(&scheduler, 12)), (vec![18, 38], Some(Nanos(28))));
    scheduler.device_mut(ONLY).ended(Moment(30), 1);
    scheduler.device_mut(ONLY).ended(Moment(50), 2);
    assert_eq!((left(&scheduler, 12), memory_in(&scheduler, 12)), (vec![], None));
}

/// Nobody waits for the result any more, and another slot is free: it is a fault of the device all the same.
#[test]
fn a_run_that_hangs_after_it_was_cancelled_is_the_devices_fault() {
    let (mut scheduler, spec) = watched(2, 2);
    let task = scheduler.submit(Moment(1), spec, ()).unwrap();
    start(&mut scheduler, Moment(1), ONLY.0);
    scheduler.cancel(Moment(2), task);
    scheduler.tick(Moment(1) + Nanos::seconds(60));
    assert_eq!(scheduler.health(ONLY).ailment(), Some(Ailment::Stalled));
    assert_eq!(scheduler.drain_orders(), [crate::scheduler::Order::Reopen(ONLY)]);
}
