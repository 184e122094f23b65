//! Sets that are handed in as a whole: which are planned, and how long a plan holds.

use super::*;
use crate::scheduler::SetTask;
use crate::scheduler::state::Planned;
use crate::{SequenceId, TaskId};

const OTHER: DeviceId = DeviceId(2);

/// Two GPUs on which a task is known to take one and two milliseconds, and a scheduler that plans.
fn two_gpus(lookahead: u32) -> (Scheduler<Nothing>, TaskSpec) {
    let mut scheduler = a_box(Strategy::EarliestFinish, 2);
    scheduler.config.lookahead = lookahead;
    let spec = spec(&mut scheduler, on_gpu(10));
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos::millis(2));
    scheduler.teach(spec.workload, "gpu", OTHER, 10, Nanos::millis(1));
    (scheduler, spec)
}

fn set(spec: &TaskSpec, count: usize) -> Vec<SetTask<()>> {
    vec![SetTask { spec: spec.clone(), job: (), after: Default::default() }; count]
}

fn are_planned(scheduler: &mut Scheduler<Nothing>, set: Vec<SetTask<()>>) -> bool {
    let ids = scheduler.submit_all(Moment::START, set).expect("there is space");
    let is_planned = |id: &TaskId| scheduler.tasks.get(*id).expect("it has not ended").planned.is_some();
    let planned = ids.iter().filter(|id| is_planned(id)).count();
    assert!(planned == 0 || planned == ids.len(), "all or none: {planned} of {}", ids.len());
    planned > 0
}

#[test]
fn a_set_is_planned_if_that_is_worth_it_and_none_of_it_must_stay_together() {
    let planned = |lookahead, count, sequence| {
        let (mut scheduler, spec) = two_gpus(lookahead);
        are_planned(&mut scheduler, set(&TaskSpec { sequence, ..spec }, count))
    };
    assert!(planned(50, 4, None));
    assert!(!planned(50, 3, None), "too few");
    assert!(!planned(0, 4, None), "not asked for");
    assert!(!planned(50, 4, Some(SequenceId(1))), "a sequence stays on one device");
}

#[test]
fn a_set_of_which_a_cost_is_not_known_is_not_planned() {
    let (mut scheduler, spec) = two_gpus(50);
    let mut tasks = set(&spec, 4);
    tasks[2].spec.workload = scheduler.register("unknown");
    assert!(!are_planned(&mut scheduler, tasks));
}

/// The plan says one device, the other would be done sooner.
#[test]
fn a_plan_holds_until_its_time_is_over() {
    let (mut scheduler, spec) = two_gpus(0);
    let task = scheduler.enter(Moment(1), spec, ()).unwrap();
    let planned = Planned { device: GPU, valid_until: Moment(100) };
    scheduler.tasks.get_mut(task).expect("it is there").planned = Some(planned);
    let device_at = |now| scheduler.choose(Moment(now), task).map(|chosen| chosen.choice.device);
    assert_eq!([99, 100, 101].map(device_at), [GPU, GPU, OTHER].map(Some));
}

/// A rung below another is for when that does not fit, whatever the figures say.
#[test]
fn on_the_planned_device_the_best_rung_is_used() {
    let (mut scheduler, spec) = two_gpus(0);
    let rung = |name| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(10)));
    let spec = TaskSpec { ladder: Ladder::from(vec![rung("gpu"), rung("strip"), rung("slow")]), ..spec };
    scheduler.teach(spec.workload, "strip", GPU, 10, Nanos::micros(5));
    scheduler.teach(spec.workload, "slow", GPU, 10, Nanos::millis(9));
    let task = scheduler.enter(Moment(1), spec, ()).unwrap();
    let planned = Planned { device: GPU, valid_until: Moment(100) };
    scheduler.tasks.get_mut(task).expect("it is there").planned = Some(planned);
    assert_eq!(scheduler.choose(Moment(1), task).map(|chosen| chosen.choice.rung), Some(0));
}

