//! A driver that does not say how much memory is free, or panics when asked: nobody waits for it, and readings that come
//! late do no harm.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::balancer::Strategy;
use plimsoll_core::{Bytes, TaskError};
use plimsoll_runtime::{Device, Orchestrator, Shutdown, Task, check};
use plimsoll_testkit::patience::ended_within;
use plimsoll_testkit::virtual_device::VirtualDevice;

use crate::bounded::{Gate, PATIENCE, bounded, eventually, within};
use crate::hooked::{Door, Hooked};
use crate::scripted::{ALL, FIRST, Piece, SECOND, Scripted, as_device, gpu_then_cpu, virtual_gpu};

/// Longer than a reading counts, and than the watchdog's round.
const STALE: Duration = Duration::from_millis(600);
/// Within this the caller must be back although a driver hangs: far longer than any wait that is meant.
const PROMPT: Duration = Duration::from_secs(5);

/// A GPU whose memory cannot be read while the door is closed.
fn hanging(door: &Door) -> (Arc<dyn Device>, Arc<VirtualDevice>) {
    let (inner, door) = (virtual_gpu("hanging", |gpu| gpu.memory(Bytes::mib(100))), door.clone());
    let device = Hooked::new(Arc::clone(&inner)).on_memory(move |reading| {
        door.pass();
        reading
    });
    (device.device(), inner)
}

#[track_caller]
fn prompt<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = act();
    let took = began.elapsed();
    assert!(took < PROMPT, "{what} took {took:?}");
    result
}

#[test]
fn every_call_comes_back_though_a_reading_hangs() {
    bounded(|| {
        let door = Door::default();
        let orchestrator = Orchestrator::builder().device(hanging(&door).0).cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        let closed = door.close();
        let (sender, ended) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let (orchestrator, work) = (&orchestrator, &work);
            scope.spawn(move || {
                for value in 0..3 {
                    std::thread::sleep(STALE);
                    let task = || Task::new(Piece::new(value)).devices([SECOND]);
                    let ticket = prompt("submit", || orchestrator.submit(work, task())).unwrap();
                    assert_eq!(within(ticket, "a task of another device").unwrap().output.value, value);
                    let mut inbox = orchestrator.inbox(work);
                    prompt("an inbox's submit", || inbox.submit(task())).unwrap();
                    assert!(inbox.poll_any_blocking(PATIENCE).is_some());
                    assert_eq!(orchestrator.run_all(work, [task()]).count(), 1);
                    assert_eq!(prompt("why", || orchestrator.why(work, task())).len(), 2);
                    drop(prompt("lease", || orchestrator.lease(&[(SECOND, Bytes(1))])).unwrap());
                    assert_eq!(prompt("reports", || orchestrator.reports()).len(), 2);
                }
                sender.send(()).unwrap();
            });
            let all_came_back = ended.recv_timeout(PATIENCE).is_ok();
            let held = door.held();
            drop(closed);
            assert!(all_came_back, "{held} threads are inside `Device::memory`");
            assert_eq!(held, 1, "one reader a device, and nobody else");
        });
    });
}

#[test]
fn a_deadline_passes_though_a_reading_hangs() {
    bounded(|| {
        let door = Door::default();
        let orchestrator = Orchestrator::builder().device(hanging(&door).0).cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        let (entered, leave) = (Gate::default(), Gate::default());
        let held = Task::new(Piece::new(1).held(&entered, &leave)).devices([SECOND]).deadline(Duration::from_secs(1));
        let mut ticket = orchestrator.submit(&work, held).unwrap();
        entered.pass();
        let closed = door.close();
        eventually("memory is read while there is work", || door.held() == 1);
        let ended = ended_within(&mut ticket, PROMPT);
        drop(closed);
        leave.open();
        let failed = ended.expect("the deadline passes").err().expect("it was too late");
        assert!(matches!(failed.error, TaskError::DeadlinePassed { started: true }), "{failed}");
    });
}

#[test]
fn a_lost_device_is_reopened_though_a_reading_hangs() {
    for itself in [false, true] {
        bounded(move || {
            let door = Door::default();
            let (device, inner) = hanging(&door);
            let other = virtual_gpu("other", |gpu| gpu);
            let orchestrator = Orchestrator::builder().device(device).device(as_device(&other)).build();
            let work = orchestrator.register(Scripted::default());
            let (entered, leave) = (Gate::default(), Gate::default());
            let (tell, wait) = (entered.clone(), leave.clone());
            let piece = Piece::new(1).on_run(move |_, context| {
                tell.open();
                wait.pass();
                check::known_answer(context.backend)
            });
            let (on, lost) = if itself { (FIRST, &inner) } else { (SECOND, &other) };
            let mut ticket = orchestrator.submit(&work, Task::new(piece).devices([on])).unwrap();
            entered.pass();
            let closed = door.close();
            eventually("memory is read while there is work", || door.held() == 1);
            lost.lose();
            leave.open();
            let ended = ended_within(&mut ticket, PROMPT);
            drop(closed);
            let done = ended.expect("it is reopened and the task runs again").unwrap();
            assert_eq!((done.output.value, lost.calls().reopenings), (1, 1));
        });
    }
}

#[test]
fn shutting_down_does_not_wait_for_a_reading_that_hangs() {
    for how in [Shutdown::Cancel, Shutdown::Drain(PATIENCE)] {
        bounded(move || {
            let door = Door::default();
            let orchestrator = Orchestrator::builder().device(hanging(&door).0).cpu(1).build();
            let work = orchestrator.register(Scripted::default());
            let closed = door.close();
            std::thread::sleep(STALE);
            let ticket = orchestrator.submit(&work, Task::new(Piece::new(1)).devices([SECOND])).unwrap();
            eventually("memory is read", || door.held() == 1);
            within(ticket, "a task of another device").unwrap();
            let began = Instant::now();
            orchestrator.shutdown(how);
            let took = began.elapsed();
            drop(closed);
            // Well below what a worker that is stuck would be waited for.
            assert!(took < Duration::from_secs(3), "it took {took:?}");
            eventually("the reader goes", || door.held() == 0);
        });
    }
}

