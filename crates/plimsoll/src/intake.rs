//! A slow input on a thread of its own, so that waiting for it holds no finished work back.
//! Never reads more than [`READ_AHEAD`] items that nobody has taken. A thread that is stuck in its input when nobody wants
//! items any more is left behind: it holds no lock, and ends when the input next gives something.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Items read and not yet taken: one to take, and one being read meanwhile.
pub(crate) const READ_AHEAD: usize = 2;

/// Why an input gives no more.
pub(crate) enum Broken<E> {
    /// It said so itself.
    Failed(E),
    /// It panicked.
    Panicked(String),
}

/// What an input gives: an item, its end, or why it broke. It is not asked again after either of the latter.
pub(crate) type Given<T, E> = Option<Result<T, Broken<E>>>;

/// Items from an iterator on another thread.
pub(crate) struct Intake<T, E>(Arc<Shared<T, E>>);

struct Shared<T, E> {
    state: Mutex<State<T, E>>,
    room: Condvar,
}

struct State<T, E> {
    waiting: VecDeque<Result<T, Broken<E>>>,
    ended: bool,
    nobody_takes: bool,
    waker: Option<Waker>,
}

impl<T: Send + 'static, E: Send + 'static> Intake<T, E> {
    /// Starts to pull items, on a thread of this name.
    pub(crate) fn start(name: &str, items: impl Iterator<Item = Result<T, E>> + Send + 'static) -> Self {
        let state = State { waiting: VecDeque::new(), ended: false, nobody_takes: false, waker: None };
        let shared = Arc::new(Shared { state: Mutex::new(state), room: Condvar::new() });
        let filled = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(name.to_owned());
        if let Err(error) = thread.spawn(move || filled.fill_from(items)) {
            shared.put(Some(Err(Broken::Panicked(format!("no thread could be started for it: {error}")))));
        }
        Self(shared)
    }
}

impl<T, E> Shared<T, E> {
    fn state(&self) -> MutexGuard<'_, State<T, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill_from(&self, mut items: impl Iterator<Item = Result<T, E>>) {
        while self.wait_for_room() {
            let given = match catch_unwind(AssertUnwindSafe(|| items.next())) {
                Ok(given) => given.map(|item| item.map_err(Broken::Failed)),
                Err(panic) => Some(Err(Broken::Panicked(message(&*panic)))),
            };
            if !self.put(given) {
                return;
            }
        }
    }

    /// Waits until an item may be read; says whether anybody wants it.
    fn wait_for_room(&self) -> bool {
        let full = |state: &mut State<T, E>| state.waiting.len() >= READ_AHEAD && !state.nobody_takes;
        let state = self.room.wait_while(self.state(), full).unwrap_or_else(PoisonError::into_inner);
        !state.nobody_takes
    }

    /// Hands over what the input gave; says whether to ask it again.
    fn put(&self, given: Given<T, E>) -> bool {
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

impl<T, E> Intake<T, E> {
    /// The next item, if it is there; otherwise the context is woken once it is.
    pub(crate) fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Given<T, E>> {
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

impl<T, E> Drop for Intake<T, E> {
    fn drop(&mut self) {
        self.0.state().nobody_takes = true;
        self.0.room.notify_one();
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}
