//! What a choice is based on: figures of its own workload, and of runs that are not yet over.

use super::*;
use crate::DeviceSet;

#[test]
fn a_run_that_overruns_hides_no_other_runs_remaining_time() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 0);
    let [short, long] = ["short", "long"].map(|name| TaskSpec::new(scheduler.register(name), anywhere(1), 10));
    scheduler.teach(short.workload, "any", CPU, 10, Nanos::millis(1));
    scheduler.teach(long.workload, "any", CPU, 10, Nanos::seconds(10));
    for spec in [&short, &long] {
        scheduler.submit(Moment(0), spec.clone(), ()).unwrap();
        start(&mut scheduler, Moment(0), CPU.0);
    }
    // The short one should have ended nine seconds ago; the long one has one more second to go.
    let now = Moment(Nanos::seconds(9).0);
    let wait = scheduler.why(now, &short)[0].estimate.expect("it is possible").wait;
    assert_eq!(wait, Nanos::millis(500), "a second's work for two slots");
}

#[test]
fn throughput_of_one_workload_does_not_speak_for_another() {
    let mut scheduler = a_box(Strategy::AdaptiveThroughput, 1);
    // A million pixels in a millisecond, on the GPU only; then items, one a millisecond, as fast on either device.
    let pixels = TaskSpec::new(scheduler.register("pixels"), on_gpu(10), 1_000_000);
    let items = TaskSpec::new(scheduler.register("items"), anywhere(10), 1);
    let run_one = |scheduler: &mut Scheduler<Nothing>, at: u64, spec: &TaskSpec, device: DeviceId| {
        let spec = TaskSpec { devices: DeviceSet::only(device), ..spec.clone() };
        scheduler.submit(Moment(at), spec, ()).unwrap();
        let run = start(scheduler, Moment(at), device.0);
        let measured = Measured { run: Nanos::millis(1), ..Measured::default() };
        scheduler.settle(Moment(at), run.run, Outcome { result: Ok(()), session: Some(()), measured });
    };
    for at in 1..20 {
        run_one(&mut scheduler, at, &items, CPU);
        run_one(&mut scheduler, at, &items, GPU);
    }
    run_one(&mut scheduler, 31, &pixels, GPU);
    for _ in 0..90 {
        scheduler.submit(Moment(32), items.clone(), ()).unwrap();
    }
    assert_eq!(depths(&scheduler), [60, 30], "two slots of the CPU, one of the GPU");
}

#[test]
fn strict_is_the_best_rung_that_the_machine_and_the_caller_allow() {
    for (gpus, devices, starts_on) in
        [(0, DeviceSet::ALL, CPU), (1, DeviceSet::only(CPU), CPU), (1, DeviceSet::ALL, GPU)]
    {
        let mut scheduler = a_box(Strategy::EarliestFinish, gpus);
        let spec = TaskSpec { strict: true, devices, ..spec(&mut scheduler, gpu_or_cpu()) };
        scheduler.submit(Moment(1), spec, ()).unwrap();
        assert!(errors(&mut scheduler).is_empty(), "{gpus} GPUs");
        assert!(scheduler.take(Moment(1), starts_on).is_some());
    }
}

/// A GPU that is away for a moment is no reason to fall back.
#[test]
fn strict_does_not_step_down_because_a_device_is_ill() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = TaskSpec { strict: true, ..spec(&mut scheduler, gpu_or_cpu()) };
    scheduler.device_faulted(Moment(1), GPU, crate::Ailment::Lost);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(2), CPU).is_none());
    scheduler.device_opened(Moment(3), GPU);
    assert!(scheduler.take(Moment(3), GPU).is_some());
}