/// A device that would be done sooner leaves a planned task where it is until the plan is overrun.
#[test]
fn nobody_steals_what_is_planned_elsewhere_while_the_plan_holds() {
    for (now, is_stolen) in [(100, false), (101, true)] {
        let (mut scheduler, spec) = two_gpus(0);
        scheduler.device_faulted(Moment(1), OTHER, crate::Ailment::Lost);
        for _ in 0..5 {
            let task = scheduler.submit(Moment(1), spec.clone(), ()).unwrap();
            let planned = Planned { device: GPU, valid_until: Moment(100) };
            scheduler.tasks.get_mut(task).expect("it is queued").planned = Some(planned);
        }
        scheduler.device_opened(Moment(2), OTHER);
        assert_eq!(scheduler.take(Moment(now), OTHER).is_some(), is_stolen, "at {now}");
    }
}

/// When the plan of this set lapses, handed in at one second.
fn lapses(scheduler: &mut Scheduler<Nothing>, set: Vec<SetTask<()>>) -> Nanos {
    let now = Moment(Nanos::seconds(1).0);
    let ids = scheduler.submit_all(now, set).expect("there is space");
    scheduler.tasks.get(ids[0]).and_then(|state| state.planned).expect("it is planned").valid_until.since(now)
}

#[test]
fn a_plan_lapses_a_quarter_and_a_millisecond_after_it_should_be_done() {
    let (mut scheduler, spec) = two_gpus(50);
    let set = set(&spec, 4);
    assert_eq!(lapses(&mut scheduler, set), Nanos::micros(4_750), "three on the fast one, in three milliseconds");
}

/// The best rung that fits is planned with, whether or not the one below gives the same answer.
#[test]
fn a_plan_counts_with_the_rung_that_will_be_used() {
    let rung = |name| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(10)));
    let half = crate::Quality::new(0.5);
    for (cheap, expected) in [(rung("cheap"), Nanos::millis(21)), (rung("cheap").with_quality(half), Nanos::millis(21))]
    {
        let (mut scheduler, spec) = two_gpus(50);
        let ladder = Ladder::from(vec![rung("good"), cheap]);
        let spec = TaskSpec { ladder, quality_min: half, devices: crate::DeviceSet::only(GPU), ..spec };
        scheduler.teach(spec.workload, "good", GPU, 10, Nanos::millis(4));
        scheduler.teach(spec.workload, "cheap", GPU, 10, Nanos::millis(1));
        assert_eq!(lapses(&mut scheduler, set(&spec, 4)), expected);
    }
}

/// The last of the set is the first of a chain: it stands first in its queue, and the chain waits for it.
#[test]
fn tasks_of_a_set_stand_in_the_order_of_its_plan_and_wait_for_each_other() {
    let (mut scheduler, spec) = two_gpus(50);
    let mut tasks = set(&spec, 9);
    for (at, before) in [(6, 5), (7, 6), (8, 7)] {
        tasks[at].after.push(before);
    }
    let ids = scheduler.submit_all(Moment::START, tasks).expect("there is space");
    let queues = [GPU, OTHER].map(|device| scheduler.queued(device).map(|(task, _)| task).collect::<Vec<_>>());
    assert_eq!(queues.iter().map(Vec::len).sum::<usize>(), 6, "the other three wait");
    let with_head = queues.iter().find(|queue| queue.contains(&ids[5])).expect("it is queued");
    assert!(with_head.len() > 1 && with_head[0] == ids[5], "{queues:?}");
}

#[test]
fn a_set_is_taken_in_as_a_whole_or_not_at_all() {
    let (mut scheduler, spec) = two_gpus(0);
    scheduler.config.queue_limit = 4;
    scheduler.submit(Moment::START, spec.clone(), ()).unwrap();
    let (refusal, back) = scheduler.submit_all(Moment::START, set(&spec, 4)).unwrap_err();
    assert_eq!((refusal, back.len()), (crate::SubmitErrorKind::QueueFull { limit: 4 }, 4));
    assert_eq!(scheduler.unsettled(), 1);
    assert_eq!(scheduler.submit_all(Moment::START, set(&spec, 3)).map(|ids| ids.len()).ok(), Some(3));
    assert!(scheduler.is_full());
}
