//! Sets that are handed in as a whole: which are planned, and how long a plan holds.

use super::*;
use crate::scheduler::ahead::SETS_MAX;
use crate::scheduler::state::Planned;
use crate::scheduler::{Order, SetTask};
use crate::{SequenceId, TaskId};

pub(super) const OTHER: DeviceId = DeviceId(2);

/// Two GPUs on which a task is known to take one and two milliseconds, and a scheduler that plans.
pub(super) fn two_gpus(lookahead: u32) -> (Scheduler<Nothing>, TaskSpec) {
    let mut scheduler = a_box(Strategy::EarliestFinish, 2);
    scheduler.config.lookahead = lookahead;
    let spec = spec(&mut scheduler, on_gpu(10));
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos::millis(2));
    scheduler.teach(spec.workload, "gpu", OTHER, 10, Nanos::millis(1));
    (scheduler, spec)
}

pub(super) fn set(spec: &TaskSpec, count: usize) -> Vec<SetTask<()>> {
    vec![SetTask { spec: spec.clone(), job: (), after: Default::default() }; count]
}

fn are_planned(scheduler: &mut Scheduler<Nothing>, set: Vec<SetTask<()>>) -> bool {
    let ids = scheduler.submit_all(Moment::START, set).expect("there is space");
    let planned = planned(scheduler, &ids).into_iter().flatten().count();
    assert!(planned == 0 || planned == ids.len(), "all or none: {planned} of {}", ids.len());
    planned > 0
}

