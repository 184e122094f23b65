//! Tickets as futures, on any runtime.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use plimsoll_core::TaskError;
use plimsoll_runtime::{Orchestrator, Registered, Task};

use crate::bounded::{Gate, PATIENCE, bounded, eventually};
use crate::scripted::{Piece, Scripted};

fn start() -> (Orchestrator, Registered<Scripted>) {
    let orchestrator = Orchestrator::builder().cpu(2).build();
    let work = orchestrator.register(Scripted::default());
    (orchestrator, work)
}

#[test]
fn from_tokio() {
    bounded(|| {
        let (orchestrator, work) = start();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let sum = runtime.block_on(async {
            let spawned: Vec<_> = (0..300)
                .map(|n| {
                    let ticket = orchestrator.submit(&work, Task::new(Piece::new(n))).unwrap();
                    tokio::spawn(async move { tokio::time::timeout(PATIENCE, ticket).await.expect("it comes") })
                })
                .collect();
            let mut sum = 0;
            for task in spawned {
                sum += task.await.unwrap().unwrap().output.value;
            }
            sum
        });
        assert_eq!(sum, (0..300).sum::<u64>());
        let (entered, leave) = (Gate::default(), Gate::default());
        let ticket = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        assert!(ticket.cancel());
        let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, ticket).await.expect("it comes") });
        assert!(matches!(ended.err().unwrap().error, TaskError::Cancelled));
        leave.open();
    });
}

struct Unpark {
    thread: std::thread::Thread,
    wakes: AtomicUsize,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn waker() -> (Arc<Unpark>, Waker) {
    let unpark = Arc::new(Unpark { thread: std::thread::current(), wakes: AtomicUsize::new(0) });
    (Arc::clone(&unpark), Waker::from(unpark))
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let (_, waker) = waker();
    let until = Instant::now() + PATIENCE;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let left = until.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "nobody woke the future within {PATIENCE:?}");
        std::thread::park_timeout(left);
    }
}

#[test]
fn from_a_hand_made_executor() {
    bounded(|| {
        let (orchestrator, work) = start();
        for n in 0..300 {
            let ticket = orchestrator.submit(&work, Task::new(Piece::new(n))).unwrap();
            assert_eq!(block_on(ticket).unwrap().output.value, n);
        }
    });
}

#[test]
fn a_waker_that_was_replaced_is_not_woken() {
    bounded(|| {
        let (orchestrator, work) = start();
        let (entered, leave) = (Gate::default(), Gate::default());
        let ticket = orchestrator.submit(&work, Task::new(Piece::new(4).held(&entered, &leave))).unwrap();
        entered.pass();
        let mut ticket = Box::pin(ticket);
        let ((old, old_waker), (new, new_waker)) = (waker(), waker());
        for waker in [&old_waker, &old_waker, &new_waker] {
            let polled: Poll<_> = Pin::new(&mut ticket).poll(&mut Context::from_waker(waker));
            assert!(polled.is_pending());
        }
        leave.open();
        eventually("the new waker is woken", || new.wakes.load(Ordering::SeqCst) == 1);
        assert_eq!(old.wakes.load(Ordering::SeqCst), 0);
        let Poll::Ready(result) = ticket.as_mut().poll(&mut Context::from_waker(&new_waker)) else {
            panic!("woken without a result")
        };
        assert_eq!(result.unwrap().output.value, 4);
    });
}

/// A waker is the caller's code: if it panics, that costs nobody else a result.
#[test]
fn a_waker_may_panic() {
    struct Falls;
    impl Wake for Falls {
        fn wake(self: Arc<Self>) {
            panic!("the waker fell over");
        }
    }
    bounded(|| {
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        let (entered, leave) = (Gate::default(), Gate::default());
        let bad = orchestrator.submit(&work, Task::new(Piece::new(1).held(&entered, &leave))).unwrap();
        entered.pass();
        let mut bad = Box::pin(bad);
        assert!(bad.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::new(Falls)))).is_pending());
        let good: Vec<_> = (0..10).map(|n| orchestrator.submit(&work, Task::new(Piece::new(n))).unwrap()).collect();
        leave.open();
        for (n, ticket) in (0..).zip(good) {
            assert_eq!(block_on(ticket).unwrap().output.value, n);
        }
        assert_eq!(block_on(bad).unwrap().output.value, 1);
    });
}
