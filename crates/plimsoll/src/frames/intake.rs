//! A slow input on a thread of its own, so that waiting for it holds no finished frame back.
//! Never reads more than [`READ_AHEAD`] frames that nobody has taken. A thread that is stuck in its input when nobody wants
//! frames any more is left behind: it holds no lock, and ends when the input next gives something.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use plimsoll_image::frames::Frame;

use super::source::{Broken, Given, Source};

/// Frames read and not yet taken: one to take, and one being read meanwhile.
pub(super) const READ_AHEAD: usize = 2;

/// Frames from an iterator on another thread.
pub(super) struct Intake<E>(Arc<Shared<E>>);

struct Shared<E> {
    state: Mutex<State<E>>,
    room: Condvar,
}

struct State<E> {
    waiting: VecDeque<Result<Frame, Broken<E>>>,
    ended: bool,
    nobody_takes: bool,
    waker: Option<Waker>,
}

impl<E: Send + 'static> Intake<E> {
    /// Starts to pull frames.
    pub(super) fn start(frames: impl Iterator<Item = Result<Frame, E>> + Send + 'static) -> Self {
        let state = State { waiting: VecDeque::new(), ended: false, nobody_takes: false, waker: None };
        let shared = Arc::new(Shared { state: Mutex::new(state), room: Condvar::new() });
        let filled = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("plimsoll-frames-in".to_owned());
        if let Err(error) = thread.spawn(move || filled.fill_from(frames)) {
            shared.put(Some(Err(Broken::Panicked(format!("no thread could be started for it: {error}")))));
        }
        Self(shared)
    }
}

impl<E> Shared<E> {
    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill_from(&self, mut frames: impl Iterator<Item = Result<Frame, E>>) {
        while self.wait_for_room() {
            let given = match catch_unwind(AssertUnwindSafe(|| frames.next())) {
                Ok(given) => given.map(|frame| frame.map_err(Broken::Failed)),
                Err(panic) => Some(Err(Broken::Panicked(message(&*panic)))),
            };
            if !self.put(given) {
                return;
            }
        }
    }

    /// Waits until a frame may be read; says whether anybody wants it.
    fn wait_for_room(&self) -> bool {
        let full = |state: &mut State<E>| state.waiting.len() >= READ_AHEAD && !state.nobody_takes;
        let state = self.room.wait_while(self.state(), full).unwrap_or_else(PoisonError::into_inner);
        !state.nobody_takes
    }

    /// Hands over what the input gave; says whether to ask it again.
    fn put(&self, given: Given<E>) -> bool {
        let goes_on = matches!(given, Some(Ok(_)));
        let mut state = self.state();
        state.waiting.extend(given);
        state.ended = !goes_on;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        goes_on
    }
}

impl<E> Source for Intake<E> {
    type Error = E;

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Given<E>> {
        let mut state = self.0.state();
        match state.waiting.pop_front() {
            Some(given) => {
                self.0.room.notify_one();
                Poll::Ready(Some(given))
            }
            None if state.ended => Poll::Ready(None),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<E> Drop for Intake<E> {
    fn drop(&mut self) {
        self.0.state().nobody_takes = true;
        self.0.room.notify_one();
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}