/// The device that each task's plan gives it.
pub(super) fn planned(scheduler: &Scheduler<Nothing>, ids: &[TaskId]) -> Vec<Option<DeviceId>> {
    let device = |id: &TaskId| Some(scheduler.tasks.get(*id)?.planned?.device);
    ids.iter().map(device).collect()
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

/// Nothing is known of two of them: one tries, the other goes where it finishes first, in the order of the plan.
#[test]
fn what_nobody_has_tried_is_left_to_choosing() {
    let (mut scheduler, spec) = two_gpus(50);
    let mut tasks = set(&spec, 6);
    let unknown = scheduler.register("unknown");
    [2, 5].iter().for_each(|&at: &usize| tasks[at].spec.workload = unknown);
    tasks[4].after.push(2);
    let ids = scheduler.submit_all(Moment::START, tasks).expect("there is space");
    let is_planned = planned(&scheduler, &ids).into_iter().map(|device| device.is_some());
    assert_eq!(is_planned.collect::<Vec<_>>(), [true, true, false, true, true, true]);
    let order = |id: &TaskId| scheduler.tasks.get(*id).map(|state| state.order);
    assert!(ids.iter().all(|id| order(id) >= order(&ids[2])), "another waits for it: it ranks first");
}

/// The CPU pool and a GPU; a task was measured on the CPU alone.
pub(super) fn known_on_the_cpu() -> (Scheduler<Nothing>, TaskSpec) {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    scheduler.config.lookahead = 50;
    let spec = spec(&mut scheduler, anywhere(10));
    scheduler.teach(spec.workload, "any", CPU, 10, Nanos::millis(2));
    (scheduler, spec)
}

/// Follows every plan that is due. Says how many were.
pub(super) fn plan_again(scheduler: &mut Scheduler<Nothing>, now: Moment) -> usize {
    let mut plans = 0;
    while let Some(outlook) = scheduler.next_outlook(now) {
        scheduler.follow(now, outlook.plan().expect("a set that can be planned"));
        plans += 1;
    }
    plans
}

#[test]
fn one_task_of_a_set_tries_what_nobody_has_tried_and_the_others_wait_for_what_comes_of_it() {
    let (mut scheduler, spec) = known_on_the_cpu();
    let ids = scheduler.submit_all(Moment::START, set(&spec, 9)).expect("there is space");
    let on = |scheduler: &Scheduler<Nothing>, device| {
        planned(scheduler, &ids).iter().filter(|planned| **planned == Some(device)).count()
    };
    assert_eq!(on(&scheduler, GPU), 1, "three of them would be done there, if it is as fast");
    assert!(scheduler.drain_orders().is_empty());
    let tried = start(&mut scheduler, Moment(1), GPU.0);
    assert_eq!(scheduler.drain_orders(), [Order::Plan], "the others should not count with it");
    assert_eq!(plan_again(&mut scheduler, Moment(1)), 1);
    assert_eq!((on(&scheduler, CPU), on(&scheduler, GPU)), (8, 1), "all that wait");
    settle(&mut scheduler, Moment(1_001), &tried, None);
    assert_eq!(scheduler.drain_orders(), [Order::Plan], "it took a microsecond");
    assert_eq!(plan_again(&mut scheduler, Moment(1_001)), 1);
    assert_eq!(on(&scheduler, CPU), 0, "it is not worth while there");
    assert_eq!(scheduler.queued(GPU).count(), 8);
    assert!(scheduler.drain_orders().is_empty());
}

/// A GPU that has no figures yet counts as fast as the others of its kind.
#[test]
fn what_was_measured_on_one_gpu_is_expected_of_another() {
    let (mut scheduler, spec) = two_gpus(50);
    let spec = TaskSpec { workload: scheduler.register("other"), ..spec };
    scheduler.teach(spec.workload, "gpu", OTHER, 10, Nanos::millis(1));
    let ids = scheduler.submit_all(Moment::START, set(&spec, 6)).expect("there is space");
    let first = planned(&scheduler, &ids).iter().filter(|device| **device == Some(GPU)).count();
    assert_eq!(first, 3);
}

/// Plays a set of a hundred, each task taking this part of what it is known to take. Says how often it was planned again.
fn plans_of_a_set(percent: u64) -> usize {
    let (mut scheduler, spec) = two_gpus(50);
    scheduler.submit_all(Moment::START, set(&spec, 100)).expect("there is space");
    let (mut now, mut plans, mut running) = (Moment::START, 0, Vec::new());
    loop {
        for (device, millis) in [(GPU, 2), (OTHER, 1)] {
            while let Some(run) = scheduler.take(now, device) {
                let took = Nanos(Nanos::millis(millis).0 * percent / 100);
                running.push((now + took, took, run));
            }
        }
        running.sort_by_key(|(end, ..)| std::cmp::Reverse(*end));
        let Some((end, took, run)) = running.pop() else { return plans };
        now = end;
        let measured = Measured { run: took, ..Measured::default() };
        scheduler.settle(now, run.run, Outcome { result: Ok(()), session: Some(()), measured });
        plans += plan_again(&mut scheduler, now);
    }
}

#[test]
fn a_set_that_keeps_to_its_plan_is_not_planned_again() {
    assert_eq!(plans_of_a_set(100), 0);
    assert!(plans_of_a_set(150) > 0, "what takes half as long again does not keep to it");
    assert!(plans_of_a_set(60) > 0, "nor does what is sooner done");
}

#[test]
fn a_set_is_planned_again_whenever_a_part_of_it_has_ended() {
    let (mut scheduler, spec) = two_gpus(50);
    scheduler.submit_all(Moment::START, set(&spec, 100)).expect("there is space");
    let mut planned_after = Vec::new();
    for ended in 1..=100 {
        let run = start(&mut scheduler, Moment(ended), OTHER.0);
        settle(&mut scheduler, Moment(ended), &run, None);
        if !scheduler.drain_orders().is_empty() && plan_again(&mut scheduler, Moment(ended)) > 0 {
            planned_after.push(ended);
        }
    }
    assert_eq!(planned_after[..5], [5, 10, 15, 20, 24]);
    assert_eq!(planned_after.last(), Some(&96), "the last four are not worth it");
    assert!(scheduler.sets.live.is_empty());
}

/// What began, ended or was cancelled while the plan was made is not touched by it.
#[test]
fn a_plan_that_comes_late_is_followed_by_those_that_have_not_begun() {
    let (mut scheduler, spec) = known_on_the_cpu();
    let ids = scheduler.submit_all(Moment::START, set(&spec, 9)).expect("there is space");
    let tried = start(&mut scheduler, Moment(1), GPU.0);
    let outlook = scheduler.next_outlook(Moment(1)).expect("one is due");
    let begun = start(&mut scheduler, Moment(2), CPU.0);
    settle(&mut scheduler, Moment(3), &tried, None);
    let cancelled = *ids.iter().rev().find(|id| ![begun.task, tried.task].contains(id)).expect("there are nine");
    scheduler.cancel(Moment(4), cancelled);
    scheduler.follow(Moment(5), outlook.plan().expect("a set that can be planned"));
    assert_eq!(scheduler.check_invariants(), Ok(()));
    assert_eq!(depths(&scheduler).iter().sum::<usize>(), 7, "six that wait, and one that runs");
    let late = scheduler.next_outlook(Moment(6)).expect("the first figures of the GPU");
    scheduler.end_all(Moment(7), &crate::TaskError::ShutDown);
    scheduler.follow(Moment(8), late.plan().expect("a set that can be planned"));
    assert_eq!(scheduler.check_invariants(), Ok(()));
}

/// A task that was running while the others were planned anew comes back to the queue: its place there is still its own.
#[test]
fn no_two_tasks_have_one_place_in_the_order_however_often_a_set_is_planned() {
    let (mut scheduler, spec) = two_gpus(50);
    let ids = scheduler.submit_all(Moment::START, set(&spec, 30)).expect("there is space");
    let first = start(&mut scheduler, Moment(1), GPU.0);
    for ended in 1..=8 {
        let run = start(&mut scheduler, Moment(ended), OTHER.0);
        settle(&mut scheduler, Moment(ended), &run, None);
    }
    assert!(plan_again(&mut scheduler, Moment(9)) > 0);
    settle(&mut scheduler, Moment(10), &first, Some(crate::Fault::DeviceLost { detail: String::new() }));
    let mut orders: Vec<u64> = ids.iter().filter_map(|id| Some(scheduler.tasks.get(*id)?.order)).collect();
    let count = orders.len();
    orders.sort_unstable();
    orders.dedup();
    assert_eq!(orders.len(), count);
    assert_eq!(scheduler.check_invariants(), Ok(()));
}

/// The plan says one device, the other would be done sooner.
#[test]
fn a_plan_holds_until_its_time_is_over() {
    let (mut scheduler, spec) = two_gpus(0);
    let task = scheduler.enter(Moment(1), spec, ()).unwrap();
    let planned = Planned { device: GPU, valid_until: Moment(100), end: Moment(100) };
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
    let planned = Planned { device: GPU, valid_until: Moment(100), end: Moment(100) };
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
            let planned = Planned { device: GPU, valid_until: Moment(100), end: Moment(100) };
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

/// Each set is planned again by itself, and not more of them than there is time for.
#[test]
fn so_many_sets_are_planned_again_and_no_more() {
    let (mut scheduler, spec) = two_gpus(50);
    for _ in 0..SETS_MAX + 1 {
        scheduler.submit_all(Moment::START, set(&spec, 4)).expect("there is space");
    }
    assert_eq!(scheduler.sets.live.len(), SETS_MAX);
    assert_ne!(scheduler.sets.live[0].id, scheduler.sets.live[1].id);
}

#[test]
fn what_has_ended_is_forgotten_when_a_set_is_planned_again() {
    let (mut scheduler, spec) = two_gpus(50);
    scheduler.submit_all(Moment::START, set(&spec, 20)).expect("there is space");
    for ended in 1..=5 {
        let run = start(&mut scheduler, Moment(ended), OTHER.0);
        settle(&mut scheduler, Moment(ended), &run, None);
    }
    assert_eq!(plan_again(&mut scheduler, Moment(6)), 1);
    assert_eq!(scheduler.sets.live[0].tasks.len(), 15);
}

/// Whoever waits for another cannot be the one that tries: its device would stand idle meanwhile.
#[test]
fn what_nobody_has_tried_is_tried_by_a_task_that_could_start() {
    let (mut scheduler, spec) = known_on_the_cpu();
    let mut tasks = set(&spec, 12);
    tasks[4..].iter_mut().for_each(|task| task.after.push(0));
    let ids = scheduler.submit_all(Moment::START, tasks).expect("there is space");
    let tries: Vec<TaskId> = ids.iter().copied().filter(|id| planned(&scheduler, &[*id]) == [Some(GPU)]).collect();
    let blockers = tries.iter().map(|id| scheduler.tasks.get(*id).expect("it is there").blockers);
    assert_eq!(blockers.collect::<Vec<_>>(), [0], "{tries:?}");
}

/// The tasks that it would not have fitted beside were planned onto another device.
#[test]
fn a_grant_is_given_what_a_new_plan_leaves() {
    let (mut scheduler, mut spec) = two_gpus(50);
    spec.ladder = on_gpu(600);
    scheduler.submit_all(Moment(1), set(&spec, 8)).expect("there is space");
    assert!(scheduler.queued(GPU).count() > 0);
    let rung = crate::GrantRung::new(&[(GPU, Bytes(700))]);
    let grant = scheduler.request(Moment(2), crate::GrantSpec::new(crate::GrantOwner::Caller, vec![rung])).unwrap();
    let phase = |scheduler: &Scheduler<Nothing>| scheduler.grant(grant).expect("it is there").phase;
    assert_eq!(phase(&scheduler), crate::GrantPhase::Waiting);
    (0..30).for_each(|_| scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos::seconds(9)));
    scheduler.more_is_known();
    assert_eq!(plan_again(&mut scheduler, Moment(3)), 1);
    assert_eq!(scheduler.queued(GPU).count(), 0, "it has become slow");
    assert_eq!(phase(&scheduler), crate::GrantPhase::Held);
}

/// None of them fits before the run there has ended: the one that is done first is taken.
#[test]
fn on_a_planned_device_that_is_full_the_rung_that_is_done_first_is_used() {
    let (mut scheduler, spec) = two_gpus(0);
    scheduler.submit(Moment(1), TaskSpec { ladder: on_gpu(700), ..spec.clone() }, ()).unwrap();
    let full = [GPU, OTHER].into_iter().find(|device| scheduler.take(Moment(1), *device).is_some()).expect("it fits");
    let rung = |name, bytes| Rung::new(name, Place::On(DeviceKind::Gpu), Footprint::task(Bytes(bytes)));
    let ladder = Ladder::from(vec![rung("slow", 500), rung("quick", 400)]);
    scheduler.teach(spec.workload, "slow", full, 10, Nanos::millis(4));
    scheduler.teach(spec.workload, "quick", full, 10, Nanos::millis(1));
    let task = scheduler.enter(Moment(1), TaskSpec { ladder, ..spec }, ()).unwrap();
    let planned = Planned { device: full, valid_until: Moment(100), end: Moment(100) };
    scheduler.tasks.get_mut(task).expect("it is there").planned = Some(planned);
    let chosen = scheduler.choose(Moment(1), task).map(|chosen| (chosen.choice.device, chosen.choice.rung));
    assert_eq!(chosen, Some((full, 1)));
}

/// Those that end without a result count too: nothing is planned for a set of which nothing is left.
#[test]
fn a_set_that_was_cancelled_is_not_planned_again() {
    let (mut scheduler, spec) = known_on_the_cpu();
    let tasks = scheduler.submit_all(Moment::START, set(&spec, 4)).expect("there is space");
    scheduler.drain_orders();
    for task in tasks {
        assert!(scheduler.cancel(Moment(1), task));
    }
    scheduler.drain_orders();
    scheduler.more_is_known();
    assert!(scheduler.drain_orders().is_empty() && scheduler.next_outlook(Moment(1)).is_none());
}
