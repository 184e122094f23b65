//! A slow input on a thread of its own, so that waiting for it holds no finished work back. One that never lets anybody wait
//! is read by whoever wants an item.
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

/// Items from an iterator.
pub(crate) enum Intake<T, E> {
    /// On another thread.
    Aside(Arc<Shared<T, E>>),
    /// On the thread of who takes them; `None` when it has no more.
    #[cfg(feature = "pack")]
    Here(Option<Box<dyn Iterator<Item = Result<T, E>> + Send>>),
}

pub(crate) struct Shared<T, E> {
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
        Self::Aside(shared)
    }

    /// Pulls an item when it is asked for one: for an input that gives it at once.
    #[cfg(feature = "pack")]
    pub(crate) fn here(items: impl Iterator<Item = Result<T, E>> + Send + 'static) -> Self {
        Self::Here(Some(Box::new(items)))
    }
}

/// The next item, whatever panics on the way.
pub(crate) fn pull<T, E>(items: &mut dyn Iterator<Item = Result<T, E>>) -> Given<T, E> {
    match catch_unwind(AssertUnwindSafe(|| items.next())) {
        Ok(given) => given.map(|item| item.map_err(Broken::Failed)),
        Err(panic) => Some(Err(Broken::Panicked(message(&*panic)))),
    }
}

impl<T, E> Shared<T, E> {
    fn state(&self) -> MutexGuard<'_, State<T, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill_from(&self, mut items: impl Iterator<Item = Result<T, E>>) {
        while self.wait_for_room() {
            if !self.put(pull(&mut items)) {
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
        match self {
            Self::Aside(shared) => shared.poll_item(context),
            #[cfg(feature = "pack")]
            Self::Here(items) => {
                let given = items.as_mut().and_then(|items| pull(&mut **items));
                if !matches!(given, Some(Ok(_))) {
                    *items = None;
                }
                Poll::Ready(given)
            }
        }
    }
}

impl<T, E> Shared<T, E> {
    fn poll_item(&self, context: &mut Context<'_>) -> Poll<Given<T, E>> {
        let mut state = self.state();
        match state.waiting.pop_front() {
            Some(given) => {
                self.room.notify_one();
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
        match self {
            Self::Aside(shared) => {
                shared.state().nobody_takes = true;
                shared.room.notify_one();
            }
            #[cfg(feature = "pack")]
            Self::Here(_) => {}
        }
    }
}

/// What a panic says.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}