/// What was read before the driver hung is old when it arrives. What is read after it counts.
#[test]
fn a_reading_that_comes_late_is_followed_by_a_new_one() {
    bounded(|| {
        let door = Door::default();
        let (device, inner) = hanging(&door);
        let orchestrator = Orchestrator::builder().device(device).cpu(1).margin(1.0).build();
        let work = orchestrator.register(Scripted::default());
        let task = || Task::new(Piece::new(1)).devices([SECOND]);
        inner.occupy(Bytes::mib(90));
        let closed = door.close();
        std::thread::sleep(STALE);
        orchestrator.run(&work, task()).unwrap();
        eventually("a reading is under way", || door.held() == 1);
        inner.occupy(Bytes::mib(20));
        // Somebody wants to know how things are now, while the old reading is still on its way.
        std::thread::sleep(STALE);
        orchestrator.run(&work, task()).unwrap();
        assert_eq!(orchestrator.reports()[0].line, Bytes::mib(100), "nothing has arrived");
        drop(closed);
        eventually("the newest counts", || orchestrator.reports()[0].line == Bytes::mib(80));
        std::thread::sleep(STALE);
        assert_eq!(orchestrator.reports()[0].line, Bytes::mib(80), "and stays");
    });
}

/// The first task after a long pause sees what others took meanwhile, though a reading takes longer than placing it.
#[test]
fn the_first_task_after_a_pause_sees_the_memory_of_now() {
    bounded(|| {
        let door = Door::default();
        let (device, inner) = hanging(&door);
        // The better rung is always taken first, whatever would be done sooner.
        let builder = Orchestrator::builder().device(device).cpu(1).strategy(Strategy::WeightedCapacity).weight(0, ALL);
        let orchestrator = builder.reading_wait_max(PATIENCE).build();
        let work = orchestrator.register(Scripted::default());
        let run = || {
            let task = Task::new(Piece::new(1).ladder(gpu_then_cpu(Bytes::mib(60))));
            orchestrator.run(&work, task).unwrap().report.rung
        };
        assert_eq!(run(), "gpu");
        eventually("nobody reads", || {
            let before = door.passed();
            std::thread::sleep(STALE);
            door.passed() == before && door.held() == 0
        });
        inner.occupy(Bytes::mib(80));
        let closed = door.close();
        std::thread::scope(|scope| {
            let first = scope.spawn(run);
            eventually("it asks for a reading", || door.held() == 1);
            // Far longer than it takes to place and to run it.
            std::thread::sleep(STALE);
            assert_eq!(orchestrator.unsettled(), 0, "it is placed by what is free now");
            drop(closed);
            assert_eq!(first.join().unwrap(), "cpu");
        });
    });
}

#[test]
fn a_panic_while_memory_is_read_costs_nothing() {
    bounded(|| {
        let (panics, reads) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
        let (breaks, count) = (Arc::clone(&panics), Arc::clone(&reads));
        let inner = virtual_gpu("panics", |gpu| gpu.memory(Bytes::mib(100)));
        let device = Hooked::new(Arc::clone(&inner)).on_memory(move |reading| {
            count.fetch_add(1, Ordering::SeqCst);
            assert!(!breaks.load(Ordering::SeqCst), "the driver's own code panics");
            reading
        });
        let orchestrator = Orchestrator::builder().device(device.device()).cpu(1).margin(1.0).build();
        let work = orchestrator.register(Scripted::default());
        assert_eq!(orchestrator.run(&work, Task::new(Piece::new(1))).unwrap().report.device, SECOND);
        assert!(!orchestrator.reports()[0].health.is_well(), "nobody knows its memory");
        panics.store(false, Ordering::SeqCst);
        eventually("it comes in with its first reading", || orchestrator.reports()[0].health.is_well());
        assert_eq!(orchestrator.reports()[0].line, Bytes::mib(100));
        assert_eq!(orchestrator.run(&work, Task::new(Piece::new(2)).devices([FIRST])).unwrap().output.value, 2);
        panics.store(true, Ordering::SeqCst);
        let before = reads.load(Ordering::SeqCst);
        let (entered, leave) = (Gate::default(), Gate::default());
        let held =
            orchestrator.submit(&work, Task::new(Piece::new(3).held(&entered, &leave)).devices([FIRST])).unwrap();
        entered.pass();
        eventually("it is read and read again", || reads.load(Ordering::SeqCst) > before + 2);
        assert_eq!(orchestrator.reports()[0].line, Bytes::mib(100), "the last reading counts");
        inner.occupy(Bytes::mib(50));
        panics.store(false, Ordering::SeqCst);
        eventually("the reader lives", || orchestrator.reports()[0].line == Bytes::mib(50));
        leave.open();
        assert_eq!(within(held, "the task there").unwrap().output.value, 3);
    });
}

/// With nothing to do, nobody asks a driver anything.
#[test]
fn an_idle_orchestrator_reads_nothing() {
    bounded(|| {
        let door = Door::default();
        let orchestrator = Orchestrator::builder().device(hanging(&door).0).build();
        let work = orchestrator.register(Scripted::default());
        orchestrator.run(&work, Task::new(Piece::new(1))).unwrap();
        eventually("it is quiet", || {
            let before = door.passed();
            std::thread::sleep(STALE);
            door.passed() == before
        });
    });
}
