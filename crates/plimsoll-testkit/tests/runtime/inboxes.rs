//! Inboxes and `run_all`: results that nobody takes are bounded, and whoever drops one wants nothing more of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::{SubmitErrorKind, TaskError};
use plimsoll_runtime::{Orchestrator, Registered, Task};

use crate::bounded::{Gate, PATIENCE, bounded, eventually, within};
use crate::scripted::{OnDrop, Piece, Scripted};

/// Results that are somewhere.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicUsize>);

impl Alive {
    /// A piece whose result counts from when it is made until it is dropped.
    fn piece(&self, value: u64) -> Piece {
        let (made, gone) = (Arc::clone(&self.0), Arc::clone(&self.0));
        let piece = Piece::new(value).on_run(move |_, _| {
            made.fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
        piece.output_drop(move || {
            gone.fetch_sub(1, Ordering::SeqCst);
        })
    }

    fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn one_worker(queue_limit: usize) -> (Orchestrator, Registered<Scripted>) {
    let orchestrator =
        Orchestrator::builder().cpu(1).queue_limit(queue_limit).submit_wait_max(Duration::from_secs(2)).build();
    let work = orchestrator.register(Scripted::default());
    (orchestrator, work)
}

#[test]
fn results_that_nobody_takes_are_bounded() {
    bounded(|| {
        const LIMIT: usize = 8;
        let (orchestrator, work) = one_worker(LIMIT);
        let alive = Alive::default();
        let mut inbox = orchestrator.inbox(&work);
        let mut most = 0;
        let refused = (0..20_000).find_map(|n| {
            let refused = inbox.submit(Task::new(alive.piece(n))).err();
            most = most.max(alive.now());
            refused
        });
        assert!(most <= 2 * LIMIT, "{most} results lie in the inbox at once; the queue's limit is {LIMIT}");
        let refused = refused.expect("it is full at last");
        assert_eq!(refused.reason, SubmitErrorKind::InboxFull { limit: 2 * LIMIT });
        let text = refused.reason.to_string();
        assert!(text.contains("take results out, then submit again"), "{text}");
        let again = inbox.try_submit(*refused.task).expect_err("still full");
        eventually("all have arrived", || alive.now() == 2 * LIMIT);
        assert!(inbox.poll_any_blocking(PATIENCE).is_some());
        inbox.submit(*again.task).expect("there is room for one");
        let taken = std::iter::from_fn(|| inbox.poll_any_blocking(PATIENCE)).count();
        assert_eq!((taken, inbox.outstanding(), alive.now()), (2 * LIMIT, 0, 0));
    });
}

/// Only the caller can make room in its inbox, so that waiting for it would be waiting for oneself.
#[test]
fn a_full_inbox_refuses_at_once() {
    bounded(|| {
        let orchestrator =
            Orchestrator::builder().cpu(1).inbox_limit(1).submit_wait_max(Duration::from_secs(3600)).build();
        let work = orchestrator.register(Scripted::default());
        let mut inbox = orchestrator.inbox(&work);
        let refused = (0..).find_map(|n| inbox.submit(Task::new(Piece::new(n))).err()).expect("it is full at last");
        assert_eq!(refused.reason, SubmitErrorKind::InboxFull { limit: 1 });
        while inbox.poll_any_blocking(PATIENCE).is_some() {}
        inbox.submit(*refused.task).unwrap();
        assert!(inbox.poll_any_blocking(PATIENCE).is_some());
    });
}

/// Who takes out what is there before each submit is never refused, however small the queue and slow the work.
#[test]
fn who_takes_results_out_is_never_refused() {
    bounded(|| {
        for queue_limit in [1, 2, 5] {
            let (orchestrator, work) = one_worker(queue_limit);
            let (alive, mut inbox) = (Alive::default(), orchestrator.inbox(&work));
            let mut sum = 0;
            for n in 0..2_000 {
                inbox.submit(Task::new(alive.piece(n))).unwrap();
                while let Some(result) = inbox.poll_any() {
                    sum += result.unwrap().output.value;
                }
            }
            while let Some(result) = inbox.poll_any_blocking(PATIENCE) {
                sum += result.unwrap().output.value;
            }
            assert_eq!((sum, alive.now()), (1_999 * 1_000, 0));
        }
    });
}

#[test]
fn run_all_holds_no_more_results_than_its_window() {
    bounded(|| {
        for ordered in [false, true] {
            const WINDOW: usize = 16;
            let orchestrator = Orchestrator::builder().cpu(2).window(WINDOW).inbox_limit(1).build();
            let work = orchestrator.register(Scripted::default());
            let alive = Alive::default();
            let mut most = 0;
            let tasks = (0..20_000).map(|n| Task::new(alive.piece(n)));
            let results = orchestrator.run_all(&work, tasks);
            let mut sum = 0;
            let mut see = |value: u64| {
                most = most.max(alive.now());
                sum += value;
            };
            match ordered {
                true => results.ordered().for_each(|done| see(done.unwrap().output.value)),
                false => results.for_each(|done| see(done.unwrap().output.value)),
            }
            assert_eq!(sum, 19_999 * 10_000);
            assert!(most <= WINDOW + 1, "{most} results at once");
            assert_eq!(alive.now(), 0);
        }
    });
}

/// Which of them is dropped in the middle.
#[derive(Copy, Clone, Debug, PartialEq)]
enum What {
    RunAll,
    Ordered,
    Inbox,
}

#[test]
fn what_is_dropped_runs_no_more() {
    for what in [What::RunAll, What::Ordered, What::Inbox] {
        bounded(move || {
            let orchestrator = Orchestrator::builder().cpu(1).build();
            let work = orchestrator.register(Scripted::default());
            let (runs, inputs) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let stopped = Gate::default();
            let made = Arc::clone(&inputs);
            let task = |n: u64| {
                let (ran, listens, inputs) = (Arc::clone(&runs), stopped.clone(), Arc::clone(&made));
                inputs.fetch_add(1, Ordering::SeqCst);
                let baggage = OnDrop::new(move || {
                    inputs.fetch_sub(1, Ordering::SeqCst);
                });
                Task::new(Piece::new(n).baggage(baggage).on_run(move |_, context| {
                    ran.fetch_add(1, Ordering::SeqCst);
                    if n == 0 {
                        return Ok(());
                    }
                    // Runs until it is told to stop.
                    let until = Instant::now() + PATIENCE;
                    while context.check_cancelled().is_ok() && Instant::now() < until {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    listens.open();
                    context.check_cancelled()
                }))
            };
            let second_runs = || eventually("the second runs", || runs.load(Ordering::SeqCst) == 2);
            match what {
                What::RunAll => {
                    let mut results = orchestrator.run_all(&work, (0..5_000).map(task));
                    results.next().unwrap().unwrap();
                    second_runs();
                }
                What::Ordered => {
                    let mut results = orchestrator.run_all(&work, (0..5_000).map(task)).ordered();
                    results.next().unwrap().unwrap();
                    second_runs();
                }
                What::Inbox => {
                    let mut inbox = orchestrator.inbox(&work);
                    for n in 0..1_000 {
                        inbox.submit(task(n)).unwrap();
                    }
                    assert!(inbox.poll_any_blocking(PATIENCE).is_some());
                    second_runs();
                }
            }
            assert_eq!(orchestrator.unsettled(), 0, "{what:?}: all has ended with it");
            stopped.pass();
            eventually("every input is gone", || inputs.load(Ordering::SeqCst) == 0);
            assert_eq!(runs.load(Ordering::SeqCst), 2, "{what:?}: nothing was started after it was dropped");
            let next = orchestrator.submit(&work, Task::new(Piece::new(7))).unwrap();
            assert_eq!(within(next, "the next caller's task").unwrap().output.value, 7);
        });
    }
}

/// Another caller's tasks are left alone, those of the same workload too.
#[test]
fn only_its_own_tasks_end_with_an_inbox() {
    bounded(|| {
        let (orchestrator, work) = one_worker(100);
        let (entered, leave) = (Gate::default(), Gate::default());
        let held = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let (mut mine, mut dropped) = (orchestrator.inbox(&work), orchestrator.inbox(&work));
        let mut ids = Vec::new();
        for n in 0..10 {
            mine.submit(Task::new(Piece::new(n))).unwrap();
            ids.push(dropped.submit(Task::new(Piece::new(100 + n))).unwrap());
        }
        let follows = orchestrator.submit(&work, Task::new(Piece::new(5)).after([ids[0]])).unwrap();
        drop(dropped);
        assert_eq!(orchestrator.unsettled(), 11, "the one that runs and ten of the other inbox");
        let failed = within(follows, "what had to come after").err().expect("its predecessor was cancelled");
        assert!(matches!(failed.error.first_cause(), TaskError::Cancelled), "{failed}");
        leave.open();
        within(held, "the first").unwrap();
        let values = std::iter::from_fn(|| mine.poll_any_blocking(PATIENCE)).map(|done| done.unwrap().output.value);
        assert_eq!(values.sum::<u64>(), 45);
    });
}

/// Results whose own drop panics, in every place where they can lie when their owner goes.
#[test]
fn results_that_panic_when_they_go_cost_nobody_anything() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(2).window(32).build();
        let work = orchestrator.register(Scripted::default());
        let drops = Arc::new(AtomicUsize::new(0));
        let task = |n: u64| {
            let gone = Arc::clone(&drops);
            Task::new(Piece::new(n).output_drop(move || {
                gone.fetch_add(1, Ordering::SeqCst);
                panic!("a result panics when it goes");
            }))
        };
        let mut inbox = orchestrator.inbox(&work);
        for n in 0..20 {
            inbox.submit(task(n)).unwrap();
        }
        eventually("all are done", || orchestrator.unsettled() == 0);
        drop(inbox);
        assert_eq!(drops.load(Ordering::SeqCst), 20, "each was dropped, none twice");
        let mut results = orchestrator.run_all(&work, (0..100).map(task));
        std::mem::forget(results.next().unwrap().ok().map(|done| done.output));
        drop(results);
        let mut results = orchestrator.run_all(&work, (0..100).map(task)).ordered();
        std::mem::forget(results.next().unwrap().ok().map(|done| done.output));
        drop(results);
        let next = orchestrator.submit(&work, Task::new(Piece::new(7))).unwrap();
        assert_eq!(within(next, "the next caller's task").unwrap().output.value, 7);
    });
}

/// Dropped at any moment while results pour in: nothing hangs, nothing is left.
#[test]
fn a_storm_of_dropped_inboxes() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(2).queue_limit(64).build();
        let work = orchestrator.register(Scripted::default());
        let alive = Alive::default();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (orchestrator, work, alive) = (&orchestrator, &work, &alive);
                scope.spawn(move || {
                    for round in 0..100_u64 {
                        let take = ((round * 7 + thread * 3) % 23) as usize;
                        let tasks = || (0..40).map(|n| Task::new(alive.piece(n)));
                        match round % 3 {
                            0 => drop(orchestrator.run_all(work, tasks()).take(take).count()),
                            1 => drop(orchestrator.run_all(work, tasks()).ordered().take(take).count()),
                            _ => {
                                let mut inbox = orchestrator.inbox(work);
                                for task in tasks() {
                                    inbox.submit(task).unwrap();
                                    if inbox.outstanding() > take {
                                        break;
                                    }
                                }
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(orchestrator.unsettled(), 0);
        eventually("every result is gone", || alive.now() == 0);
    });
}
