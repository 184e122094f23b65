//! Devices that fail: when they are tried again, and where their tasks go.

use super::*;
use crate::scheduler::Order;
use crate::scheduler::recover::ATTEMPTS_MAX;

fn lost() -> Option<Fault> {
    Some(Fault::DeviceLost { detail: String::new() })
}

/// A task starts on the GPU and fails there. When is the GPU tried again?
fn fail_on_the_gpu(scheduler: &mut Scheduler<Nothing>, now: Moment) -> Nanos {
    let spec = spec(scheduler, gpu_or_cpu());
    while scheduler.device(GPU).queue.is_empty() {
        scheduler.submit(now, spec.clone(), ()).unwrap();
    }
    let run = start(scheduler, now, GPU.0);
    settle(scheduler, now, &run, lost());
    scheduler.check_invariants().unwrap();
    let at = match scheduler.drain_orders()[..] {
        [Order::Reopen(GPU)] => now,
        [] => {
            let at = scheduler.health(GPU).retry_at().expect("it is tried again");
            scheduler.tick(at);
            assert_eq!(scheduler.drain_orders(), [Order::Reopen(GPU)]);
            at
        }
        ref other => panic!("{other:?}"),
    };
    scheduler.device_opened(at, GPU);
    at.since(now)
}

#[test]
fn three_faults_in_a_row_make_it_wait_ever_longer_until_it_gives_a_result() {
    let mut scheduler = a_box(Strategy::RoundRobin, 1);
    let second = |n: u64| Moment(Nanos::seconds(n).0);
    let waits: Vec<Nanos> = (1..6).map(|n| fail_on_the_gpu(&mut scheduler, second(n))).collect();
    assert_eq!(waits, [0, 0, 100, 200, 400].map(Nanos::millis));
    let spec = spec(&mut scheduler, gpu_or_cpu());
    while scheduler.device(GPU).queue.is_empty() {
        scheduler.submit(second(9), spec.clone(), ()).unwrap();
    }
    let run = start(&mut scheduler, second(9), GPU.0);
    settle(&mut scheduler, second(9), &run, None);
    assert_eq!(fail_on_the_gpu(&mut scheduler, second(10)), Nanos::ZERO, "it begins anew");
}

/// A task that loses every device it touches is not the device's fault.
#[test]
fn one_task_that_fails_over_and_over_is_one_fault() {
    let mut scheduler = a_box(Strategy::RoundRobin, 1);
    let spec = TaskSpec { devices: crate::DeviceSet::only(GPU), ..spec(&mut scheduler, gpu_or_cpu()) };
    scheduler.submit(Moment(1), spec, ()).unwrap();
    for at in 1..10 {
        let run = start(&mut scheduler, Moment(at), GPU.0);
        settle(&mut scheduler, Moment(at), &run, lost());
        assert_eq!(scheduler.drain_orders(), [Order::Reopen(GPU)], "attempt {at}");
        scheduler.device_opened(Moment(at), GPU);
    }
}

#[test]
fn a_task_is_tried_sixteen_times_and_no_more() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(10));
    scheduler.submit(Moment(1), spec, ()).unwrap();
    for _ in 0..ATTEMPTS_MAX {
        assert!(errors(&mut scheduler).is_empty());
        let run = start(&mut scheduler, Moment(1), GPU.0);
        settle(&mut scheduler, Moment(1), &run, lost());
        scheduler.device_opened(Moment(1), GPU);
    }
    let ended = errors(&mut scheduler);
    let [crate::TaskError::Exhausted { attempts }] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!(attempts.len(), ATTEMPTS_MAX);
    scheduler.check_at_rest().unwrap();
}

