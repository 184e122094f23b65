//! Shortages: what other programs hold is waited for, what our own runs hold too, and only what is larger than the
//! device never fits.

use super::*;
use crate::task::ReferenceUse;
use crate::{MemoryMoment, Refusal, Setback, ShortfallError, TaskError};

const MINUTE: u64 = 60_000_000_000;

#[test]
fn what_others_hold_now_is_waited_for() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(500));
    others_leave(&mut scheduler, Moment(1), GPU, 100);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(2), GPU).is_none());
    scheduler.tick(Moment(3));
    assert!(errors(&mut scheduler).is_empty(), "it waits up to {}", scheduler.config().memory_wait_max);
    scheduler.drain_wakes();
    others_leave(&mut scheduler, Moment(4), GPU, 1_000);
    assert!(scheduler.drain_wakes().contains(GPU));
    assert!(scheduler.take(Moment(5), GPU).is_some());
}

#[test]
fn a_queued_task_outlives_a_moment_of_others() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(500));
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    scheduler.submit(Moment(1), spec, ()).unwrap();
    let first = start(&mut scheduler, Moment(2), GPU.0);
    others_leave(&mut scheduler, Moment(3), GPU, 400);
    assert!(errors(&mut scheduler).is_empty());
    settle(&mut scheduler, Moment(4), &first, None);
    others_leave(&mut scheduler, Moment(5), GPU, 1_000);
    assert!(scheduler.take(Moment(5), GPU).is_some());
}

#[test]
fn strict_waits_too() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let ladder = Ladder::from(vec![on_gpu(500).rungs()[0].clone(), gpu_or_cpu().rungs()[1].clone()]);
    let spec = TaskSpec { strict: true, ..spec(&mut scheduler, ladder) };
    others_leave(&mut scheduler, Moment(1), GPU, 100);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(errors(&mut scheduler).is_empty());
}

#[test]
fn what_is_larger_than_the_device_never_fits_and_says_so_at_once() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(850));
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    assert!(scheduler.take(Moment(1), GPU).is_some(), "all of it does");
    scheduler.submit(Moment(1), TaskSpec { ladder: on_gpu(851), ..spec }, ()).unwrap();
    let ended = errors(&mut scheduler);
    assert!(
        matches!(ended[..], [TaskError::NeverFits { needed: Bytes(851), line: Bytes(850), .. }]),
        "85 % of 1000: {ended:?}"
    );
}

/// The other rung is there at once: whichever ends sooner.
#[test]
fn a_task_steps_down_rather_than_wait_for_others_if_that_ends_sooner() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let ladder = Ladder::from(vec![on_gpu(500).rungs()[0].clone(), gpu_or_cpu().rungs()[1].clone()]);
    let spec = spec(&mut scheduler, ladder);
    others_leave(&mut scheduler, Moment(1), GPU, 100);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert_eq!(depths(&scheduler), [1, 0]);
}

/// Small tasks keep the device busy all the time; the wait for others ends all the same, and blocks nobody.
#[test]
fn waiting_for_others_ends_in_time_however_busy_the_device_is_and_holds_nobody_up() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let small = spec(&mut scheduler, on_gpu(50));
    let large = TaskSpec { workload: scheduler.register("large"), ..TaskSpec::new(small.workload, on_gpu(500), 10) };
    others_leave(&mut scheduler, Moment(1), GPU, 100);
    scheduler.submit(Moment(2), large, ()).unwrap();
    let (patience, mut now) = (scheduler.config().memory_wait_max, 2);
    for _ in 0..200 {
        scheduler.submit(Moment(now), small.clone(), ()).unwrap();
        let run = start(&mut scheduler, Moment(now), GPU.0);
        now += patience.0 / 150;
        scheduler.tick(Moment(now));
        settle(&mut scheduler, Moment(now), &run, None);
    }
    let ended = errors(&mut scheduler);
    let [TaskError::Exhausted { attempts }] = &ended[..] else { panic!("{ended:?}") };
    let shortfall = Refusal::DoesNotFit(ShortfallError::NotNow { device: GPU, wanted: Bytes(500), free: Bytes(35) });
    assert!(matches!(&attempts[0].setback, Setback::Refused(refusal) if *refusal == shortfall), "{attempts:?}");
}

