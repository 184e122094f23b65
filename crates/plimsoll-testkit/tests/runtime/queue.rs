//! A full queue refuses and gives the task back; nothing is lost, and the limit holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::{Fault, SubmitErrorKind};
use plimsoll_runtime::{Orchestrator, Registered, Task};

use crate::bounded::{Gate, PATIENCE, bounded, eventually, within};
use crate::scripted::{OnDrop, Piece, Scripted};

fn small_queue(limit: usize, wait: Duration) -> (Arc<Orchestrator>, Registered<Scripted>) {
    let orchestrator = Orchestrator::builder().cpu(1).queue_limit(limit).submit_wait_max(wait).build();
    let work = orchestrator.register(Scripted::default());
    (Arc::new(orchestrator), work)
}

#[test]
fn the_very_task_comes_back() {
    bounded(|| {
        let (orchestrator, work) = small_queue(2, Duration::from_millis(20));
        let (entered, leave) = (Gate::default(), Gate::default());
        let held = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let queued = orchestrator.submit(&work, Task::new(Piece::new(2))).unwrap();
        let dropped = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&dropped);
        let baggage = OnDrop::new(move || seen.store(true, Ordering::SeqCst));
        let runs = Arc::new(AtomicU64::new(0));
        let ran = Arc::clone(&runs);
        let piece = Piece::new(3).baggage(baggage).on_run(move |_, _| {
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        let refused = orchestrator.try_submit(&work, Task::new(piece)).expect_err("the queue is full");
        assert_eq!(refused.reason, SubmitErrorKind::QueueFull { limit: 2 });
        let refused = orchestrator.submit(&work, *refused.task).expect_err("still full after a short wait");
        let mut inbox = orchestrator.inbox(&work);
        let refused = inbox.try_submit(*refused.task).expect_err("still full for an inbox");
        let refused = inbox.submit(*refused.task).expect_err("an inbox waits no longer");
        assert_eq!(inbox.outstanding(), 0);
        assert!(!dropped.load(Ordering::SeqCst), "the input is intact");
        leave.open();
        assert_eq!(within(held, "the first").unwrap().output.value, 1);
        assert_eq!(within(queued, "the second").unwrap().output.value, 2);
        let third = orchestrator.submit(&work, *refused.task).unwrap();
        assert_eq!(within(third, "the third").unwrap().output.value, 3);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn submit_waits_for_room() {
    bounded(|| {
        let (orchestrator, work) = small_queue(1, PATIENCE);
        let (entered, leave) = (Gate::default(), Gate::default());
        let held = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let (there, registered) = (Arc::clone(&orchestrator), work.clone());
        let waiter = std::thread::spawn(move || {
            let ticket = there.submit(&registered, Task::new(Piece::new(2))).expect("room comes in time");
            within(ticket, "the task that waited").unwrap().output.value
        });
        assert!(orchestrator.try_submit(&work, Task::new(Piece::new(9))).is_err());
        leave.open();
        assert_eq!(waiter.join().unwrap(), 2);
        within(held, "the first").unwrap();
    });
}

/// A cancelled task makes room just as a finished one does.
#[test]
fn cancelling_makes_room() {
    bounded(|| {
        let (orchestrator, work) = small_queue(2, PATIENCE);
        let (entered, leave) = (Gate::default(), Gate::default());
        let held = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let queued = orchestrator.submit(&work, Task::new(Piece::new(2))).unwrap();
        let (there, registered) = (Arc::clone(&orchestrator), work.clone());
        let waiter = std::thread::spawn(move || there.submit(&registered, Task::new(Piece::new(3))).map(|t| t.id()));
        assert!(queued.cancel());
        waiter.join().unwrap().expect("the cancelled task's place");
        leave.open();
        within(held, "the first").unwrap();
        eventually("all have ended", || orchestrator.unsettled() == 0);
    });
}

#[test]
fn many_threads_never_exceed_the_limit_and_nothing_is_lost() {
    bounded(|| {
        const LIMIT: usize = 8;
        let (orchestrator, work) = small_queue(LIMIT, PATIENCE);
        let runs = Arc::new(AtomicU64::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let sum: u64 = std::thread::scope(|scope| {
            let submitters: Vec<_> = (0..8_u64)
                .map(|thread| {
                    let (orchestrator, work, runs, over) = (&orchestrator, &work, &runs, &over);
                    scope.spawn(move || {
                        let mut tickets = Vec::new();
                        for n in 0..200 {
                            let ran = Arc::clone(runs);
                            let fails = n % 7 == 0;
                            let piece = Piece::new(thread * 1000 + n).on_run(move |_, _| {
                                ran.fetch_add(1, Ordering::SeqCst);
                                if fails { Err(Fault::work("odd")) } else { Ok(()) }
                            });
                            tickets.push((fails, orchestrator.submit(work, Task::new(piece)).expect("room comes")));
                            if orchestrator.unsettled() > LIMIT {
                                over.store(true, Ordering::SeqCst);
                            }
                        }
                        let mut sum = 0;
                        for (fails, ticket) in tickets {
                            match within(ticket, "a task of many") {
                                Ok(done) if !fails => sum += done.output.value,
                                Err(_) if fails => {}
                                _ => panic!("the wrong task failed"),
                            }
                        }
                        sum
                    })
                })
                .collect();
            submitters.into_iter().map(|submitter| submitter.join().unwrap()).sum()
        });
        let wanted: u64 =
            (0..8).flat_map(|thread| (0..200).filter(|n| n % 7 != 0).map(move |n| thread * 1000 + n)).sum();
        assert_eq!(sum, wanted);
        assert_eq!(runs.load(Ordering::SeqCst), 1600);
        assert!(!over.load(Ordering::SeqCst), "more tasks than the limit");
    });
}

/// No end of patience is patience, not none.
#[test]
fn whoever_waits_without_limit_waits() {
    bounded(|| {
        let (orchestrator, work) = small_queue(1, Duration::MAX);
        let (entered, leave) = (Gate::default(), Gate::default());
        let held = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let waiters: Vec<_> = (0..2)
            .map(|at| {
                let (there, registered) = (Arc::clone(&orchestrator), work.clone());
                std::thread::spawn(move || match at {
                    0 => {
                        let ticket = there.submit(&registered, Task::new(Piece::new(2))).expect("room comes");
                        ticket.wait().unwrap().output.value
                    }
                    _ => {
                        let mut inbox = there.inbox(&registered);
                        inbox.submit(Task::new(Piece::new(2))).expect("room comes");
                        inbox.poll_any_blocking(Duration::MAX).expect("it ends").unwrap().output.value
                    }
                })
            })
            .collect();
        assert!(orchestrator.try_submit(&work, Task::new(Piece::new(9))).is_err(), "trying never waits");
        leave.open();
        waiters.into_iter().for_each(|waiter| assert_eq!(waiter.join().unwrap(), 2));
        within(held, "the first").unwrap();
    });
}
