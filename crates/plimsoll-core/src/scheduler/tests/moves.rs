//! Tasks that do not fit where they are queued: when they move, and that they come to rest.

use super::*;
use crate::TaskId;

const OTHER: DeviceId = DeviceId(2);

/// Two GPUs, nearly all of whose memory somebody outside holds, and a task that waits for one of them.
fn a_task_that_waits(costs: [Option<Nanos>; 2]) -> (Scheduler<Nothing>, TaskSpec, TaskId) {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    for _ in 0..3 {
        scheduler.add_device(exact(DeviceKind::Gpu, 1, 1_000));
    }
    let spec = spec(&mut scheduler, on_gpu(500));
    for (device, cost) in [GPU, OTHER].into_iter().zip(costs) {
        scheduler.device_opened(Moment::START, device);
        cost.into_iter().for_each(|cost| scheduler.teach(spec.workload, "gpu", device, 10, cost));
    }
    let portions = [GPU, OTHER].map(|device| (device, Bytes(600)));
    let (_, discards) = scheduler.lease(Moment::START, &portions).unwrap();
    drop(discards);
    let task = scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
    (scheduler, spec, task)
}

/// The device in whose queue the task stands.
fn place(scheduler: &Scheduler<Nothing>, task: TaskId) -> DeviceId {
    let stands_on = |device: &DeviceId| scheduler.queued(*device).any(|(queued, _)| queued == task);
    [GPU, OTHER].into_iter().find(stands_on).expect("it is queued")
}

/// From now on the task takes this long there.
fn takes(scheduler: &mut Scheduler<Nothing>, spec: &TaskSpec, device: DeviceId, run: Nanos) {
    scheduler.workloads.cell_mut(spec.workload, "gpu", device).cost = crate::profile::Cell::default();
    scheduler.teach(spec.workload, "gpu", device, 10, run);
}

/// It would seem to be sooner anywhere else, if it counted itself where it stands.
#[test]
fn a_task_alone_stays_where_it_waits() {
    for cost in [None, Some(Nanos::millis(5))] {
        let (mut scheduler, _, task) = a_task_that_waits([cost; 2]);
        let first = place(&scheduler, task);
        for second in 1..20 {
            for device in [GPU, OTHER] {
                assert!(scheduler.take(Moment(Nanos::seconds(second).0), device).is_none());
                scheduler.check_invariants().unwrap();
            }
            assert_eq!(place(&scheduler, task), first, "{cost:?}");
        }
    }
}

#[test]
fn a_task_that_moved_stays_a_while() {
    let (mut scheduler, spec, task) = a_task_that_waits([Nanos::millis(5), Nanos::millis(6)].map(Some));
    assert_eq!(place(&scheduler, task), GPU);
    takes(&mut scheduler, &spec, OTHER, Nanos::millis(1));
    let ask = |scheduler: &mut Scheduler<Nothing>, ms: u64, device| {
        assert!(scheduler.take(Moment(Nanos::millis(ms).0), device).is_none(), "it fits nowhere");
        place(scheduler, task)
    };
    assert_eq!(ask(&mut scheduler, 1, GPU), OTHER);
    takes(&mut scheduler, &spec, GPU, Nanos::micros(1));
    assert_eq!(ask(&mut scheduler, 1, OTHER), OTHER, "it came this very moment");
    assert_eq!(ask(&mut scheduler, 10, OTHER), OTHER);
    assert_eq!(ask(&mut scheduler, 11, OTHER), GPU);
}

/// It is chosen for again when its patience is over; were it in the list twice, it would be queued twice.
#[test]
fn a_task_is_stranded_once_however_often_it_is() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(10));
    scheduler.device_faulted(Moment(1), GPU, crate::Ailment::Lost);
    let task = scheduler.submit(Moment(2), spec, ()).unwrap();
    let mut now = Moment(3);
    for _ in 0..4 {
        // Nobody tells the stranded that their device is well again.
        scheduler.device_mut(GPU).health = crate::health::Health::Well;
        now = now + scheduler.config().device_wait_max;
        scheduler.tick(now);
        assert_eq!(scheduler.queued(GPU).map(|(queued, _)| queued).collect::<Vec<_>>(), [task]);
        scheduler.device_faulted(now, GPU, crate::Ailment::Lost);
        assert_eq!(scheduler.stranded, [task]);
        scheduler.check_invariants().unwrap();
    }
}

/// Somebody outside took the memory that a queued task counted on; a lower rung fits where it stands.
#[test]
fn a_task_that_no_longer_fits_steps_down_where_it_is() {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let rung = |name, bytes| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(bytes)));
    let spec = spec(&mut scheduler, Ladder::from(vec![rung("full", 600), rung("strip", 100)]));
    let task = scheduler.submit(Moment(1), spec, ()).unwrap();
    assert_eq!(scheduler.queued(GPU).collect::<Vec<_>>(), [(task, 0)]);
    let (_lease, _) = scheduler.lease(Moment(2), &[(GPU, Bytes(500))]).unwrap();
    assert_eq!(scheduler.take(Moment(3), GPU).map(|run| (run.task, run.rung)), Some((task, 1)));
}
