//! `run_all`: each caller gets its own results, all of them, lazily, in either order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_core::{Fault, TaskError};
use plimsoll_runtime::{Orchestrator, Task};

use crate::bounded::{Gate, bounded, eventually};
use crate::scripted::{Piece, Scripted};

#[test]
fn several_callers_each_get_exactly_their_own() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(3).queue_limit(64).window(32).build();
        let work = orchestrator.register(Scripted::default());
        std::thread::scope(|scope| {
            for caller in 0..6_u64 {
                let (orchestrator, work) = (&orchestrator, &work);
                scope.spawn(move || {
                    let values = caller * 10_000..caller * 10_000 + 700;
                    let tasks = values.clone().map(|value| {
                        let piece = Piece::new(value);
                        let fails = value % 50 == 3;
                        Task::new(if fails { piece.on_run(|_, _| Err(Fault::work("odd"))) } else { piece })
                    });
                    let wanted: Vec<Option<u64>> = values.map(|value| (value % 50 != 3).then_some(value)).collect();
                    let results = orchestrator.run_all(work, tasks);
                    if caller % 2 == 0 {
                        let got: Vec<_> = results.ordered().map(|r| r.ok().map(|done| done.output.value)).collect();
                        assert_eq!(got, wanted);
                    } else {
                        let got: Vec<_> = results.map(|r| r.ok().map(|done| done.output.value)).collect();
                        assert_eq!(got.len(), wanted.len());
                        assert_eq!(got.iter().collect::<BTreeSet<_>>(), wanted.iter().collect::<BTreeSet<_>>());
                    }
                });
            }
        });
        assert_eq!(orchestrator.unsettled(), 0);
    });
}

#[test]
fn the_iterator_is_not_pulled_beyond_the_window() {
    for ordered in [false, true] {
        bounded(move || {
            const WINDOW: usize = 8;
            let orchestrator = Orchestrator::builder().cpu(2).window(WINDOW).build();
            let work = orchestrator.register(Scripted::default());
            let pulled = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&pulled);
            let tasks = (0..).map(move |n| {
                count.fetch_add(1, Ordering::SeqCst);
                Task::new(Piece::new(n))
            });
            let results = orchestrator.run_all(&work, tasks);
            assert_eq!(pulled.load(Ordering::SeqCst), 0, "nothing runs before results are asked for");
            let mut results: Box<dyn Iterator<Item = _>> =
                if ordered { Box::new(results.ordered()) } else { Box::new(results) };
            for taken in 1..=500 {
                results.next().expect("it is endless").unwrap();
                let ahead = pulled.load(Ordering::SeqCst) - taken;
                assert!(ahead < WINDOW, "{ahead} pulled beyond the {taken} taken out");
            }
        });
    }
}

#[test]
fn results_held_back_for_their_turn_are_bounded() {
    bounded(|| {
        const WINDOW: usize = 6;
        let orchestrator = Arc::new(Orchestrator::builder().cpu(2).window(WINDOW).build());
        let work = orchestrator.register(Scripted::default());
        let (entered, leave) = (Gate::default(), Gate::default());
        let pulled = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&pulled);
        let first = (entered.clone(), leave.clone());
        let tasks = (0..100).map(move |n| {
            count.fetch_add(1, Ordering::SeqCst);
            let piece = Piece::new(n);
            Task::new(if n == 0 { piece.held(&first.0, &first.1) } else { piece })
        });
        let there = Arc::clone(&orchestrator);
        let caller = std::thread::spawn(move || {
            let results = there.run_all(&work, tasks).ordered();
            results.map(|done| done.unwrap().output.value).collect::<Vec<_>>()
        });
        entered.pass();
        eventually("only the first is under way", || {
            pulled.load(Ordering::SeqCst) == WINDOW && orchestrator.unsettled() == 1
        });
        assert_eq!(pulled.load(Ordering::SeqCst), WINDOW, "the rest waits for the first");
        leave.open();
        assert_eq!(caller.join().unwrap(), (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn a_batch_that_is_dropped_half_way_leaves_nothing_behind() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(2).window(64).build();
        let work = orchestrator.register(Scripted::default());
        for _ in 0..20 {
            let mut results = orchestrator.run_all(&work, (0..).map(|n| Task::new(Piece::new(n))));
            for _ in 0..5 {
                results.next().unwrap().unwrap();
            }
        }
        eventually("what was under way ends", || orchestrator.unsettled() == 0);
        let sum: u64 = orchestrator
            .run_all(&work, (0..100).map(|n| Task::new(Piece::new(n))))
            .map(|d| d.unwrap().output.value)
            .sum();
        assert_eq!(sum, 4950);
    });
}

#[test]
fn an_empty_batch_ends_at_once() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        assert!(orchestrator.run_all(&work, std::iter::empty()).next().is_none());
        assert!(orchestrator.run_all(&work, std::iter::empty()).ordered().next().is_none());
        let mut inbox = orchestrator.inbox(&work);
        assert!(inbox.poll_any().is_none());
        assert!(inbox.poll_any_blocking(std::time::Duration::MAX).is_none(), "nothing to wait for");
    });
}

#[test]
fn a_batch_survives_the_end_of_its_orchestrator() {
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).window(4).build();
        let work = orchestrator.register(Scripted::default());
        let (entered, leave) = (Gate::default(), Gate::default());
        let mut results = orchestrator.run_all(&work, (0..10).map(|n| Task::new(Piece::new(n)))).ordered();
        assert_eq!(results.next().unwrap().unwrap().output.value, 0);
        let mut inbox = orchestrator.inbox(&work);
        inbox.submit(Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        inbox.submit(Task::new(Piece::new(2))).unwrap();
        leave.open();
        drop(orchestrator);
        let rest: Vec<_> = results.collect();
        assert!(rest.iter().all(|result| match result {
            Ok(_) => true,
            Err(failed) => matches!(failed.error, TaskError::ShutDown),
        }));
        assert!(rest.len() >= 3, "what was pulled ends one way or the other");
        let mut ended = 0;
        while inbox.poll_any_blocking(crate::bounded::PATIENCE).is_some() {
            ended += 1;
        }
        assert_eq!((ended, inbox.outstanding()), (2, 0));
        let refused = inbox.submit(Task::new(Piece::new(3))).expect_err("the orchestrator is gone");
        assert_eq!(refused.reason, plimsoll_core::SubmitErrorKind::ShuttingDown);
    });
}
