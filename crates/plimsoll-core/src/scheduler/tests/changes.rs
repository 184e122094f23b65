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

/// Two GPUs, the second of which is ten times as fast where a session is open, and slower where one has to be opened.
fn costly_to_open() -> (Scheduler<Nothing>, TaskSpec) {
    let (mut scheduler, spec) = two_gpus();
    scheduler.workloads.cell_mut(spec.workload, "gpu", OTHER).cost.learn_open(Nanos::millis(5));
    (scheduler, spec)
}

/// Opens a session on the fast GPU, and has tasks of its kind chosen for until that is remembered.
fn open_there(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec) {
    scheduler.submit(Moment(1), TaskSpec { devices: crate::DeviceSet::only(OTHER), ..spec.clone() }, ()).unwrap();
    let run = start(scheduler, Moment(1), OTHER.0);
    settle(scheduler, Moment(1), &run, None);
    assert_eq!(next(scheduler, 1, spec), OTHER, "a session is open there");
}

/// Where one more task goes; it is taken out of its queue again.
fn one_more(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec) -> DeviceId {
    let before = depths(scheduler);
    let task = scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let after = depths(scheduler);
    scheduler.cancel(Moment(1), task);
    DeviceId(before.iter().zip(&after).position(|(before, after)| after > before).expect("it is queued") as u16)
}

/// A run ends, perhaps with its session.
fn ends(scheduler: &mut Scheduler<Nothing>, run: &Assignment<Nothing>, session: Option<()>, fault: Option<Fault>) {
    let measured = Measured { run: Nanos::micros(100), ..Measured::default() };
    scheduler.settle(Moment(1), run.run, Outcome { result: fault.map_or(Ok(()), Err), session, measured });
}

#[test]
fn a_session_that_a_run_does_not_bring_back() {
    let (mut scheduler, spec) = costly_to_open();
    open_there(&mut scheduler, &spec);
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), OTHER.0);
    assert_eq!(one_more(&mut scheduler, &spec), OTHER, "a session is in use there");
    ends(&mut scheduler, &run, None, None);
    assert_eq!(one_more(&mut scheduler, &spec), GPU);
}

#[test]
fn sessions_that_are_all_discarded() {
    let (mut scheduler, spec) = costly_to_open();
    open_there(&mut scheduler, &spec);
    scheduler.discard_warm();
    assert_eq!(one_more(&mut scheduler, &spec), GPU, "there is none any more");
}

#[test]
fn a_session_that_comes_back_after_all_were_discarded() {
    let (mut scheduler, mut spec) = costly_to_open();
    spec.ladder = on_gpu(100);
    open_there(&mut scheduler, &spec);
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), OTHER.0);
    scheduler.discard_warm();
    for _ in 0..2 {
        assert_eq!(one_more(&mut scheduler, &spec), OTHER, "it is still in use");
    }
    ends(&mut scheduler, &run, Some(()), None);
    assert_eq!(one_more(&mut scheduler, &spec), GPU);
}

#[test]
fn memory_that_ran_out_on_a_session_that_can_be_used_again() {
    let (mut scheduler, spec) = two_gpus();
    assert_eq!(next(&mut scheduler, 1, &spec), OTHER);
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), OTHER.0);
    let full = Fault::OutOfMemory { moment: crate::MemoryMoment::Run, wanted: Bytes(500) };
    ends(&mut scheduler, &run, Some(()), Some(full));
    assert_eq!(one_more(&mut scheduler, &spec), GPU);
}

/// Of another shape, so that the session which was opened is of no use.
#[test]
fn what_opening_takes_is_measured_by_another() {
    let (mut scheduler, mut spec) = two_gpus();
    spec.ladder = on_gpu(100);
    let other = TaskSpec { session: crate::task::SessionShape { params: 0, shape: 7 }, ..spec.clone() };
    for _ in 0..2 {
        assert_eq!(one_more(&mut scheduler, &spec), OTHER);
    }
    scheduler.submit(Moment(1), other, ()).unwrap();
    let run = start(&mut scheduler, Moment(1), OTHER.0);
    let open = Some(Nanos::millis(5));
    let measured = Measured { run: Nanos::micros(100), open, ..Measured::default() };
    // What is running is chosen for again meanwhile, so that it is remembered with what was known before.
    for _ in 0..2 {
        one_more(&mut scheduler, &spec);
    }
    scheduler.settle(Moment(1), run.run, Outcome { result: Ok(()), session: Some(()), measured });
    assert_eq!(one_more(&mut scheduler, &spec), GPU);
}

#[test]
fn a_run_that_took_more_memory_than_it_said() {
    let (mut scheduler, spec) = two_gpus();
    scheduler.lease(Moment(1), &[(OTHER, Bytes(250))]).unwrap();
    assert_eq!(next(&mut scheduler, 1, &spec), OTHER);
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), OTHER.0);
    let measured = Measured { run: Nanos::micros(100), peak: Some(Bytes(700)), ..Measured::default() };
    scheduler.settle(Moment(1), run.run, Outcome { result: Ok(()), session: Some(()), measured });
    assert_eq!(one_more(&mut scheduler, &spec), GPU, "600 are free there");
}

/// One of another kind that finds its own session open there, and needs more memory than is free.
#[test]
fn a_session_that_is_evicted_for_a_task_that_has_its_own() {
    let (mut scheduler, mut spec) = costly_to_open();
    let footprint = Footprint { session: Bytes(300), ..Footprint::default() };
    spec.ladder = Ladder::from(vec![Rung::new("gpu", Place::On(DeviceKind::Gpu), footprint)]);
    let large = Footprint { session: Bytes(100), task: Bytes(500), reference: Bytes::ZERO };
    let ladder = Ladder::from(vec![Rung::new("large", Place::On(DeviceKind::Gpu), large)]);
    let devices = crate::DeviceSet::only(OTHER);
    let large = TaskSpec { workload: scheduler.register("large"), ladder, devices, ..spec.clone() };
    scheduler.teach(large.workload, "large", OTHER, 10, Nanos::micros(1));
    let go = |scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec| {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
        start(scheduler, Moment(1), OTHER.0)
    };
    let run = go(&mut scheduler, &large);
    ends(&mut scheduler, &run, Some(()), None);
    open_there(&mut scheduler, &spec);
    let run = go(&mut scheduler, &large);
    assert!(matches!(run.session, crate::scheduler::SessionTurn::Warm(())) && run.discards.sessions.len() == 1);
    ends(&mut scheduler, &run, Some(()), None);
    assert_eq!(one_more(&mut scheduler, &spec), GPU);
}
