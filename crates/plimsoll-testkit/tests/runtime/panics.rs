//! A panic in a task is that task's error: others go on, and every worker lives.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_core::{Bytes, Footprint, Ladder, Place, Rung, TaskError};
use plimsoll_runtime::{Orchestrator, Reference, Registered, Task};

use crate::bounded::{Gate, Meeting, bounded, eventually, within};
use crate::scripted::{OnDrop, Piece, Scripted, anywhere};

const WORKERS: usize = 3;

fn three_workers() -> (Orchestrator, Registered<Scripted>) {
    let orchestrator = Orchestrator::builder().cpu(WORKERS).build();
    let work = orchestrator.register(Scripted::default());
    (orchestrator, work)
}

/// As many tasks as there are workers run at the same moment.
#[track_caller]
fn all_workers_live(orchestrator: &Orchestrator) {
    // A workload of its own: nothing is known of it, so each task gets a slot of its own.
    let fresh = orchestrator.register(Scripted::named("meeting"));
    let meeting = Meeting::of(WORKERS);
    let tickets: Vec<_> = (0..WORKERS as u64)
        .map(|n| {
            let meeting = meeting.clone();
            let piece = Piece::new(n).on_run(move |_, _| {
                meeting.attend();
                Ok(())
            });
            orchestrator.submit(&fresh, Task::new(piece)).unwrap()
        })
        .collect();
    for (n, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(within(ticket, "a meeting of all workers").unwrap().output.value, n as u64);
    }
}

#[track_caller]
fn panicked_with(error: &TaskError, wanted: &str) {
    assert!(matches!(error, TaskError::Panicked { message } if message.contains(wanted)), "{error}");
}

#[test]
fn in_run() {
    bounded(|| {
        let (orchestrator, work) = three_workers();
        for round in 0..20 {
            let piece = Piece::new(round).on_run(|_, _| panic!("run fell over"));
            let bad = orchestrator.submit(&work, Task::new(piece)).unwrap();
            let good = orchestrator.submit(&work, Task::new(Piece::new(round))).unwrap();
            panicked_with(&within(bad, "the panicking task").err().unwrap().error, "run fell over");
            assert_eq!(within(good, "its neighbour").unwrap().output.value, round);
        }
        all_workers_live(&orchestrator);
        assert_eq!(orchestrator.unsettled(), 0);
    });
}

#[test]
fn in_open() {
    bounded(|| {
        let (orchestrator, work) = three_workers();
        for round in 0..20 {
            let piece = Piece::new(round).shape(round + 1).on_open(|_, _| panic!("open fell over"));
            let failed = orchestrator.run(&work, Task::new(piece)).err().unwrap();
            panicked_with(&failed.error, "open fell over");
            assert_eq!(orchestrator.run(&work, Task::new(Piece::new(round))).unwrap().output.value, round);
        }
        all_workers_live(&orchestrator);
        assert_eq!(orchestrator.reports()[0].promised, Bytes::ZERO);
    });
}

#[test]
fn in_prepare() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(WORKERS).build();
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tries);
        let work = orchestrator.register(Scripted::default().on_prepare(move |_, _| {
            assert!(counted.fetch_add(1, Ordering::Relaxed) > 0, "prepare fell over");
            Ok(())
        }));
        let reference = Reference::new(vec![1, 2, 3]);
        let tickets: Vec<_> = (0..10)
            .map(|n| orchestrator.submit(&work, Task::new(Piece::new(n)).reference(&reference)).unwrap())
            .collect();
        let results: Vec<_> = tickets.into_iter().map(|ticket| within(ticket, "a task with a reference")).collect();
        let failed: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert_eq!(failed.len(), 1, "only the task that was preparing fails");
        panicked_with(&failed[0].error, "prepare fell over");
        for done in results.iter().filter_map(|result| result.as_ref().ok()) {
            assert_eq!(done.output.references, [(6, 0)]);
        }
        assert_eq!(tries.load(Ordering::Relaxed), 2, "prepared again once, then shared");
        all_workers_live(&orchestrator);
    });
}

#[test]
fn in_ladder_is_the_callers() {
    bounded(|| {
        let (orchestrator, work) = three_workers();
        let task = || Task::new(Piece::new(1).on_ladder(|| panic!("ladder fell over")));
        assert!(catch_unwind(AssertUnwindSafe(|| orchestrator.submit(&work, task()))).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| orchestrator.run(&work, task()))).is_err());
        let tasks = (0..5).map(|n| if n == 2 { task() } else { Task::new(Piece::new(n)) });
        let mut results = orchestrator.run_all(&work, tasks);
        let mut values = Vec::new();
        let mut panics = 0;
        loop {
            match catch_unwind(AssertUnwindSafe(|| results.next())) {
                Ok(Some(result)) => values.push(result.unwrap().output.value),
                Ok(None) => break,
                Err(_) => panics += 1,
            }
        }
        values.sort_unstable();
        assert_eq!((values, panics), (vec![0, 1, 3, 4], 1));
        assert_eq!(orchestrator.unsettled(), 0);
        all_workers_live(&orchestrator);
    });
}

