//! Where results wait for whoever asked for them, and for nobody else.
//! Many small results wake their reader a few times, not once each: see [`CompletionQueue::wait_for_several`].
//! Never drops a completion before it is closed; how many it holds is bounded by its owner, which bounds its tasks.
//! Invariant: a completion posted before or during a wait ends that wait (`tests::loom_a_completion_ends_the_wait`).

use std::collections::VecDeque;
use std::sync::atomic::AtomicU32;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::sync::{Condvar, Mutex, lock};
use crate::wait::Wait;

pub(crate) struct CompletionQueue<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    /// What the task says it has done so far, in parts of [`PROGRESS_WHOLE`]: of use where the queue is for one task.
    pub(crate) progress: AtomicU32,
}

/// All of a task, as its progress is counted.
pub(crate) const PROGRESS_WHOLE: u32 = 1 << 16;

struct State<T> {
    completions: VecDeque<T>,
    /// Nobody wants any more of them.
    closed: bool,
    waiting: usize,
    /// Whoever waits is woken once so many are there.
    wanted: usize,
    waker: Option<Waker>,
}

impl<T> CompletionQueue<T> {
    pub(crate) fn new() -> Self {
        let state = State { completions: VecDeque::new(), closed: false, waiting: 0, wanted: 1, waker: None };
        Self { state: Mutex::new(state), arrived: Condvar::new(), progress: AtomicU32::new(0) }
    }

    /// Puts a completion in. If another follows at once, only the last of them wakes whoever waits.
    pub(crate) fn post(&self, completion: T, another_follows: bool) {
        let mut state = lock(&self.state);
        if state.closed {
            // A result may do anything when it goes: not under the lock.
            drop(state);
            return drop(completion);
        }
        state.completions.push_back(completion);
        if another_follows {
            return;
        }
        let waker = state.waker.take();
        let someone_waits = state.waiting > 0 && state.completions.len() >= state.wanted;
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

    /// Lets go of everything that comes from now on; gives what is there.
    pub(crate) fn close(&self) -> VecDeque<T> {
        let mut state = lock(&self.state);
        state.closed = true;
        std::mem::take(&mut state.completions)
    }

    /// Waits for a completion.
    pub(crate) fn wait(&self, wait: Wait) -> Option<T> {
        let mut state = lock(&self.state);
        loop {
            if let Some(completion) = state.completions.pop_front() {
                return Some(completion);
            }
            let nap = wait.nap()?;
            state.waiting += 1;
            state = self.arrived.wait_timeout(state, nap).map_or_else(|gone| gone.into_inner().0, |ok| ok.0);
            state.waiting -= 1;
        }
    }

    /// Waits until so many are there, or for so long: for a reader to whom results come so quickly that waking it for each
    /// costs more than it gains. The caller is the only one who waits.
    pub(crate) fn wait_for_several(&self, wanted: usize, at_most: Duration) {
        let mut state = lock(&self.state);
        if state.completions.len() >= wanted {
            return;
        }
        state.wanted = wanted;
        state.waiting += 1;
        state = self.arrived.wait_timeout(state, at_most).map_or_else(|gone| gone.into_inner().0, |ok| ok.0);
        state.waiting -= 1;
        state.wanted = 1;
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
            assert_eq!(completions.wait(Wait::Forever), Some(7));
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
                thread::spawn(move || completions.wait(Wait::Forever).unwrap())
            };
            let poster = {
                let completions = Arc::clone(&completions);
                thread::spawn(move || {
                    completions.post(1, true);
                    completions.post(2, false);
                })
            };
            let here = completions.wait(Wait::Forever).unwrap();
            let there = waiter.join().unwrap();
            poster.join().unwrap();
            assert_eq!(here + there, 3);
        });
    }

    /// Whatever is posted while the queue is closed is let go of, once, by one side or the other.
    #[test]
    fn loom_closing_loses_and_keeps_nothing() {
        loom::model(|| {
            let completions = Arc::new(CompletionQueue::new());
            let counted = std::sync::Arc::new(());
            let poster = {
                let (completions, counted) = (Arc::clone(&completions), std::sync::Arc::clone(&counted));
                thread::spawn(move || completions.post(counted, false))
            };
            let left = completions.close();
            poster.join().unwrap();
            assert_eq!(std::sync::Arc::strong_count(&counted), 1 + left.len());
            assert!(completions.take().is_none());
        });
    }
}
