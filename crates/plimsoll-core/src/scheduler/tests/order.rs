//! Who goes first: priorities, deadlines, and how often a task that does not fit is passed over.

use super::*;
use crate::DeviceSet;
use crate::scheduler::take::BYPASS_MAX;
use crate::task::{Priority, ReferenceUse};
use crate::{ContentKey, TaskId};

const MS: u64 = 1_000_000;

/// The order in which one CPU slot starts tasks handed in at these milliseconds.
fn order(tasks: &[(u64, Priority, Option<u64>)]) -> Vec<usize> {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let device = scheduler.add_device(exact(DeviceKind::Cpu, 1, 1_000));
    scheduler.device_opened(Moment::START, device);
    let base = spec(&mut scheduler, anywhere(10));
    scheduler.submit(Moment::START, base.clone(), ()).unwrap();
    let mut last = scheduler.take(Moment::START, device).expect("the slot is busy while the others come");
    let ids: Vec<TaskId> = tasks
        .iter()
        .map(|&(at, priority, deadline)| {
            let deadline = deadline.map(|at| Moment(at * MS));
            scheduler.submit(Moment(at * MS), TaskSpec { priority, deadline, ..base.clone() }, ()).unwrap()
        })
        .collect();
    let mut started = Vec::new();
    let mut now = tasks.iter().map(|task| task.0).max().unwrap_or(0) * MS;
    for _ in tasks {
        now += 1;
        settle(&mut scheduler, Moment(now), &last, None);
        last = scheduler.take(Moment(now), device).expect("there is more");
        started.push(ids.iter().position(|id| *id == last.task).expect("one of ours"));
    }
    started
}

#[test]
fn critical_goes_before_everything_else_however_old() {
    let old = |priority| (0, priority, None);
    let tasks = [
        old(Priority::High),
        old(Priority::Normal),
        old(Priority::Background),
        (60_000, Priority::Critical, None),
        (60_001, Priority::Critical, None),
    ];
    assert_eq!(order(&tasks), [3, 4, 0, 1, 2]);
}

#[test]
fn one_level_is_worth_two_seconds_of_age() {
    let after = |ms| order(&[(0, Priority::Normal, None), (ms, Priority::High, None)]);
    assert_eq!(after(1_999), [1, 0]);
    assert_eq!(after(2_001), [0, 1]);
}

/// Background work that has a deadline is still background work.
#[test]
fn a_deadline_lifts_a_task_by_one_level_at_most() {
    let soon = Some(50);
    assert_eq!(order(&[(0, Priority::Background, soon), (1, Priority::High, None)]), [1, 0]);
    assert_eq!(order(&[(0, Priority::Background, soon), (1, Priority::Normal, None)]), [1, 0]);
    assert_eq!(order(&[(0, Priority::High, None), (1, Priority::Normal, soon)]), [0, 1], "beside it, not before it");
    assert_eq!(order(&[(0, Priority::Normal, None), (1, Priority::Normal, soon)]), [1, 0]);
    assert_eq!(order(&[(0, Priority::High, soon), (1, Priority::Critical, None)]), [1, 0]);
}

/// References that are there let a task go first among its equals, not before somebody more urgent.
#[test]
fn a_prepared_reference_jumps_no_level() {
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
    let device = scheduler.add_device(exact(DeviceKind::Cpu, 1, 1_000));
    scheduler.device_opened(Moment::START, device);
    let base = spec(&mut scheduler, anywhere(10));
    let using = |content, priority| {
        let references = [ReferenceUse { content: ContentKey(content), pinned: false }].into_iter().collect();
        TaskSpec { references, priority, ..base.clone() }
    };
    scheduler.submit(Moment(1), using(1, Priority::Normal), ()).unwrap();
    let first = scheduler.take(Moment(1), device).expect("it starts");
    scheduler.prepared(first.run, 0, ());
    let absent = scheduler.submit(Moment(2), using(2, Priority::Critical), ()).unwrap();
    let equal = scheduler.submit(Moment(3), using(3, Priority::Normal), ()).unwrap();
    let ready = scheduler.submit(Moment(4), using(1, Priority::Normal), ()).unwrap();
    let mut last = first;
    for expected in [absent, ready, equal] {
        settle(&mut scheduler, Moment(5), &last, None);
        last = scheduler.take(Moment(5), device).expect("there is more");
        assert_eq!(last.task, expected);
    }
}

/// Two slots of device 1 run what they find; device 2 has a long queue; a large task wants all of device 1.
/// Says how many small tasks device 1 began while the large one waited.
fn small_ones_before_the_large_one(strategy: Strategy) -> usize {
    let config = Config { strategy, lookahead: 0, ..Config::default() };
    let mut scheduler: Scheduler<Nothing> = Scheduler::new(config, Moment::START);
    let two_slots = scheduler.add_device(exact(DeviceKind::Gpu, 2, 1_000));
    let slow = scheduler.add_device(exact(DeviceKind::Gpu, 1, 1_000));
    let small = TaskSpec::new(scheduler.register("small"), anywhere(100), 10);
    let large = TaskSpec {
        devices: DeviceSet::only(two_slots),
        ..TaskSpec::new(scheduler.register("large"), anywhere(950), 10)
    };
    for _ in 0..3 {
        scheduler.teach(small.workload, "any", two_slots, 10, Nanos::millis(1));
        scheduler.teach(small.workload, "any", slow, 10, Nanos::millis(10));
        scheduler.teach(large.workload, "any", two_slots, 10, Nanos::millis(1));
    }
    // All goes to the slow one while the other is away.
    scheduler.device_opened(Moment::START, slow);
    for _ in 0..2_000 {
        scheduler.submit(Moment(1), small.clone(), ()).unwrap();
    }
    scheduler.device_opened(Moment(2), two_slots);
    let mut now = 3;
    let mut running = vec![scheduler.take(Moment(now), two_slots).expect("it steals")];
    let large = scheduler.submit(Moment(now), large, ()).unwrap();
    let mut began = 0;
    // Each slot asks as soon as it is free; the two are half a task apart.
    loop {
        while let Some(run) = scheduler.take(Moment(now), two_slots) {
            if run.task == large {
                return began;
            }
            began += 1;
            running.push(run);
        }
        assert!(began < 1_000 && !running.is_empty(), "{began} small ones, and the large one has not begun");
        now += MS / 2;
        let ended = running.remove(0);
        let measured = Measured { run: Nanos::millis(1), ..Measured::default() };
        scheduler.settle(Moment(now), ended.run, Outcome { result: Ok(()), session: Some(()), measured });
        scheduler.check_invariants().unwrap();
    }
}

#[test]
fn a_large_task_is_passed_over_only_so_often_also_by_stolen_ones() {
    for strategy in [Strategy::EarliestFinish, Strategy::AdaptiveThroughput, Strategy::LeastLoaded] {
        let began = small_ones_before_the_large_one(strategy);
        assert!(began <= usize::from(BYPASS_MAX), "{strategy}: {began} small tasks went first");
    }
}