/// Two leases of somebody outside; tasks wait for the bytes only so long.
#[test]
fn leases_outside_are_waited_for_but_not_for_ever() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(500));
    let (_lease, _) = scheduler.lease(Moment(1), &[(GPU, Bytes(600))]).unwrap();
    scheduler.submit(Moment(2), spec.clone(), ()).unwrap();
    assert!(scheduler.take(Moment(3), GPU).is_none());
    let patience = scheduler.config().memory_wait_max;
    assert_eq!(scheduler.next_tick(), Some(Moment(3) + patience));
    let later = scheduler.submit(Moment(4), spec, ()).unwrap();
    assert!(scheduler.take(Moment(4), GPU).is_none());
    assert_eq!(scheduler.next_tick(), Some(Moment(3) + patience), "the first of two");
    assert!(scheduler.cancel(Moment(4), later) && errors(&mut scheduler).len() == 1);
    scheduler.tick(Moment(2) + patience);
    assert!(errors(&mut scheduler).is_empty(), "it waits");
    scheduler.tick(Moment(3) + patience);
    assert_eq!(errors(&mut scheduler).len(), 1, "but not for ever");
}

/// A run here will give its memory back, however long it takes: that is no shortage of others.
#[test]
fn memory_of_our_own_runs_is_waited_for_as_long_as_they_run() {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let device = scheduler.add_device(exact(DeviceKind::Gpu, 2, 1_000));
    scheduler.device_opened(Moment::START, device);
    let spec = spec(&mut scheduler, on_gpu(600));
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    scheduler.submit(Moment(1), spec, ()).unwrap();
    let first = scheduler.take(Moment(1), device).expect("the first fits");
    assert!(scheduler.take(Moment(1), device).is_none());
    scheduler.tick(Moment(5 * MINUTE));
    assert!(errors(&mut scheduler).is_empty(), "the first still runs");
    settle(&mut scheduler, Moment(6 * MINUTE), &first, None);
    assert!(scheduler.take(Moment(6 * MINUTE), device).is_some());
}

#[test]
fn a_lease_that_others_leave_no_memory_for_is_not_now() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    others_leave(&mut scheduler, Moment(1), GPU, 100);
    let refused = |scheduler: &mut Scheduler<Nothing>, bytes| scheduler.lease(Moment(2), &[(GPU, bytes)]).err();
    assert!(matches!(refused(&mut scheduler, Bytes(500)), Some(ShortfallError::NotNow { .. })));
    assert!(matches!(refused(&mut scheduler, Bytes(900)), Some(ShortfallError::NeverFits { .. })));
}

/// It ran out of memory when little was free; an hour later much is.
#[test]
fn one_shortage_does_not_close_a_device_that_has_since_become_free() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(500));
    others_leave(&mut scheduler, Moment(1), GPU, 600);
    scheduler.submit(Moment(2), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(2), GPU.0);
    let fault = Fault::OutOfMemory { moment: MemoryMoment::Run, wanted: Bytes(500) };
    settle(&mut scheduler, Moment(3), &run, Some(fault));
    errors(&mut scheduler);
    others_leave(&mut scheduler, Moment(4), GPU, 1_000);
    let later = Moment(59 * MINUTE);
    scheduler.submit(later, spec, ()).unwrap();
    assert!(errors(&mut scheduler).is_empty());
    assert!(scheduler.take(later, GPU).is_some());
}

/// A wait that was long on one device is no wait yet on the next.
#[test]
fn a_task_that_moves_begins_its_wait_anew() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 2);
    let other = DeviceId(2);
    let spec = spec(&mut scheduler, on_gpu(500));
    for device in [GPU, other] {
        scheduler.teach(spec.workload, "gpu", device, 10, Nanos::millis(1));
    }
    let (on_first, _) = scheduler.lease(Moment(1), &[(GPU, Bytes(600))]).unwrap();
    let (_on_second, _) = scheduler.lease(Moment(1), &[(other, Bytes(600))]).unwrap();
    let id = scheduler.submit(Moment(2), spec, ()).unwrap();
    let [from, to] = if depths(&scheduler)[1] == 1 { [GPU, other] } else { [other, GPU] };
    assert!(scheduler.take(Moment(3), from).is_none());
    let patience = scheduler.config().memory_wait_max;
    let late = Moment(3) + patience - Nanos(1);
    scheduler.device_faulted(late, from, crate::Ailment::Lost);
    assert_eq!(depths(&scheduler)[to.index()], 1, "{id} has moved");
    assert!(scheduler.take(late, to).is_none());
    scheduler.tick(Moment(3) + patience + Nanos(1));
    assert!(errors(&mut scheduler).is_empty(), "it has waited there for two nanoseconds");
    scheduler.return_grant(late, on_first);
}

