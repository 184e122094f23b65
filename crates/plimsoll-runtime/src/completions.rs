//! Where results wait for whoever asked for them, and for nobody else.
//! Never drops a completion; holds at most as many as its owner has tasks in the queue.
//! Invariant: a completion posted before or during a wait ends that wait (`tests::loom_a_completion_ends_the_wait`).

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex, lock};

pub(crate) struct CompletionQueue<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

struct State<T> {
    completions: VecDeque<T>,
    waiting: usize,
    waker: Option<Waker>,
}

impl<T> CompletionQueue<T> {
    pub(crate) fn new() -> Self {
        let state = State { completions: VecDeque::new(), waiting: 0, waker: None };
        Self { state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Puts a completion in. If another follows at once, only the last of them wakes whoever waits.
    pub(crate) fn post(&self, completion: T, another_follows: bool) {
        let mut state = lock(&self.state);
        state.completions.push_back(completion);
        if another_follows {
            return;
        }
        let waker = state.waker.take();
        let someone_waits = state.waiting > 0;
        drop(state);
        if someone_waits {
            self.arrived.notify_all();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn take(&self) -> Option<T> {
        lock(&self.state).completions.pop_front()
    }

    /// Takes everything that is there into `out`.
    pub(crate) fn take_all(&self, out: &mut VecDeque<T>) {
        out.append(&mut lock(&self.state).completions);
    }

    /// Waits for a completion until the deadline.
    pub(crate) fn wait_until(&self, deadline: Option<Instant>) -> Option<T> {
        let mut state = lock(&self.state);
        loop {
            if let Some(completion) = state.completions.pop_front() {
                return Some(completion);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return None;
            }
            state.waiting += 1;
            state = match left {
                Some(left) => self.arrived.wait_timeout(state, left).map_or_else(|gone| gone.into_inner().0, |ok| ok.0),
                None => self.arrived.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner),
            };
            state.waiting -= 1;
        }
    }

    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<T> {
        let mut state = lock(&self.state);
        match state.completions.pop_front() {
            Some(completion) => Poll::Ready(completion),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(all(test, loom))]
mod tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    #[test]
    fn loom_a_completion_ends_the_wait() {
        loom::model(|| {
            let completions = Arc::new(CompletionQueue::new());
            let other = Arc::clone(&completions);
            let poster = thread::spawn(move || other.post(7, false));
            assert_eq!(completions.wait_until(None), Some(7));
            poster.join().unwrap();
            assert_eq!(completions.take(), None);
        });
    }

    #[test]
    fn loom_two_completions_reach_two_waiters() {
        loom::model(|| {
            let completions = Arc::new(CompletionQueue::new());
            let waiter = {
                let completions = Arc::clone(&completions);
                thread::spawn(move || completions.wait_until(None).unwrap())
            };
            let poster = {
                let completions = Arc::clone(&completions);
                thread::spawn(move || {
                    completions.post(1, true);
                    completions.post(2, false);
                })
            };
            let here = completions.wait_until(None).unwrap();
            let there = waiter.join().unwrap();
            poster.join().unwrap();
            assert_eq!(here + there, 3);
        });
    }
}
