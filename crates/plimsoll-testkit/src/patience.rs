//! Waits in tests that end: a task that gives no answer fails its test instead of hanging it.

use std::time::Duration;

use plimsoll_runtime::{TaskResult, Ticket, WaitError};

/// Longer than any task of a test takes on a machine that is busy with others.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a task ended, if it did within this time.
pub fn ended_within<O>(ticket: &mut Ticket<O>, at_most: Duration) -> Option<TaskResult<O>> {
    match ticket.wait_timeout(at_most) {
        Ok(done) => Some(Ok(done)),
        Err(WaitError::Failed(failure)) => Some(Err(failure)),
        Err(_) => None,
    }
}

/// How a task ended.
///
/// # Panics
/// If it has not ended for a long time.
#[track_caller]
pub fn in_time<O>(mut ticket: Ticket<O>) -> TaskResult<O> {
    ended_within(&mut ticket, PATIENCE).unwrap_or_else(|| panic!("no result within {PATIENCE:?}"))
}
