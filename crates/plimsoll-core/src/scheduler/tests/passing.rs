//! Tasks that have to prepare a reference, among others that find theirs: who may pass over whom, and how often.

use super::*;
use crate::scheduler::take::BYPASS_MAX;
use crate::task::{Priority, ReferenceUse};
use crate::{ContentKey, TaskId};

/// One slot, and a run on it that prepared content 1.
struct Slot {
    scheduler: Scheduler<Nothing>,
    base: TaskSpec,
    last: Assignment<Nothing>,
    now: u64,
}

impl Slot {
    fn new() -> Self {
        let mut scheduler: Scheduler<Nothing> =
            Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
        let device = scheduler.add_device(exact(DeviceKind::Cpu, 1, 10_000));
        scheduler.device_opened(Moment::START, device);
        let base = spec(&mut scheduler, anywhere(10));
        scheduler.submit(Moment(1), using(&base, 1), ()).unwrap();
        let last = start(&mut scheduler, Moment(1), CPU.0);
        scheduler.prepared(last.run, 0, ());
        Self { scheduler, base, last, now: 1 }
    }

    fn submit(&mut self, content: u128, priority: Priority, deadline: Option<Moment>) -> TaskId {
        self.now += 1;
        let spec = TaskSpec { priority, deadline, ..using(&self.base, content) };
        self.scheduler.submit(Moment(self.now), spec, ()).unwrap()
    }

    /// The run ends, and the next begins.
    fn next(&mut self) -> TaskId {
        self.now += 1;
        settle(&mut self.scheduler, Moment(self.now), &self.last, None);
        self.last = start(&mut self.scheduler, Moment(self.now), CPU.0);
        self.last.task
    }
}

fn using(base: &TaskSpec, content: u128) -> TaskSpec {
    let references = [ReferenceUse { content: ContentKey(content), pinned: false }].into_iter().collect();
    TaskSpec { references, ..base.clone() }
}

/// What is ready passes over its equals, and not somebody more urgent who stands behind one of them.
#[test]
fn a_prepared_reference_passes_over_nobody_more_urgent() {
    let mut slot = Slot::new();
    let soon = Some(Moment(Nanos::seconds(1).0));
    let lifted = slot.submit(2, Priority::Normal, soon);
    let urgent = slot.submit(3, Priority::High, None);
    let ready = slot.submit(1, Priority::Normal, None);
    let queued: Vec<TaskId> = slot.scheduler.queued(CPU).map(|(task, _)| task).collect();
    assert_eq!(queued, [lifted, urgent, ready], "its deadline puts a task before a more urgent one");
    assert_eq!([slot.next(), slot.next(), slot.next()], [urgent, ready, lifted]);
}

#[test]
fn a_task_that_has_to_prepare_is_passed_over_only_so_often() {
    let mut slot = Slot::new();
    let waits = slot.submit(2, Priority::Normal, None);
    for passed in 0..=BYPASS_MAX {
        slot.submit(1, Priority::Normal, None);
        slot.submit(1, Priority::Normal, None);
        if slot.next() == waits {
            return assert_eq!(passed, BYPASS_MAX);
        }
    }
    panic!("it never started");
}

/// Nothing is ready, so something is prepared: for the first in the queue.
#[test]
fn of_those_that_have_to_prepare_the_first_in_the_queue_begins() {
    let mut slot = Slot::new();
    let normal = slot.submit(2, Priority::Normal, None);
    let critical = slot.submit(3, Priority::Critical, None);
    let high = slot.submit(4, Priority::High, None);
    let ready = slot.submit(1, Priority::Normal, None);
    assert_eq!([slot.next(), slot.next(), slot.next(), slot.next()], [critical, high, ready, normal]);
    let high = slot.submit(5, Priority::High, None);
    let normal = slot.submit(6, Priority::Normal, None);
    assert_eq!([slot.next(), slot.next()], [high, normal]);
}
