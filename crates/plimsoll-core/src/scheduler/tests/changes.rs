//! Tasks of one kind are chosen for from memory: what changes in between is seen by the next of them.

use super::*;

const OTHER: DeviceId = DeviceId(2);

/// Two GPUs, the first of which takes a millisecond and the second a tenth of that.
fn two_gpus() -> (Scheduler<Nothing>, TaskSpec) {
    let mut scheduler = a_box(Strategy::EarliestFinish, 2);
    let spec = spec(&mut scheduler, on_gpu(500));
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos::millis(1));
    scheduler.teach(spec.workload, "gpu", OTHER, 10, Nanos::micros(100));
    (scheduler, spec)
}

/// Where the next task goes, after three of its kind have gone and been done.
fn next(scheduler: &mut Scheduler<Nothing>, now: u64, spec: &TaskSpec) -> DeviceId {
    let mut place = CPU;
    for _ in 0..3 {
        scheduler.submit(Moment(now), spec.clone(), ()).unwrap();
        let depths = depths(scheduler);
        place = DeviceId(depths.iter().position(|depth| *depth == 1).expect("it is queued") as u16);
        let run = start(scheduler, Moment(now), place.0);
        scheduler.cancel(Moment(now), run.task);
        settle(scheduler, Moment(now), &run, None);
    }
    place
}

#[test]
fn a_device_that_falls_ill_and_comes_back() {
    let (mut scheduler, spec) = two_gpus();
    assert_eq!(next(&mut scheduler, 1, &spec), OTHER);
    scheduler.device_faulted(Moment(2), OTHER, crate::Ailment::Lost);
    assert_eq!(next(&mut scheduler, 2, &spec), GPU);
    scheduler.device_opened(Moment(3), OTHER);
    assert_eq!(next(&mut scheduler, 3, &spec), OTHER);
}

#[test]
fn a_limit_that_is_lifted() {
    let (mut scheduler, spec) = two_gpus();
    scheduler.device_mut(OTHER).spec.margin.limit = Some(Bytes(100));
    others_leave(&mut scheduler, Moment(1), OTHER, 1_000);
    assert_eq!(next(&mut scheduler, 1, &spec), GPU, "it never fits there");
    scheduler.device_mut(OTHER).spec.margin.limit = None;
    others_leave(&mut scheduler, Moment(2), OTHER, 1_000);
    assert_eq!(next(&mut scheduler, 2, &spec), OTHER);
}

#[test]
fn figures_that_are_taught() {
    let (mut scheduler, spec) = two_gpus();
    assert_eq!(next(&mut scheduler, 1, &spec), OTHER);
    (0..5).for_each(|_| scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos(10)));
    assert_eq!(next(&mut scheduler, 2, &spec), GPU);
}