#[test]
fn in_the_drop_of_an_output_nobody_wants() {
    bounded(|| {
        let (orchestrator, work) = three_workers();
        for round in 0..50 {
            let piece = Piece::new(round).output_drop(|| panic!("output fell over"));
            let ticket = orchestrator.submit(&work, Task::new(piece)).unwrap();
            // If the output is already there it goes with the ticket, and the panic is this thread's own.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(ticket)));
            let good = orchestrator.submit(&work, Task::new(Piece::new(round))).unwrap();
            assert_eq!(within(good, "its neighbour").unwrap().output.value, round);
        }
        eventually("all have ended", || orchestrator.unsettled() == 0);
        all_workers_live(&orchestrator);
    });
}

#[test]
fn in_the_drop_of_a_cancelled_output() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        let (entered, leave) = (Gate::default(), Gate::default());
        let piece = Piece::new(0).held(&entered, &leave).output_drop(|| panic!("output fell over"));
        let stopped = orchestrator.submit(&work, Task::new(piece)).unwrap();
        entered.pass();
        let behind: Vec<_> = (1..20).map(|n| orchestrator.submit(&work, Task::new(Piece::new(n))).unwrap()).collect();
        assert!(stopped.cancel());
        leave.open();
        for (n, ticket) in (1..).zip(behind) {
            assert_eq!(within(ticket, "a task behind it").unwrap().output.value, n);
        }
    });
}

#[test]
fn in_the_drop_of_an_input() {
    bounded(|| {
        let (orchestrator, work) = three_workers();
        for round in 0..30 {
            let falls = OnDrop::new(|| panic!("input fell over"));
            let bad = orchestrator.submit(&work, Task::new(Piece::new(round).baggage(falls))).unwrap();
            let good = orchestrator.submit(&work, Task::new(Piece::new(round))).unwrap();
            assert_eq!(within(bad, "the task itself").unwrap().output.value, round);
            assert_eq!(within(good, "its neighbour").unwrap().output.value, round);
        }
        all_workers_live(&orchestrator);
    });
}

#[test]
fn in_the_drop_of_an_evicted_session() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).memory_limit(Bytes::mib(10)).build();
        let work = orchestrator.register(Scripted::default());
        let footprint = Footprint { session: Bytes::mib(6), ..Footprint::default() };
        for shape in 0..10 {
            let piece = Piece::new(shape).shape(shape).ladder(anywhere(footprint));
            let piece = piece.session_drop(|| panic!("session fell over"));
            let done = orchestrator.run(&work, Task::new(piece)).unwrap_or_else(|failed| panic!("{failed}"));
            assert_eq!(done.output.value, shape, "the session of another task is not this task's fault");
        }
        assert_eq!(orchestrator.reports()[0].promised, Bytes::mib(6));
    });
}

#[test]
fn in_the_drop_of_a_session_for_a_lease() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).memory_limit(Bytes::mib(10)).build();
        let work = orchestrator.register(Scripted::default());
        let footprint = Footprint { session: Bytes::mib(6), ..Footprint::default() };
        let piece = Piece::new(1).ladder(anywhere(footprint)).session_drop(|| panic!("session fell over"));
        orchestrator.run(&work, Task::new(piece)).unwrap();
        let all = [(crate::scripted::FIRST, Bytes::mib(10))];
        // Whether the caller sees the panic or not, the bytes must not be lost.
        let leased = catch_unwind(AssertUnwindSafe(|| orchestrator.lease(&all).map(drop)));
        assert!(!matches!(leased, Ok(Err(_))), "the idle session was in the way");
        assert_eq!(orchestrator.reports()[0].promised, Bytes::ZERO);
        drop(orchestrator.lease(&all).unwrap());
    });
}

#[test]
fn in_a_listener_costs_nobody_a_result() {
    bounded(|| {
        let builder = Orchestrator::builder().cpu(2);
        let orchestrator = builder.listener(|_: &[_]| panic!("the listener fell over")).build();
        let work = orchestrator.register(Scripted::default());
        for n in 0..20 {
            let ticket = orchestrator.submit(&work, Task::new(Piece::new(n))).unwrap();
            assert_eq!(within(ticket, "a task").unwrap().output.value, n);
        }
        let (entered, leave) = (Gate::default(), Gate::default());
        let late = Task::new(Piece::new(0).held(&entered, &leave)).deadline(Duration::from_millis(1));
        let late = orchestrator.submit(&work, late).unwrap();
        let error = within(late, "the watchdog lives and sees the deadline").err().unwrap().error;
        assert!(matches!(error, TaskError::DeadlinePassed { .. }), "{error}");
        leave.open();
    });
}

#[test]
fn a_failing_piece_names_its_error_and_is_not_tried_again() {
    bounded(|| {
        let (orchestrator, work) = three_workers();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let rungs = ["one", "two"].map(|name| Rung::new(name, Place::Anywhere, Footprint::default()));
        let piece = Piece::new(0).ladder(Ladder::new(rungs)).on_run(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            Err(plimsoll_core::Fault::work("this input is odd"))
        });
        let failed = orchestrator.run(&work, Task::new(piece)).err().unwrap();
        assert_eq!(failed.to_string(), "this input is odd");
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    });
}
