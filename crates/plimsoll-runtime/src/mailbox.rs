//! Where results wait for whoever asked for them, and for nobody else.
//! Never drops a letter; holds at most as many as its owner has tasks in the queue.
//! Invariant: a letter posted before or during a wait ends that wait (`tests::loom_a_letter_ends_the_wait`).

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex, lock};

pub(crate) struct Mailbox<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

struct State<T> {
    letters: VecDeque<T>,
    waiting: usize,
    waker: Option<Waker>,
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Self {
        let state = State { letters: VecDeque::new(), waiting: 0, waker: None };
        Self { state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Puts a letter in. If another follows at once, only the last of them wakes whoever waits.
    pub(crate) fn post(&self, letter: T, another_follows: bool) {
        let mut state = lock(&self.state);
        state.letters.push_back(letter);
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
        lock(&self.state).letters.pop_front()
    }

    /// Takes everything that is there into `out`.
    pub(crate) fn take_all(&self, out: &mut VecDeque<T>) {
        out.append(&mut lock(&self.state).letters);
    }

    /// Waits for a letter until the deadline.
    pub(crate) fn wait_until(&self, deadline: Option<Instant>) -> Option<T> {
        let mut state = lock(&self.state);
        loop {
            if let Some(letter) = state.letters.pop_front() {
                return Some(letter);
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
        match state.letters.pop_front() {
            Some(letter) => Poll::Ready(letter),
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
    fn loom_a_letter_ends_the_wait() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new());
            let other = Arc::clone(&mailbox);
            let poster = thread::spawn(move || other.post(7, false));
            assert_eq!(mailbox.wait_until(None), Some(7));
            poster.join().unwrap();
            assert_eq!(mailbox.take(), None);
        });
    }

    #[test]
    fn loom_two_letters_reach_two_waiters() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new());
            let waiter = {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || mailbox.wait_until(None).unwrap())
            };
            let poster = {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || {
                    mailbox.post(1, true);
                    mailbox.post(2, false);
                })
            };
            let here = mailbox.wait_until(None).unwrap();
            let there = waiter.join().unwrap();
            poster.join().unwrap();
            assert_eq!(here + there, 3);
        });
    }
}
