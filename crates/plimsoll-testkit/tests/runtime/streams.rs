//! Work handed in and taken out by futures: nothing blocks a thread of the executor, and nothing is polled in vain.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use plimsoll_core::TaskError;
use plimsoll_runtime::{Orchestrator, Pipeline, Registered, Shutdown, Task};

use crate::bounded::{Gate, bounded};
use crate::scripted::{Piece, Scripted};

fn start(queue: usize) -> (Orchestrator, Registered<Scripted>) {
    let orchestrator =
        Orchestrator::builder().cpu(1).queue_limit(queue).submit_wait_max(Duration::from_secs(60)).build();
    let work = orchestrator.register(Scripted::default());
    (orchestrator, work)
}

/// An executor with a single thread: who blocks it blocks everything.
fn on_tokio<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

#[test]
fn a_full_queue_keeps_no_other_future_waiting() {
    bounded(|| {
        let (orchestrator, work) = start(1);
        on_tokio(async {
            let (entered, leave) = (Gate::default(), Gate::default());
            let held = Task::new(Piece::new(1).held(&entered, &leave));
            let first = orchestrator.submit_async(&work, held).await.unwrap();
            entered.pass();
            // The queue is full until somebody on this very thread opens the gate.
            let second = async { orchestrator.submit_async(&work, Task::new(Piece::new(2))).await.unwrap().await };
            let (second, ()) = futures_util::join!(second, async { leave.open() });
            assert_eq!(second.unwrap().output.value, 2);
            assert_eq!(first.await.unwrap().output.value, 1);
        });
    });
}

#[test]
fn futures_get_queue_space_in_the_order_in_which_they_came_and_one_that_leaves_passes_it_on() {
    bounded(|| {
        let (orchestrator, work) = start(1);
        on_tokio(async {
            let (entered, leave) = (Gate::default(), Gate::default());
            let first = orchestrator.submit(&work, Task::new(Piece::new(0).held(&entered, &leave))).unwrap();
            entered.pass();
            let mut waiting: Vec<_> =
                (1..=3).map(|n| Box::pin(orchestrator.submit_async(&work, Task::new(Piece::new(n))))).collect();
            for future in &mut waiting {
                assert!(futures_util::poll!(future).is_pending());
            }
            // The one whose turn it is gives up.
            drop(waiting.remove(0));
            leave.open();
            first.await.unwrap();
            for (future, n) in waiting.into_iter().zip(2..) {
                assert_eq!(future.await.unwrap().await.unwrap().output.value, n);
            }
        });
    });
}

#[test]
fn a_future_that_waits_for_queue_space_hears_of_the_end() {
    bounded(|| {
        let (orchestrator, work) = start(1);
        let (entered, leave) = (Gate::default(), Gate::default());
        let _first = orchestrator.submit(&work, Task::new(Piece::new(0).held(&entered, &leave))).unwrap();
        entered.pass();
        on_tokio(async move {
            let mut waiting = pin!(orchestrator.submit_async(&work, Task::new(Piece::new(1))));
            assert!(futures_util::poll!(&mut waiting).is_pending());
            leave.open();
            orchestrator.shutdown(Shutdown::Cancel);
            match waiting.await {
                Ok(ticket) => assert!(ticket.await.is_err()),
                Err(refused) => assert!(format!("{refused}").contains("shut"), "{refused}"),
            }
        });
    });
}

/// Counts how often a stream was polled.
struct Counting<'a, S>(S, &'a AtomicUsize);

impl<S: Stream + Unpin> Stream for Counting<'_, S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.poll_next_unpin(context)
    }
}

#[test]
fn run_all_is_a_stream_under_tokio_and_smol_and_is_polled_only_when_there_is_something() {
    bounded(|| {
        let (orchestrator, work) = start(64);
        let inputs = || (0..500).map(|n| Task::new(Piece::new(n)));
        let polls = AtomicUsize::new(0);
        let all = async || {
            let results = Counting(orchestrator.run_all(&work, inputs()).stream(), &polls);
            results.map(|done| done.unwrap()).map(|done| (done.index, done.output.value)).collect::<Vec<_>>().await
        };
        for mut values in [on_tokio(all()), smol::block_on(all())] {
            values.sort_unstable();
            assert_eq!(values, (0..500).map(|n| (n, n)).collect::<Vec<_>>(), "each result names its input");
        }
        let polls = polls.into_inner();
        assert!(polls <= 2 * 2 * 502, "{polls} polls of 1,000 results");
        let ordered = orchestrator.run_all(&work, inputs()).ordered().stream();
        let values = smol::block_on(ordered.map(|done| done.unwrap().output.value).collect::<Vec<_>>());
        assert_eq!(values, (0..500).collect::<Vec<_>>());
    });
}

