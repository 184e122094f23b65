//! Waits that end: a test that would hang fails with a message instead.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_runtime::{TaskResult, Ticket};
use plimsoll_testkit::patience::ended_within;

/// How long a single wait may take. Far beyond what anything here needs, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long a whole test may take.
const TEST_MAX: Duration = Duration::from_secs(120);

/// Runs a test on its own thread and fails if it does not end.
#[track_caller]
pub(crate) fn bounded(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel();
    let runner = thread::spawn(move || {
        test();
        // The other side is gone only if it has already failed.
        let _ = done.send(());
    });
    if let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(TEST_MAX) {
        panic!("the test hangs: not over after {TEST_MAX:?}");
    }
    if let Err(panic) = runner.join() {
        std::panic::resume_unwind(panic);
    }
}

/// The result of a ticket, which has to come.
#[track_caller]
pub(crate) fn within<O>(mut ticket: Ticket<O>, what: &str) -> TaskResult<O> {
    ended_within(&mut ticket, PATIENCE).unwrap_or_else(|| panic!("{what}: no result within {PATIENCE:?}"))
}

/// Looks again and again until it holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{what}: not so within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[derive(Default)]
struct Counted {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Counted {
    fn add(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    fn wait_for(&self, wanted: usize) -> bool {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(count, PATIENCE, |count| *count < wanted);
        *waited.unwrap_or_else(PoisonError::into_inner).0 >= wanted
    }
}

/// Closed until somebody opens it.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Counted>);

impl Gate {
    pub(crate) fn open(&self) {
        self.0.add();
    }

    #[track_caller]
    pub(crate) fn pass(&self) {
        assert!(self.0.wait_for(1), "a gate stayed closed for {PATIENCE:?}");
    }
}

/// A place where this many have to be at the same time before any may go on.
#[derive(Clone)]
pub(crate) struct Meeting(Arc<Counted>, usize);

impl Meeting {
    pub(crate) fn of(wanted: usize) -> Self {
        Self(Arc::default(), wanted)
    }

    #[track_caller]
    pub(crate) fn attend(&self) {
        self.0.add();
        assert!(self.0.wait_for(self.1), "{} did not come together within {PATIENCE:?}", self.1);
    }
}
