//! Cancelling, in every state that a task can be in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::{Bytes, Fault, Footprint, TaskError};
use plimsoll_runtime::{Orchestrator, Reference, Registered, Task, Ticket};
use plimsoll_testkit::virtual_device::ScriptedFault;

use crate::bounded::{Gate, bounded, eventually, within};
use crate::scripted::{Answer, FIRST, OnDrop, Piece, Scripted, anywhere, as_device, virtual_gpu};

fn one_worker() -> (Orchestrator, Registered<Scripted>) {
    let orchestrator = Orchestrator::builder().cpu(1).build();
    let work = orchestrator.register(Scripted::default());
    (orchestrator, work)
}

/// Cancels once in time and once too late; the result is `Cancelled`.
#[track_caller]
fn cancel_and_see(ticket: Ticket<Answer>, state: &str) {
    assert!(ticket.cancel(), "{state}: in time");
    assert!(!ticket.cancel(), "{state}: the second time it is too late");
    let error = within(ticket, state).err().expect(state).error;
    assert!(matches!(error, TaskError::Cancelled), "{state}: {error}");
}

#[test]
fn blocked_queued_running_and_done() {
    bounded(|| {
        let (orchestrator, work) = one_worker();
        let runs = Arc::new(AtomicU64::new(0));
        let counted = |value| {
            let ran = Arc::clone(&runs);
            Piece::new(value).on_run(move |_, _| {
                ran.fetch_add(1, Ordering::SeqCst);
                Ok(())
            })
        };
        let (entered, leave) = (Gate::default(), Gate::default());
        let running = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let queued = orchestrator.submit(&work, Task::new(counted(2))).unwrap();
        let blocked = orchestrator.submit(&work, Task::new(counted(3)).after([running.id()])).unwrap();
        let survivor = orchestrator.submit(&work, Task::new(Piece::new(4))).unwrap();
        cancel_and_see(blocked, "blocked");
        cancel_and_see(queued, "queued");
        cancel_and_see(running, "running");
        leave.open();
        assert_eq!(within(survivor, "the one that was left alone").unwrap().output.value, 4);
        assert_eq!(runs.load(Ordering::SeqCst), 0, "what was cancelled before it ran never runs");
        let done = orchestrator.submit(&work, Task::new(Piece::new(5))).unwrap();
        eventually("it is done", || orchestrator.unsettled() == 0);
        assert!(!done.cancel(), "done: too late");
        assert_eq!(within(done, "done").unwrap().output.value, 5);
    });
}

#[test]
fn a_dependent_of_a_cancelled_task_ends_with_it() {
    bounded(|| {
        let (orchestrator, work) = one_worker();
        let (entered, leave) = (Gate::default(), Gate::default());
        let running = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let queued = orchestrator.submit(&work, Task::new(Piece::new(2))).unwrap();
        let dependent = orchestrator.submit(&work, Task::new(Piece::new(3)).after([queued.id()])).unwrap();
        assert!(queued.cancel());
        let error = within(dependent, "the dependent").err().unwrap().error;
        assert!(matches!(error.first_cause(), TaskError::Cancelled), "{error}");
        leave.open();
        within(running, "the one before").unwrap();
    });
}

#[test]
fn while_opening() {
    bounded(|| {
        let (orchestrator, work) = one_worker();
        let (entered, leave) = (Gate::default(), Gate::default());
        let (tell, wait) = (entered.clone(), leave.clone());
        let runs = Arc::new(AtomicU64::new(0));
        let ran = Arc::clone(&runs);
        let piece = Piece::new(1)
            .on_open(move |_, _| {
                tell.open();
                wait.pass();
                Ok(())
            })
            .on_run(move |_, _| {
                ran.fetch_add(1, Ordering::SeqCst);
                Ok(())
            });
        let opening = orchestrator.submit(&work, Task::new(piece)).unwrap();
        entered.pass();
        cancel_and_see(opening, "opening");
        leave.open();
        assert_eq!(orchestrator.run(&work, Task::new(Piece::new(2))).unwrap().output.value, 2);
        assert_eq!(runs.load(Ordering::SeqCst), 0, "it never ran");
    });
}

#[test]
fn while_preparing() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(2).build();
        let (entered, leave) = (Gate::default(), Gate::default());
        let (tell, wait) = (entered.clone(), leave.clone());
        let work = orchestrator.register(Scripted::default().on_prepare(move |_, _| {
            tell.open();
            wait.pass();
            Ok(())
        }));
        let reference = Reference::new(vec![1, 2]);
        let preparing = orchestrator.submit(&work, Task::new(Piece::new(1)).reference(&reference)).unwrap();
        entered.pass();
        let waits_for_it = orchestrator.submit(&work, Task::new(Piece::new(2)).reference(&reference)).unwrap();
        cancel_and_see(preparing, "preparing");
        leave.open();
        let done = within(waits_for_it, "the task that waited for the same reference").unwrap();
        assert_eq!(done.output.references, [(3, 0)]);
    });
}