#[test]
fn run_all_as_a_stream_waits_for_queue_space_that_others_have() {
    bounded(|| {
        let (orchestrator, work) = start(1);
        on_tokio(async {
            let (entered, leave) = (Gate::default(), Gate::default());
            let other = orchestrator.submit(&work, Task::new(Piece::new(0).held(&entered, &leave))).unwrap();
            entered.pass();
            let mut results = orchestrator.run_all(&work, (1..=3).map(|n| Task::new(Piece::new(n)))).stream();
            assert!(futures_util::poll!(results.next()).is_pending());
            leave.open();
            let values: Vec<u64> = results.map(|done| done.unwrap().output.value).collect().await;
            assert_eq!(values, [1, 2, 3]);
            other.await.unwrap();
        });
    });
}

#[test]
fn an_inbox_and_a_flow_are_streams_that_end_when_nothing_is_outstanding() {
    bounded(|| {
        let (orchestrator, work) = start(64);
        let mut inbox = orchestrator.inbox(&work);
        for n in 0..20 {
            inbox.submit(Task::new(Piece::new(n))).unwrap();
        }
        let sum = async |results: &mut (dyn Stream<Item = u64> + Unpin)| results.fold(0, async |a, b| a + b).await;
        assert_eq!(on_tokio(sum(&mut (&mut inbox).map(|done| done.unwrap().output.value))), 190);
        assert_eq!(inbox.outstanding(), 0);
        let mut flow =
            orchestrator.flow(&Pipeline::of(&work).then(&work, |answer| Task::new(Piece::new(answer.value))));
        for n in 0..20 {
            flow.submit(Task::new(Piece::new(n))).unwrap();
        }
        assert_eq!(smol::block_on(sum(&mut (&mut flow).map(|each| each.result.unwrap().output.value))), 190);
    });
}

#[test]
fn a_dropped_stream_cancels_what_has_not_begun() {
    bounded(|| {
        let (orchestrator, work) = start(64);
        let (entered, leave) = (Gate::default(), Gate::default());
        let first = Piece::new(0).held(&entered, &leave);
        let begun = std::sync::Arc::new(AtomicUsize::new(0));
        let count = |n| {
            let begun = std::sync::Arc::clone(&begun);
            Piece::new(n).on_run(move |_, _| {
                begun.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        };
        let tasks = std::iter::once(first).chain((1..30).map(count)).map(Task::new);
        let mut results = orchestrator.run_all(&work, tasks).stream();
        on_tokio(async { assert!(futures_util::poll!(results.next()).is_pending()) });
        entered.pass();
        drop(results);
        leave.open();
        orchestrator.shutdown(Shutdown::Drain(Duration::from_secs(60)));
        assert_eq!(begun.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn a_stream_inside_a_task_of_its_own_orchestrator_is_told_instead_of_hanging() {
    bounded(|| {
        let orchestrator = std::sync::Arc::new(Orchestrator::builder().cpu(1).build());
        let work = orchestrator.register(Scripted::default());
        let (inner, inside) = (std::sync::Arc::downgrade(&orchestrator), work.clone());
        let nested = Piece::new(1).on_run(move |_, _| {
            let orchestrator = inner.upgrade().expect("it runs this");
            let results = orchestrator.run_all(&inside, (0..3).map(|n| Task::new(Piece::new(n)))).stream();
            let ended: Vec<_> = smol::block_on(results.collect());
            assert!(
                ended.iter().any(|end| matches!(end, Err(failure) if matches!(failure.error, TaskError::NestedWait)))
            );
            Ok(())
        });
        assert_eq!(orchestrator.run(&work, Task::new(nested)).unwrap().output.value, 1);
    });
}
