//! Devices that hang while they are opened: the others work, no device is opened twice at once, and one that answers
//! late is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::health::{Ailment, Health};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Device, Orchestrator, Shutdown, Task, check};
use plimsoll_testkit::virtual_device::VirtualDevice;

use crate::bounded::{PATIENCE, bounded, eventually, within};
use crate::hooked::{Door, Hooked};
use crate::scripted::{FIRST, Piece, SECOND, Scripted, virtual_gpu};

/// How long these tests let an opening take.
const SHORT: Duration = Duration::from_millis(100);

/// A GPU that does not come back from being opened while the door is closed, and how many are in there at the most.
fn hanging(door: &Door) -> (Arc<dyn Device>, Arc<VirtualDevice>, Arc<AtomicUsize>) {
    let (inner, door, most) = (virtual_gpu("hanging", |gpu| gpu), door.clone(), Arc::<AtomicUsize>::default());
    let seen = Arc::clone(&most);
    let device = Hooked::new(Arc::clone(&inner)).on_open(move || {
        door.pass();
        seen.fetch_max(door.held(), Ordering::SeqCst);
        Ok(())
    });
    (device.device(), inner, most)
}

#[test]
fn a_device_that_hangs_at_the_start_is_left_out_until_it_answers() {
    bounded(|| {
        let door = Door::default();
        let closed = door.close();
        let (device, ..) = hanging(&door);
        let orchestrator = Orchestrator::builder().device(device).cpu(1).open_wait_max(SHORT).build();
        let work = orchestrator.register(Scripted::default());
        let health = orchestrator.reports()[0].health;
        assert!(matches!(health, Health::Quarantined { ailment: Ailment::Unproven, .. }), "{health:?}");
        let waits = orchestrator.submit(&work, Task::new(Piece::new(1)).devices([FIRST])).unwrap();
        let elsewhere = orchestrator.submit(&work, Task::new(Piece::new(2))).unwrap();
        assert_eq!(within(elsewhere, "a task that may go elsewhere").unwrap().report.device, SECOND);
        // It is due to be tried again several times by now.
        std::thread::sleep(5 * SHORT);
        assert_eq!(door.held(), 1, "two tries of one device never run at once");
        drop(closed);
        assert_eq!(within(waits, "the task that waits for it").unwrap().report.device, FIRST);
        assert!(orchestrator.reports()[0].health.is_well());
    });
}

#[test]
fn a_device_whose_memory_cannot_be_read_at_the_start_comes_in_later() {
    bounded(|| {
        let (door, inner) = (Door::default(), virtual_gpu("unread", |gpu| gpu.memory(Bytes::mib(100))));
        let (closed, held) = (door.close(), door.clone());
        let device = Hooked::new(inner).on_memory(move |reading| {
            held.pass();
            plimsoll_runtime::MemoryReading { limit: Some(Bytes::mib(40)), ..reading }
        });
        let orchestrator = Orchestrator::builder().device(device.device()).cpu(1).open_wait_max(SHORT).build();
        let work = orchestrator.register(Scripted::default());
        assert!(!orchestrator.reports()[0].health.is_well());
        let waits = orchestrator.submit(&work, Task::new(Piece::new(1)).devices([FIRST])).unwrap();
        let elsewhere = orchestrator.submit(&work, Task::new(Piece::new(2))).unwrap();
        assert_eq!(within(elsewhere, "a task that may go elsewhere").unwrap().report.device, SECOND);
        drop(closed);
        assert_eq!(within(waits, "the task that waits for it").unwrap().report.device, FIRST);
        assert_eq!(orchestrator.reports()[0].line, Bytes::mib(40), "its own limit holds from the first reading on");
    });
}

#[test]
fn a_device_that_hangs_when_it_is_reopened_counts_once_it_answers() {
    bounded(|| {
        let door = Door::default();
        let (device, inner, most) = hanging(&door);
        let orchestrator = Orchestrator::builder().device(device).cpu(1).open_wait_max(SHORT).build();
        let work = orchestrator.register(Scripted::default());
        orchestrator.run(&work, Task::new(Piece::new(0)).devices([FIRST])).unwrap();
        let closed = door.close();
        inner.lose();
        let piece = Piece::new(1).on_run(|_, context| check::known_answer(context.backend));
        let waits = orchestrator.submit(&work, Task::new(piece).devices([FIRST])).unwrap();
        eventually("the limit has passed", || {
            matches!(orchestrator.reports()[0].health, Health::Quarantined { tries: 2.., .. })
        });
        assert_eq!(orchestrator.run(&work, Task::new(Piece::new(2)).devices([SECOND])).unwrap().output.value, 2);
        drop(closed);
        assert_eq!(within(waits, "the task that waits for it").unwrap().output.value, 1);
        assert_eq!((inner.calls().reopenings, most.load(Ordering::SeqCst)), (1, 0), "one try, which took long");
    });
}

/// What a try that took too long finds out in the end is no second failure.
#[test]
fn a_try_that_hangs_and_then_fails_is_followed_by_a_new_one() {
    bounded(|| {
        let door = Door::default();
        let (inner, pass) = (virtual_gpu("late", |gpu| gpu), door.clone());
        let opened = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&opened);
        let device = Hooked::new(inner).on_open(move || {
            pass.pass();
            match count.fetch_add(1, Ordering::SeqCst) {
                0 => Err(Fault::DeviceLost { detail: "too late, and in vain".to_owned() }),
                _ => Ok(()),
            }
        });
        let closed = door.close();
        let orchestrator = Orchestrator::builder().device(device.device()).cpu(1).open_wait_max(SHORT).build();
        drop(closed);
        eventually("the next try brings it in", || orchestrator.reports()[0].health.is_well());
        assert!(opened.load(Ordering::SeqCst) >= 2);
    });
}

/// All have to be there at once before any of them answers.
#[test]
fn devices_are_opened_beside_each_other() {
    bounded(|| {
        let meeting = crate::bounded::Meeting::of(3);
        let devices = ["a", "b", "c"].map(|name| {
            let meeting = meeting.clone();
            let once = std::sync::Once::new();
            let meet = move || {
                once.call_once(|| meeting.attend());
                Ok(())
            };
            Hooked::new(virtual_gpu(name, |gpu| gpu)).on_open(meet).device()
        });
        let orchestrator = Orchestrator::builder().devices(devices).build();
        assert!(orchestrator.reports().iter().all(|report| report.health.is_well()));
    });
}

#[test]
fn a_device_whose_code_panics_at_the_start_is_left_out() {
    bounded(|| {
        let device = Hooked::new(virtual_gpu("panics", |gpu| gpu)).on_open(|| panic!("the driver's own code"));
        let orchestrator = Orchestrator::builder().device(device.device()).cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        assert_eq!(orchestrator.run(&work, Task::new(Piece::new(1))).unwrap().report.device, SECOND);
        assert!(!orchestrator.reports()[0].health.is_well());
    });
}

#[test]
fn shutting_down_does_not_wait_for_a_device_that_hangs_while_it_is_opened() {
    bounded(|| {
        let door = Door::default();
        let closed = door.close();
        let orchestrator = Orchestrator::builder().device(hanging(&door).0).cpu(1).open_wait_max(SHORT).build();
        let began = Instant::now();
        orchestrator.shutdown(Shutdown::Drain(PATIENCE));
        let took = began.elapsed();
        drop(closed);
        assert!(took < Duration::from_secs(3), "it took {took:?}");
        eventually("whoever hung goes", || door.held() == 0);
    });
}
