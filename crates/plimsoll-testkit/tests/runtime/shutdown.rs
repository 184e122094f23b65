//! Shutting down: drained or cancelled, everything ends, every ticket resolves, nothing hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::TaskError;
use plimsoll_runtime::{Orchestrator, Registered, Shutdown, Task, Ticket};

use crate::bounded::{Gate, PATIENCE, bounded, eventually, within};
use crate::scripted::{Answer, Piece, Scripted};

fn start(slots: usize) -> (Orchestrator, Registered<Scripted>) {
    let orchestrator = Orchestrator::builder().cpu(slots).build();
    let work = orchestrator.register(Scripted::default());
    (orchestrator, work)
}

fn many(orchestrator: &Orchestrator, work: &Registered<Scripted>, runs: &Arc<AtomicU64>) -> Vec<Ticket<Answer>> {
    let piece = |n| {
        let ran = Arc::clone(runs);
        Piece::new(n).on_run(move |_, _| {
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    };
    (0..500).map(|n| orchestrator.submit(work, Task::new(piece(n))).unwrap()).collect()
}

#[test]
fn drain_finishes_everything() {
    for at_most in [PATIENCE, Duration::MAX] {
        bounded(move || {
            let (orchestrator, work) = start(2);
            let runs = Arc::default();
            let tickets = many(&orchestrator, &work, &runs);
            orchestrator.shutdown(Shutdown::Drain(at_most));
            assert_eq!(runs.load(Ordering::SeqCst), 500);
            for (n, mut ticket) in (0..).zip(tickets) {
                let result = ticket.poll_now().expect("it is there already");
                assert_eq!(result.unwrap().output.value, n);
            }
        });
    }
}

#[test]
fn a_drain_that_takes_too_long_cancels_the_rest() {
    bounded(|| {
        let (orchestrator, work) = start(1);
        let (entered, leave) = (Gate::default(), Gate::default());
        let held = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let queued = orchestrator.submit(&work, Task::new(Piece::new(2))).unwrap();
        let closer = std::thread::spawn(move || orchestrator.shutdown(Shutdown::Drain(Duration::from_millis(20))));
        for ticket in [held, queued] {
            assert!(matches!(within(ticket, "the rest").err().unwrap().error, TaskError::ShutDown));
        }
        leave.open();
        closer.join().unwrap();
    });
}

#[test]
fn cancel_ends_everything_promptly() {
    bounded(|| {
        let (orchestrator, work) = start(2);
        let runs = Arc::default();
        let (entered, leave) = (Gate::default(), Gate::default());
        let held: Vec<_> = (0..2)
            .map(|n| orchestrator.submit(&work, Task::new(Piece::new(n).held(&entered, &leave))).unwrap())
            .collect();
        entered.pass();
        let queued = many(&orchestrator, &work, &runs);
        let blocked = orchestrator.submit(&work, Task::new(Piece::new(3)).after([held[0].id()])).unwrap();
        let closer = std::thread::spawn(move || orchestrator.shutdown(Shutdown::Cancel));
        for ticket in held.into_iter().chain(queued).chain([blocked]) {
            let error = within(ticket, "a task at shutdown").err().unwrap().error;
            assert!(matches!(error.first_cause(), TaskError::ShutDown), "{error}");
        }
        leave.open();
        closer.join().unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn dropping_the_orchestrator_resolves_every_ticket() {
    bounded(|| {
        for _ in 0..20 {
            let (orchestrator, work) = start(2);
            let runs = Arc::default();
            let tickets = many(&orchestrator, &work, &runs);
            drop(orchestrator);
            let mut done = 0;
            for (n, ticket) in (0..).zip(tickets) {
                assert!(!ticket.cancel(), "it has ended");
                match within(ticket, "a task of a dropped orchestrator") {
                    Ok(result) => {
                        assert_eq!(result.output.value, n);
                        done += 1;
                    }
                    Err(failed) => assert!(matches!(failed.error, TaskError::ShutDown), "{failed}"),
                }
            }
            assert!(runs.load(Ordering::SeqCst) >= done);
        }
    });
}

/// Tasks that never listen and never end are left behind, all of them together and not one after the other.
#[test]
fn stuck_tasks_do_not_hang_shutdown() {
    bounded(|| {
        const STUCK: usize = 4;
        let (orchestrator, work) = start(STUCK);
        let leave = Gate::default();
        let entered: Vec<Gate> = (0..STUCK).map(|_| Gate::default()).collect();
        let tickets: Vec<_> = entered
            .iter()
            .map(|entered| orchestrator.submit(&work, Task::new(Piece::new(1).held(entered, &leave))).unwrap())
            .collect();
        entered.iter().for_each(Gate::pass);
        let began = Instant::now();
        orchestrator.shutdown(Shutdown::Cancel);
        let took = began.elapsed();
        assert!(took < Duration::from_secs(15), "{STUCK} stuck tasks held shutdown for {took:?}");
        for ticket in tickets {
            assert!(matches!(within(ticket, "a stuck task").err().unwrap().error, TaskError::ShutDown));
        }
        leave.open();
    });
}

/// Once an orchestrator is gone, nothing warm is held any longer: not by a ticket, an inbox or a lease.
#[test]
fn a_ticket_keeps_no_session_open() {
    bounded(|| {
        let (orchestrator, work) = start(1);
        let closed = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&closed);
        let piece = Piece::new(1).session_drop(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let ticket = orchestrator.submit(&work, Task::new(piece)).unwrap();
        eventually("it has run", || orchestrator.unsettled() == 0);
        orchestrator.shutdown(Shutdown::Drain(PATIENCE));
        assert_eq!(closed.load(Ordering::SeqCst), 1, "its session was closed with the orchestrator");
        assert_eq!(within(ticket, "the result").unwrap().output.value, 1);
    });
}

#[test]
fn an_idle_orchestrator_closes_at_once() {
    bounded(|| {
        for _ in 0..20 {
            let (orchestrator, _work) = start(3);
            let began = Instant::now();
            orchestrator.shutdown(Shutdown::Drain(Duration::from_secs(100)));
            assert!(began.elapsed() < Duration::from_secs(5));
        }
    });
}

/// An inbox and a `run_all` live on when their orchestrator goes: whoever waits in one is told, however long it would.
#[test]
fn whoever_waits_for_queue_space_is_told() {
    bounded(|| {
        let builder = Orchestrator::builder().cpu(1).queue_limit(1).submit_wait_max(Duration::MAX);
        let orchestrator = builder.build();
        let work = orchestrator.register(Scripted::default());
        let (entered, leave) = (Gate::default(), Gate::default());
        let held = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let mut inbox = orchestrator.inbox(&work);
        let results = orchestrator.run_all(&work, (0..3).map(|n| Task::new(Piece::new(n))));
        let (waits, waiting) = std::sync::mpsc::channel();
        let told = waits.clone();
        let submitter = std::thread::spawn(move || {
            waits.send(()).unwrap();
            inbox.submit(Task::new(Piece::new(2))).err().map(|refused| refused.reason)
        });
        let caller = std::thread::spawn(move || {
            told.send(()).unwrap();
            results.map(|result| result.err().map(|failed| failed.error)).collect::<Vec<_>>()
        });
        (0..2).for_each(|_| waiting.recv().unwrap());
        let closer = std::thread::spawn(move || orchestrator.shutdown(Shutdown::Cancel));
        assert_eq!(submitter.join().unwrap(), Some(plimsoll_core::SubmitErrorKind::ShuttingDown));
        let ended = caller.join().unwrap();
        assert!(!ended.is_empty() && ended.iter().all(|error| matches!(error, Some(TaskError::ShutDown))), "{ended:?}");
        leave.open();
        assert!(within(held, "the one that ran").is_err());
        closer.join().unwrap();
    });
}