/// A device without a margin, and the wait that `why` expects there.
fn wait_for(scheduler: &mut Scheduler<Nothing>, now: Moment, spec: &TaskSpec) -> Nanos {
    scheduler.why(now, spec)[0].estimate.expect("it is possible").wait
}

fn two_slots() -> Scheduler<Nothing> {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let device = scheduler.add_device(exact(DeviceKind::Cpu, 2, 1_000));
    scheduler.device_opened(Moment::START, device);
    scheduler
}

/// Our own run ends when it was predicted to; when somebody outside ends, nobody knows.
#[test]
fn how_long_memory_is_waited_for_depends_on_who_holds_it() {
    let mut scheduler = two_slots();
    let spec = spec(&mut scheduler, anywhere(600));
    scheduler.teach(spec.workload, "any", CPU, 10, Nanos::millis(8));
    assert_eq!(wait_for(&mut scheduler, Moment::START, &spec), Nanos::ZERO);
    scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment::START, CPU.0);
    let later = Moment(Nanos::millis(3).0);
    assert_eq!(wait_for(&mut scheduler, later, &spec), Nanos::millis(5), "it is under way for three of eight");
    settle(&mut scheduler, later, &run, None);
    let (_lease, _) = scheduler.lease(later, &[(CPU, Bytes(400))]).unwrap();
    let small = TaskSpec::new(spec.workload, anywhere(100), 10);
    scheduler.submit(later, small, ()).unwrap();
    start(&mut scheduler, later, CPU.0);
    let wait = wait_for(&mut scheduler, later, &spec);
    assert!(wait > Nanos::ZERO && wait < Nanos::millis(8), "beside the lease there is enough, once the small one ends");
    let (_lease, _) = scheduler.lease(later, &[(CPU, Bytes(1))]).unwrap();
    assert_eq!(wait_for(&mut scheduler, later, &spec), scheduler.config().memory_wait_max, "one byte too few");
}

#[test]
fn what_idle_things_hold_is_not_waited_for() {
    let mut scheduler = two_slots();
    let footprint = Footprint { session: Bytes(600), task: Bytes(100), reference: Bytes::ZERO };
    let spec = spec(&mut scheduler, Ladder::from(vec![Rung::new("any", Place::Anywhere, footprint)]));
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    settle(&mut scheduler, Moment(1), &run, None);
    let other = TaskSpec { session: crate::task::SessionShape { params: 1, shape: 1 }, ..spec };
    assert_eq!(wait_for(&mut scheduler, Moment(2), &other), Nanos::ZERO, "the idle session goes for it");
}

/// What a task uses itself cannot be evicted for it.
#[test]
fn a_task_does_not_count_on_the_bytes_of_its_own_reference() {
    let mut scheduler = two_slots();
    let footprint = Footprint { session: Bytes::ZERO, task: Bytes(200), reference: Bytes(400) };
    let spec = spec(&mut scheduler, Ladder::from(vec![Rung::new("any", Place::Anywhere, footprint)]));
    let references = [ReferenceUse { content: crate::ContentKey(7), pinned: false }].into_iter().collect();
    let spec = TaskSpec { references, ..spec };
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    scheduler.prepared(run.run, 0, ());
    settle(&mut scheduler, Moment(1), &run, None);
    let (_lease, _) = scheduler.lease(Moment(2), &[(CPU, Bytes(500))]).unwrap();
    assert_eq!(wait_for(&mut scheduler, Moment(2), &spec), scheduler.config().memory_wait_max, "200 of 100");
}

