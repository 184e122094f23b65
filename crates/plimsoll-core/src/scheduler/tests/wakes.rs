//! Who is woken: a slot that could start something never sleeps on.

use super::*;
use crate::DeviceSet;

const THIEF: DeviceId = DeviceId(2);

/// Two GPUs; five tasks of a millisecond were placed on the first while the second was away.
fn a_long_queue() -> Scheduler<Nothing> {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    for _ in 0..3 {
        scheduler.add_device(exact(DeviceKind::Gpu, 1, 1_000));
    }
    let spec = spec(&mut scheduler, on_gpu(10));
    for device in [GPU, THIEF] {
        scheduler.teach(spec.workload, "gpu", device, 10, Nanos::millis(1));
    }
    scheduler.device_opened(Moment::START, GPU);
    for _ in 0..5 {
        scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
    }
    scheduler.device_opened(Moment(1), THIEF);
    scheduler
}

/// Those behind a task that is stolen may have been waiting for it alone.
#[test]
fn a_device_that_is_stolen_from_looks_again() {
    let mut scheduler = a_long_queue();
    scheduler.drain_wakes();
    scheduler.take(Moment(1), THIEF).expect("it steals");
    assert!(scheduler.drain_wakes().contains(GPU));
}

#[test]
fn a_queued_task_wakes_its_device_and_a_start_the_next_slot() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(10));
    scheduler.drain_wakes();
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    assert!(scheduler.drain_wakes().contains(CPU));
    scheduler.submit(Moment(1), spec, ()).unwrap();
    scheduler.drain_wakes();
    start(&mut scheduler, Moment(1), CPU.0);
    assert!(scheduler.drain_wakes().contains(CPU), "one is left, and a slot is free");
    start(&mut scheduler, Moment(1), CPU.0);
    assert!(scheduler.drain_wakes().is_empty(), "nothing is left");
}

/// A run that began before its device was opened again hangs: the device stays well, and a spare slot steps in.
#[test]
fn a_run_that_hangs_wakes_a_spare_slot() {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let mut device = exact(DeviceKind::Gpu, 2, 1_000);
    (device.width_first, device.stall_after) = (Some(1), Some(Nanos::seconds(1)));
    let device = scheduler.add_device(device);
    scheduler.device_opened(Moment::START, device);
    let spec = spec(&mut scheduler, on_gpu(10));
    scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
    start(&mut scheduler, Moment::START, device.0);
    scheduler.device_faulted(Moment(1), device, crate::Ailment::Lost);
    scheduler.device_opened(Moment(2), device);
    scheduler.submit(Moment(3), spec, ()).unwrap();
    assert!(scheduler.take(Moment(3), device).is_none(), "one slot is in use, and it is busy");
    scheduler.drain_wakes();
    let late = Moment(Nanos::seconds(60).0);
    scheduler.tick(late);
    assert!(scheduler.health(device).is_well() && scheduler.slots_wanted(device) == 2);
    assert!(scheduler.drain_wakes().contains(device));
    assert!(scheduler.take(late, device).is_some());
}

/// Tasks stay where they were placed until somebody steals them: those who could must look now and then.
#[test]
fn a_long_queue_wakes_idle_devices_every_ten_milliseconds() {
    let mut scheduler = a_long_queue();
    start(&mut scheduler, Moment(1), GPU.0);
    scheduler.drain_wakes();
    let woken = [9, 10, 19, 20, 30].map(|ms| {
        scheduler.tick(Moment(Nanos::millis(ms).0));
        scheduler.drain_wakes()
    });
    let thief = DeviceSet::only(THIEF);
    let nobody = DeviceSet::NONE;
    assert_eq!(woken, [nobody, thief, nobody, thief, thief], "never the busy one, nor the one that was never opened");
}

#[test]
fn a_short_queue_wakes_nobody_else() {
    let mut scheduler = a_long_queue();
    for _ in 0..5 {
        let run = start(&mut scheduler, Moment(1), GPU.0);
        settle(&mut scheduler, Moment(1), &run, None);
    }
    scheduler.drain_wakes();
    scheduler.tick(Moment(Nanos::millis(10).0));
    assert!(scheduler.drain_wakes().is_empty());
}

