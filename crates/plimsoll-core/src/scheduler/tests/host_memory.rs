//! What the process holds beside its tasks, as the line sees it while promises come and go.

use super::{Nothing, settle, spec, start};
use crate::line::{Margin, Memory};
use crate::scheduler::{Config, DeviceSpec};
use crate::{Bytes, DeviceId, DeviceKind, Footprint, Ladder, Moment, Place, Rung, Scheduler};

const CPU: DeviceId = DeviceId(0);
const NOW: Moment = Moment::START;

/// A machine of 1000 bytes of which the program has 100, and all the rest may be promised.
fn machine() -> Scheduler<Nothing> {
    let mut scheduler = Scheduler::new(Config::default(), NOW);
    let spec = DeviceSpec::new(DeviceKind::Cpu, 2, Bytes(0));
    let device = scheduler.add_device(DeviceSpec { margin: Margin { share: 1.0, limit: None }, ..spec });
    read(&mut scheduler, 100);
    scheduler.device_opened(NOW, device);
    scheduler
}

fn holding(resident: u64) -> Memory {
    let (capacity, resident) = (Bytes(1000), Bytes(resident));
    Memory { capacity, free: capacity - resident, ours: Bytes::ZERO, resident: Some(resident) }
}

/// A reading with nothing between its beginning and its end.
fn read(scheduler: &mut Scheduler<Nothing>, resident: u64) {
    scheduler.memory_reading_begins(CPU);
    scheduler.set_memory(NOW, CPU, holding(resident));
}

fn line(scheduler: &Scheduler<Nothing>) -> Bytes {
    scheduler.ledger().line(CPU)
}

fn submit(scheduler: &mut Scheduler<Nothing>, bytes: u64) {
    let ladder = Ladder::from(vec![Rung::new("cpu", Place::Anywhere, Footprint::task(Bytes(bytes)))]);
    let spec = spec(scheduler, ladder);
    scheduler.submit(NOW, spec, ()).expect("the queue is empty");
}

#[test]
fn a_running_task_does_not_lower_its_own_line() {
    let mut scheduler = machine();
    assert_eq!(line(&scheduler), Bytes(900));
    submit(&mut scheduler, 400);
    let run = start(&mut scheduler, NOW, 0);
    for resident in [100, 300, 500] {
        read(&mut scheduler, resident);
        assert_eq!(line(&scheduler), Bytes(900), "{resident} resident");
    }
    submit(&mut scheduler, 500);
    assert!(scheduler.take(NOW, CPU).is_some(), "900 in all: the second runs beside the first");
    settle(&mut scheduler, NOW, &run, None);
}

/// The reading was taken while the task ran, and arrives after it: what the task had is not the program's.
#[test]
fn a_task_that_ends_while_memory_is_read() {
    let mut scheduler = machine();
    submit(&mut scheduler, 400);
    let run = start(&mut scheduler, NOW, 0);
    scheduler.memory_reading_begins(CPU);
    settle(&mut scheduler, NOW, &run, None);
    scheduler.set_memory(NOW, CPU, holding(500));
    assert_eq!(line(&scheduler), Bytes(900));
    submit(&mut scheduler, 400);
    let run = start(&mut scheduler, NOW, 0);
    read(&mut scheduler, 500);
    assert_eq!(line(&scheduler), Bytes(900), "and the next task is counted from where the program really is");
    settle(&mut scheduler, NOW, &run, None);
    read(&mut scheduler, 300);
    assert_eq!(line(&scheduler), Bytes(700), "nothing is promised: the program has grown by 200");
}

/// A task starts and ends between the beginning of a reading and its end: nobody saw it before or after.
#[test]
fn a_task_within_one_reading() {
    let mut scheduler = machine();
    scheduler.memory_reading_begins(CPU);
    submit(&mut scheduler, 400);
    let run = start(&mut scheduler, NOW, 0);
    settle(&mut scheduler, NOW, &run, None);
    scheduler.set_memory(NOW, CPU, holding(500));
    assert_eq!(line(&scheduler), Bytes(900));
}

/// What was promised before the last reading is not in this one.
#[test]
fn a_reading_that_nobody_announced() {
    let mut scheduler = machine();
    submit(&mut scheduler, 400);
    let run = start(&mut scheduler, NOW, 0);
    settle(&mut scheduler, NOW, &run, None);
    scheduler.set_memory(NOW, CPU, holding(100));
    scheduler.set_memory(NOW, CPU, holding(500));
    assert_eq!(line(&scheduler), Bytes(500), "the program has grown by 400");
}

#[test]
fn a_margin_counts_from_the_next_reading_on() {
    let mut scheduler = machine();
    scheduler.set_margin(CPU, Margin { share: 1.0, limit: Some(Bytes(300)) });
    assert_eq!(line(&scheduler), Bytes(900));
    read(&mut scheduler, 100);
    assert_eq!(line(&scheduler), Bytes(300));
}