#[test]
fn a_task_seen_to_take_more_than_it_declares_lets_others_pass_while_it_does_not_fit() {
    let mut scheduler = two_slots();
    let [greedy, modest] = [("greedy", 300), ("modest", 450)]
        .map(|(name, bytes)| TaskSpec::new(scheduler.register(name), anywhere(bytes), 10));
    scheduler.submit(Moment(1), greedy.clone(), ()).unwrap();
    let run = start(&mut scheduler, Moment(1), CPU.0);
    let measured = Measured { run: Nanos(1_000), peak: Some(Bytes(600)), ..Measured::default() };
    scheduler.settle(Moment(2), run.run, Outcome { result: Ok(()), session: Some(()), measured });
    assert_eq!(scheduler.why(Moment(2), &greedy)[0].estimate.map(|each| each.bytes), Some(Bytes(600)));
    scheduler.submit(Moment(3), modest.clone(), ()).unwrap();
    start(&mut scheduler, Moment(3), CPU.0);
    scheduler.submit(Moment(4), greedy, ()).unwrap();
    let passes = scheduler.submit(Moment(5), modest, ()).unwrap();
    assert_eq!(scheduler.take(Moment(5), CPU).map(|run| run.task), Some(passes), "550 bytes are free");
}

/// It waited in vain on one GPU, and since then for the other one to come back.
#[test]
fn memory_that_comes_while_a_device_is_waited_for_is_used() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 2);
    let spec = spec(&mut scheduler, on_gpu(500));
    scheduler.device_faulted(Moment(1), DeviceId(2), crate::Ailment::Lost);
    let (lease, _) = scheduler.lease(Moment(1), &[(GPU, Bytes(600))]).unwrap();
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(2), GPU).is_none());
    let late = Moment(2) + scheduler.config().memory_wait_max;
    scheduler.tick(late);
    assert_eq!((depths(&scheduler), scheduler.unsettled()), (vec![0, 0, 0], 1), "it has left that queue");
    scheduler.return_grant(late, lease);
    assert!(scheduler.take(late, GPU).is_some());
}

#[test]
fn what_never_fits_names_the_smallest_rung_and_the_largest_device() {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    for bytes in [300, 500, 400] {
        let device = scheduler.add_device(exact(DeviceKind::Gpu, 1, bytes));
        scheduler.device_opened(Moment::START, device);
    }
    let rung = |name, bytes| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(bytes)));
    let ladder = Ladder::from(vec![rung("full", 900), rung("strip", 600), rung("tiles", 700)]);
    let spec = spec(&mut scheduler, ladder);
    scheduler.submit(Moment(1), spec, ()).unwrap();
    let ended = errors(&mut scheduler);
    assert!(matches!(ended[..], [TaskError::NeverFits { needed: Bytes(600), line: Bytes(500), .. }]), "{ended:?}");
}

/// Neither rung fits; each is waited for as long as the other.
#[test]
fn the_next_rung_has_a_wait_of_its_own() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let rung = |name, bytes| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(bytes)));
    let spec = spec(&mut scheduler, Ladder::from(vec![rung("full", 600), rung("strip", 300)]));
    let (_lease, _) = scheduler.lease(Moment(1), &[(GPU, Bytes(800))]).unwrap();
    let task = scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(2), GPU).is_none());
    let late = Moment(2) + scheduler.config().memory_wait_max;
    scheduler.tick(late);
    scheduler.tick(late + Nanos(1));
    assert_eq!(scheduler.queued(GPU).collect::<Vec<_>>(), [(task, 1)]);
}

/// It ran meanwhile: what it waited then does not count for what it waits now.
#[test]
fn a_wait_for_memory_begins_anew_after_a_task_has_run() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(500));
    others_leave(&mut scheduler, Moment(1), GPU, 100);
    scheduler.submit(Moment(2), spec, ()).unwrap();
    assert!(scheduler.take(Moment(2), GPU).is_none());
    others_leave(&mut scheduler, Moment(3), GPU, 1_000);
    let run = start(&mut scheduler, Moment(3), GPU.0);
    settle(&mut scheduler, Moment(4), &run, Some(Fault::DeviceLost { detail: "on purpose".into() }));
    scheduler.device_opened(Moment(5), GPU);
    let later = Moment(Nanos::seconds(10).0);
    others_leave(&mut scheduler, later, GPU, 100);
    assert!(scheduler.take(later, GPU).is_none());
    assert_eq!(scheduler.next_tick(), Some(later + scheduler.config().memory_wait_max));
}