/// What one run gives back may be enough for two: the slot that ends looks itself, the others must be told.
#[test]
fn a_run_that_ends_wakes_the_other_slots_of_its_device() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let [large, small] = [("large", 800), ("small", 400)].map(|(name, bytes)| {
        let spec = TaskSpec::new(scheduler.register(name), anywhere(bytes), 10);
        scheduler.teach(spec.workload, "any", CPU, 10, Nanos::micros(1));
        spec
    });
    scheduler.submit(Moment(1), large, ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    for _ in 0..2 {
        scheduler.submit(Moment(1), small.clone(), ()).unwrap();
    }
    assert!(scheduler.take(Moment(1), CPU).is_none(), "it has most of the memory");
    scheduler.drain_wakes();
    settle(&mut scheduler, Moment(2), &run, None);
    assert!(scheduler.drain_wakes().contains(CPU));
    assert!(scheduler.take(Moment(2), CPU).is_some() && scheduler.take(Moment(2), CPU).is_some());
}

#[test]
fn a_lease_that_comes_back_wakes_those_who_wait_for_memory() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 2);
    let spec = TaskSpec { devices: DeviceSet::only(GPU), ..spec(&mut scheduler, on_gpu(500)) };
    let (lease, _) = scheduler.lease(Moment(1), &[(GPU, Bytes(600))]).unwrap();
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(2), GPU).is_none());
    scheduler.drain_wakes();
    scheduler.return_grant(Moment(3), lease);
    assert_eq!(scheduler.drain_wakes(), DeviceSet::only(GPU), "nobody else has anything to start");
    scheduler.check_invariants().unwrap();
    scheduler.return_grant(Moment(3), lease);
    assert!(scheduler.drain_wakes().is_empty(), "it came back once");
}

/// It has nothing queued, but may have something to steal.
#[test]
fn a_device_that_is_back_is_woken() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    scheduler.device_faulted(Moment(1), GPU, crate::Ailment::Lost);
    scheduler.drain_wakes();
    scheduler.device_opened(Moment(2), GPU);
    assert_eq!(scheduler.drain_wakes(), DeviceSet::only(GPU));
}

/// The slot that ends a run looks for the next one itself.
#[test]
fn a_run_that_ends_wakes_nobody_where_there_is_no_other_slot_or_nothing_to_do() {
    for (device, queued) in [(GPU, 2), (CPU, 1)] {
        let mut scheduler = a_box(Strategy::EarliestFinish, 1);
        let spec = TaskSpec { devices: DeviceSet::only(device), ..spec(&mut scheduler, anywhere(10)) };
        scheduler.teach(spec.workload, "any", device, 10, Nanos::micros(1));
        for _ in 0..queued {
            scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
        }
        let run = start(&mut scheduler, Moment(1), device.0);
        scheduler.drain_wakes();
        settle(&mut scheduler, Moment(2), &run, None);
        assert!(scheduler.drain_wakes().is_empty(), "{device}");
    }
}

#[test]
fn a_run_that_ends_before_a_long_queue_wakes_idle_devices_too() {
    let mut scheduler = a_long_queue();
    let run = start(&mut scheduler, Moment(1), GPU.0);
    scheduler.drain_wakes();
    settle(&mut scheduler, Moment(Nanos::millis(10).0), &run, None);
    assert!(scheduler.drain_wakes().contains(THIEF));
}

#[test]
fn a_start_wakes_nobody_where_nothing_is_left_to_start() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let spec = spec(&mut scheduler, anywhere(10));
    scheduler.submit(Moment(1), spec, ()).unwrap();
    scheduler.drain_wakes();
    start(&mut scheduler, Moment(1), CPU.0);
    assert!(scheduler.drain_wakes().is_empty());
}

/// The task of the run that hangs goes elsewhere; the one that waits behind it is for the spare slot.
#[test]
fn a_spare_slot_is_woken_for_what_waits_though_the_task_that_hung_is_gone() {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let mut gpu = exact(DeviceKind::Gpu, 2, 1_000);
    (gpu.width_first, gpu.stall_after) = (Some(1), Some(Nanos::seconds(1)));
    for device in [exact(DeviceKind::Cpu, 1, 1_000), gpu] {
        scheduler.add_device(device);
    }
    scheduler.device_opened(Moment::START, GPU);
    let spec = spec(&mut scheduler, anywhere(10));
    for device in [CPU, GPU] {
        scheduler.teach(spec.workload, "any", device, 10, Nanos::millis(1));
    }
    scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
    start(&mut scheduler, Moment::START, GPU.0);
    scheduler.device_faulted(Moment(1), GPU, crate::Ailment::Lost);
    scheduler.device_opened(Moment(2), GPU);
    scheduler.submit(Moment(2), TaskSpec { devices: DeviceSet::only(GPU), ..spec }, ()).unwrap();
    scheduler.device_opened(Moment(2), CPU);
    scheduler.drain_wakes();
    scheduler.tick(Moment(Nanos::seconds(60).0));
    assert_eq!(depths(&scheduler), [1, 2], "it moved to the CPU; the run that hangs and the one that waits are left");
    assert!(scheduler.drain_wakes().contains(GPU));
}
