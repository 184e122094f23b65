//! A task that becomes more urgent, and with it whatever it waits for.

use super::*;
use crate::{Priority, TaskId};

/// One slot, and three tasks in its queue, the last of them of low priority.
fn three_queued() -> (Scheduler<Nothing>, TaskSpec, [TaskId; 3]) {
    let mut scheduler = a_box(Strategy::EarliestFinish, 1);
    let spec = spec(&mut scheduler, on_gpu(10));
    scheduler.teach(spec.workload, "gpu", GPU, 10, Nanos::millis(1));
    let tasks = [Priority::Normal, Priority::Normal, Priority::Low]
        .map(|priority| scheduler.submit(Moment(1), TaskSpec { priority, ..spec.clone() }, ()).unwrap());
    (scheduler, spec, tasks)
}

fn queued(scheduler: &Scheduler<Nothing>) -> Vec<TaskId> {
    scheduler.check_invariants().expect("the books agree");
    scheduler.queued(GPU).map(|(task, _)| task).collect()
}

#[test]
fn a_task_that_is_raised_goes_before_less_urgent_ones_and_never_down() {
    let (mut scheduler, spec, [first, second, low]) = three_queued();
    assert_eq!(queued(&scheduler), [first, second, low]);
    scheduler.drain_wakes();
    scheduler.raise(Moment(2), low, Priority::High);
    assert_eq!(queued(&scheduler), [low, first, second]);
    assert!(scheduler.drain_wakes().contains(GPU));
    let wait = |scheduler: &mut Scheduler<Nothing>, priority| {
        let spec = TaskSpec { priority, ..spec.clone() };
        scheduler.why(Moment(2), &spec).iter().find_map(|each| each.estimate).unwrap().wait
    };
    assert_eq!(wait(&mut scheduler, Priority::High), Nanos::millis(1), "it counts among the urgent ones");
    for priority in [Priority::High, Priority::Low] {
        scheduler.raise(Moment(3), low, priority);
        assert_eq!(queued(&scheduler), [low, first, second]);
        assert!(scheduler.drain_wakes().is_empty(), "nothing changed");
    }
    assert_eq!(wait(&mut scheduler, Priority::High), Nanos::millis(1));
}

#[test]
fn what_a_raised_task_waits_for_is_raised_with_it() {
    let (mut scheduler, spec, [first, second, low]) = three_queued();
    let after = TaskSpec { priority: Priority::Low, after: [low].into_iter().collect(), ..spec };
    let last = scheduler.submit(Moment(2), after.clone(), ()).unwrap();
    assert_eq!(queued(&scheduler), [first, second, low]);
    scheduler.raise(Moment(3), last, Priority::High);
    assert_eq!(queued(&scheduler), [low, first, second]);
}

#[test]
fn an_urgent_task_raises_what_it_comes_after_when_it_is_submitted() {
    let (mut scheduler, spec, [first, second, low]) = three_queued();
    let after = TaskSpec { priority: Priority::High, after: [low].into_iter().collect(), ..spec };
    scheduler.submit(Moment(2), after, ()).unwrap();
    assert_eq!(queued(&scheduler), [low, first, second]);
}

#[test]
fn those_that_are_meant_are_raised_and_no_others() {
    let (mut scheduler, _, [first, second, low]) = three_queued();
    scheduler.raise_those(Moment(2), Priority::Critical, |()| false);
    assert_eq!(queued(&scheduler), [first, second, low]);
    let urgent = |scheduler: &Scheduler<Nothing>, task| scheduler.tasks.get(task).unwrap().spec.priority;
    scheduler.raise_those(Moment(2), Priority::Critical, |()| true);
    assert_eq!([first, second, low].map(|task| urgent(&scheduler, task)), [Priority::Critical; 3]);
}