#[test]
fn attempts_at_tasks_that_failed_before_are_counted_where_they_start() {
    let mut scheduler = a_box(Strategy::LeastLoaded, 1);
    let spec = spec(&mut scheduler, gpu_or_cpu());
    for _ in 0..3 {
        scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    }
    assert_eq!(depths(&scheduler), [2, 1]);
    let run = start(&mut scheduler, Moment(1), GPU.0);
    settle(&mut scheduler, Moment(2), &run, lost());
    for at in 3..6 {
        let run = start(&mut scheduler, Moment(at), 0);
        settle(&mut scheduler, Moment(at), &run, None);
    }
    let report = |device| scheduler.report(Moment(9), DeviceId(device));
    let counts =
        |report: crate::stats::DeviceReport| (report.dispatched, report.completed, report.failed, report.retried);
    assert_eq!([0, 1].map(|device| counts(report(device))), [(3, 3, 0, 1), (1, 0, 1, 0)]);
    assert_eq!(scheduler.unsettled(), 0, "nothing is lost, nothing is done twice");
}

/// Only a device that may come back is worth waiting for.
#[test]
fn a_device_that_is_gone_for_good_is_not_waited_for() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(10));
    scheduler.device_faulted(Moment(1), GPU, crate::Ailment::Lost);
    scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    assert_eq!(errors(&mut scheduler).len(), 0, "it is being opened");
    for _ in 0..100 {
        scheduler.device_failed_to_open(Moment(2), GPU);
    }
    assert!(!scheduler.health(GPU).may_return());
    assert_eq!(errors(&mut scheduler).len(), 1, "the one that waited");
    scheduler.submit(Moment(3), spec, ()).unwrap();
    let ended = errors(&mut scheduler);
    let [crate::TaskError::Exhausted { attempts }] = &ended[..] else { panic!("{ended:?}") };
    let gone = crate::Setback::Refused(crate::Refusal::Gone(crate::Ailment::Lost));
    assert!(attempts.iter().any(|attempt| format!("{:?}", attempt.setback) == format!("{gone:?}")), "{attempts:?}");
}

/// A device that comes and goes: each wait for it is a wait of its own.
#[test]
fn a_task_gives_up_on_a_device_that_was_away_for_too_long_at_a_time() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(10));
    let second = |n: u64| Moment(Nanos::seconds(n).0);
    scheduler.device_faulted(second(1), GPU, crate::Ailment::Lost);
    scheduler.submit(second(1), spec, ()).unwrap();
    scheduler.device_opened(second(40), GPU);
    scheduler.device_faulted(second(50), GPU, crate::Ailment::Lost);
    scheduler.tick(second(109));
    assert_eq!((errors(&mut scheduler).len(), scheduler.unsettled()), (0, 1), "59 s of 60");
    scheduler.tick(second(110));
    assert_eq!((errors(&mut scheduler).len(), scheduler.unsettled()), (1, 0));
}

/// The list of tasks that no device can take is swept: it does not grow with every task that ever was in it.
#[test]
fn stranded_tasks_that_have_ended_are_forgotten() {
    for at_once in [1, 2_000] {
        let mut scheduler = a_box(Strategy::EarliestFinish, 1);
        let spec = spec(&mut scheduler, on_gpu(10));
        scheduler.device_faulted(Moment(1), GPU, crate::Ailment::Lost);
        for _ in 0..2_000 / at_once {
            let ids: Vec<_> = (0..at_once).map(|_| scheduler.submit(Moment(1), spec.clone(), ()).unwrap()).collect();
            ids.into_iter().for_each(|id| assert!(scheduler.cancel(Moment(1), id)));
        }
        scheduler.submit(Moment(1), spec, ()).unwrap();
        assert!(scheduler.stranded.len() < 200, "{} are kept, {at_once} at once", scheduler.stranded.len());
    }
}

/// It is larger than the one GPU; the other one, which is gone, might have had the memory.
#[test]
fn a_device_that_is_gone_is_no_reason_to_say_that_a_task_never_fits() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 2);
    let spec = spec(&mut scheduler, on_gpu(900));
    scheduler.device_faulted(Moment(1), GPU, crate::Ailment::Lost);
    (0..100).for_each(|_| scheduler.device_failed_to_open(Moment(2), GPU));
    scheduler.submit(Moment(3), spec, ()).unwrap();
    let ended = errors(&mut scheduler);
    assert!(matches!(ended[..], [crate::TaskError::Exhausted { .. }]), "{ended:?}");
}