#[test]
fn stranded_with_no_device_that_is_well() {
    bounded(|| {
        let gpu = virtual_gpu("away", |gpu| {
            (1..100).fold(gpu, |gpu, reopening| gpu.fault(ScriptedFault::StaysAway { reopening }))
        });
        let orchestrator = Orchestrator::builder().device(as_device(&gpu)).cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        gpu.lose();
        let stranded = orchestrator.submit(&work, Task::new(Piece::new(1).checked()).devices([FIRST])).unwrap();
        eventually("the device is in quarantine", || !orchestrator.reports()[0].health.is_well());
        let late = Task::new(Piece::new(2)).devices([FIRST]).deadline(Duration::from_millis(1));
        let late = orchestrator.submit(&work, late).unwrap();
        assert!(matches!(within(late, "stranded").err().unwrap().error, TaskError::DeadlinePassed { started: false }));
        cancel_and_see(stranded, "stranded");
        assert_eq!(orchestrator.unsettled(), 0);
        assert_eq!(orchestrator.run(&work, Task::new(Piece::new(3))).unwrap().output.value, 3);
    });
}

#[test]
fn a_dropped_ticket_leaves_the_task_running() {
    bounded(|| {
        let (orchestrator, work) = one_worker();
        let ran = Gate::default();
        let tell = ran.clone();
        let piece = Piece::new(1).on_run(move |_, _| {
            tell.open();
            Ok(())
        });
        drop(orchestrator.submit(&work, Task::new(piece)).unwrap());
        ran.pass();
        eventually("it ends", || orchestrator.unsettled() == 0);
    });
}

/// The last handle to a reference goes with a cancelled task, on the worker's thread: nothing may be locked then.
#[test]
fn the_last_handle_of_a_reference_may_go_with_the_task() {
    bounded(|| {
        let (orchestrator, work) = one_worker();
        for round in 0..10 {
            let (entered, leave) = (Gate::default(), Gate::default());
            let handle = orchestrator.pin_reference(&work, vec![round; 10]);
            let task = Task::new(Piece::new(1).held(&entered, &leave)).reference(&handle);
            let ticket = orchestrator.submit(&work, task).unwrap();
            drop(handle);
            entered.pass();
            cancel_and_see(ticket, "running");
            leave.open();
            let next = orchestrator.submit(&work, Task::new(Piece::new(2))).unwrap();
            assert_eq!(within(next, "a task after the handle went").unwrap().output.value, 2);
        }
    });
}

/// An input may ask the orchestrator something when it is dropped: no lock is held then.
#[test]
fn an_input_may_call_back_when_it_goes() {
    bounded(|| {
        let orchestrator = Arc::new(Orchestrator::builder().cpu(1).build());
        let work = orchestrator.register(Scripted::default());
        let asks = || {
            let orchestrator = Arc::downgrade(&orchestrator);
            OnDrop::new(move || {
                if let Some(orchestrator) = orchestrator.upgrade() {
                    orchestrator.unsettled();
                }
            })
        };
        for fails in [false, true] {
            let (entered, leave) = (Gate::default(), Gate::default());
            let (tell, wait) = (entered.clone(), leave.clone());
            let piece = Piece::new(1).baggage(asks()).on_run(move |_, _| {
                tell.open();
                wait.pass();
                if fails { Err(Fault::work("odd")) } else { Ok(()) }
            });
            let running = orchestrator.submit(&work, Task::new(piece)).unwrap();
            entered.pass();
            let queued = orchestrator.submit(&work, Task::new(Piece::new(2).baggage(asks()))).unwrap();
            cancel_and_see(queued, "queued");
            cancel_and_see(running, "running");
            leave.open();
            let next = orchestrator.submit(&work, Task::new(Piece::new(3).baggage(asks()))).unwrap();
            assert_eq!(within(next, "the next task").unwrap().output.value, 3);
        }
        eventually("all threads are done with it", || Arc::strong_count(&orchestrator) == 1);
    });
}

/// Cancelled work that does not listen keeps its memory until it ends, and not a moment longer.
#[test]
fn memory_comes_back_when_the_work_ends() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).memory_limit(Bytes::mib(10)).build();
        let work = orchestrator.register(Scripted::default());
        let (entered, leave) = (Gate::default(), Gate::default());
        let ladder = anywhere(Footprint::task(Bytes::mib(10)));
        let piece = Piece::new(1).ladder(ladder).held(&entered, &leave);
        let running = orchestrator.submit(&work, Task::new(piece)).unwrap();
        entered.pass();
        cancel_and_see(running, "running");
        assert!(orchestrator.lease(&[(FIRST, Bytes::mib(1))]).is_err(), "it is still in use");
        leave.open();
        eventually("it is back", || orchestrator.lease(&[(FIRST, Bytes::mib(10))]).is_ok());
    });
}
