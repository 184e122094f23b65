//! A deadline of 1 ms: the ticket resolves when it passes, whatever the task does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::{Bytes, Fault, Footprint, TaskError};
use plimsoll_runtime::{Buffer, Device, DeviceFacts, MemoryReading, Orchestrator, Task};
use plimsoll_testkit::patience::ended_within;

use crate::bounded::{Gate, bounded, eventually, within};
use crate::scripted::{FIRST, Piece, Scripted, anywhere, as_device, virtual_gpu};

const SHORT: Duration = Duration::from_millis(1);

#[test]
fn before_it_could_start() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        let (entered, leave) = (Gate::default(), Gate::default());
        let held = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let runs = Arc::new(AtomicU64::new(0));
        let ran = Arc::clone(&runs);
        let piece = Piece::new(2).on_run(move |_, _| {
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        let late = orchestrator.submit(&work, Task::new(piece).deadline(SHORT)).unwrap();
        let blocked = Task::new(Piece::new(3)).deadline(SHORT).after([held.id()]);
        let blocked = orchestrator.submit(&work, blocked).unwrap();
        for ticket in [late, blocked] {
            let error = within(ticket, "a late task").err().unwrap().error;
            assert!(matches!(error, TaskError::DeadlinePassed { started: false }), "{error}");
        }
        leave.open();
        assert_eq!(within(held, "the held task").unwrap().output.value, 1);
        assert_eq!(orchestrator.run(&work, Task::new(Piece::new(4))).unwrap().output.value, 4);
        assert_eq!(runs.load(Ordering::SeqCst), 0, "what was late before it started never runs");
    });
}

#[test]
fn while_it_runs_and_does_not_listen() {
    bounded(|| {
        let gpu = virtual_gpu("only", |gpu| gpu.memory(Bytes::mib(100)));
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).build();
        let work = orchestrator.register(Scripted::default());
        let ladder = anywhere(Footprint::task(Bytes::mib(60)));
        let (entered, leave) = (Gate::default(), Gate::default());
        let piece = Piece::new(1).ladder(ladder.clone()).held(&entered, &leave);
        // Long enough to start first, even on a busy machine.
        let late = orchestrator.submit(&work, Task::new(piece).deadline(Duration::from_secs(1))).unwrap();
        entered.pass();
        let error = within(late, "a task that is deaf").err().unwrap().error;
        assert!(matches!(error, TaskError::DeadlinePassed { started: true }), "{error}");
        assert_eq!(orchestrator.unsettled(), 0);
        assert_eq!(orchestrator.reports()[0].promised, Bytes::mib(60), "the work still holds its memory");
        let mut behind = orchestrator.submit(&work, Task::new(Piece::new(2).ladder(ladder))).unwrap();
        assert!(ended_within(&mut behind, Duration::from_millis(20)).is_none(), "there is no room yet");
        leave.open();
        assert_eq!(within(behind, "the task behind it").unwrap().output.value, 2);
        eventually("the lease is back", || orchestrator.reports()[0].promised == Bytes::ZERO);
    });
}

#[test]
fn a_task_that_listens_stops() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        let stopped = Gate::default();
        let tell = stopped.clone();
        let piece = Piece::new(1).on_run(move |_, context| {
            loop {
                if let Err(fault) = context.check_cancelled() {
                    tell.open();
                    return Err(fault);
                }
                std::thread::yield_now();
            }
        });
        let late = orchestrator.submit(&work, Task::new(piece).deadline(SHORT)).unwrap();
        assert!(matches!(within(late, "it").err().unwrap().error, TaskError::DeadlinePassed { .. }));
        eventually("nothing runs on", || orchestrator.reports()[0].figures.depth == 0);
        assert_eq!(orchestrator.run(&work, Task::new(Piece::new(2))).unwrap().output.value, 2);
    });
}

#[test]
fn thousands_of_deadlines_all_end_once() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(2).build();
        let work = orchestrator.register(Scripted::default());
        let tasks = (0..3000_u64).map(|n| Task::new(Piece::new(n)).deadline(Duration::from_micros(n % 400)));
        let mut ended = 0;
        for result in orchestrator.run_all(&work, tasks) {
            ended += 1;
            if let Err(failed) = result {
                assert!(matches!(failed.error, TaskError::DeadlinePassed { .. }), "{failed}");
            }
        }
        assert_eq!((ended, orchestrator.unsettled()), (3000, 0));
    });
}

/// A device whose driver does not come back from being reopened, or from saying how much memory it has.
struct Hanging {
    inner: Arc<plimsoll_testkit::virtual_device::VirtualDevice>,
    asked: Gate,
    answer: Gate,
}

impl Device for Hanging {
    fn facts(&self) -> &DeviceFacts {
        self.inner.facts()
    }
    fn memory(&self) -> MemoryReading {
        self.inner.memory()
    }
    fn open_backend(&self) -> Result<Box<dyn plimsoll_runtime::Backend>, Fault> {
        self.inner.open_backend()
    }
    fn fetch(&self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        self.inner.fetch(buffer, offset, into)
    }
    fn reopen(&self) -> Result<(), Fault> {
        self.asked.open();
        self.answer.pass();
        self.inner.reopen()
    }
}

#[test]
fn a_driver_that_hangs_keeps_no_deadline_waiting() {
    bounded(|| {
        let inner = virtual_gpu("hanging", |gpu| gpu);
        let (asked, answer) = (Gate::default(), Gate::default());
        let hanging = Hanging { inner: Arc::clone(&inner), asked: asked.clone(), answer: answer.clone() };
        let orchestrator = Orchestrator::builder().device(Arc::new(hanging)).cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        inner.lose();
        let on_gpu = Task::new(Piece::new(1).checked()).devices([FIRST]);
        let stranded = orchestrator.submit(&work, on_gpu).unwrap();
        asked.pass();
        let (entered, leave) = (Gate::default(), Gate::default());
        let late = Task::new(Piece::new(2).held(&entered, &leave)).deadline(SHORT);
        let mut late = orchestrator.submit(&work, late).unwrap();
        // Waits for less than the driver hangs, so that only a deadline seen meanwhile passes.
        let late =
            ended_within(&mut late, Duration::from_secs(10)).expect("the deadline passes while the driver hangs");
        assert!(matches!(late.err().unwrap().error, TaskError::DeadlinePassed { .. }));
        leave.open();
        answer.open();
        assert_eq!(within(stranded, "the task of the hanging device").unwrap().output.value, 1);
    });
}
