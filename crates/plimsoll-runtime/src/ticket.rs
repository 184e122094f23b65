//! A ticket: the claim to one task's result. Poll it, wait for it, await it, cancel it.
//! Never hangs: a task always ends, a result is taken out once, and a task that would wait for itself is told so.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use plimsoll_core::{TaskError, TaskId};

use crate::completions::{CompletionQueue, PROGRESS_WHOLE};
use crate::job::{Completion, Done, RunError, TaskResult};
use crate::nested;
use crate::shared::Shared;
use crate::task_path;
use crate::wait::Wait;

/// The claim to one task's result. Dropping it leaves the task running; its result is then dropped too. See
/// [`Ticket::cancel_on_drop`].
///
/// It is a future: `.await` works on any runtime.
///
/// ```
/// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
/// use plimsoll::{Orchestrator, Task, workload};
/// let orchestrator = Orchestrator::builder().cpu(1).build();
/// let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));
/// let ticket = orchestrator.submit(&square, Task::new(12))?;
/// assert_eq!(ticket.wait()?.output, 144);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the result comes through the ticket"]
pub struct Ticket<O> {
    id: TaskId,
    completions: Arc<CompletionQueue<Completion<O>>>,
    shared: Arc<Shared>,
    is_taken: bool,
    cancels: bool,
}

/// Why a wait gave no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The task has not ended yet. Wait again, or cancel it.
    #[error("the task has not ended within {after:?}; wait again, or cancel it")]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// It ended without a result.
    #[error(transparent)]
    Failed(#[from] RunError),
}

impl<O> Ticket<O> {
    pub(crate) fn new(id: TaskId, completions: &Arc<CompletionQueue<Completion<O>>>, shared: &Arc<Shared>) -> Self {
        let (completions, shared) = (Arc::clone(completions), Arc::clone(shared));
        Self { id, completions, shared, is_taken: false, cancels: false }
    }

    /// Which task.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// The result, if it is there.
    pub fn poll_now(&mut self) -> Option<TaskResult<O>> {
        if self.is_taken {
            return Some(self.no_longer_there());
        }
        let completion = self.completions.take();
        completion.map(|completion| self.take(completion))
    }

    /// Waits until the task has ended.
    ///
    /// # Errors
    /// Why it gave no result. [`TaskError::NestedWait`] inside a task of the same orchestrator: it keeps the slot that the
    /// other task may need.
    pub fn wait(mut self) -> TaskResult<O> {
        loop {
            if let Some(result) = self.wait_until(Wait::Forever) {
                return result;
            }
        }
    }

    /// Waits for the result, at most this long.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] if it took longer: the ticket is still good. Otherwise as [`Ticket::wait`].
    pub fn wait_timeout(&mut self, at_most: Duration) -> Result<Done<O>, WaitError> {
        let result = self.wait_until(Wait::at_most(at_most)).ok_or(WaitError::TimedOut { after: at_most })?;
        Ok(result?)
    }

    fn wait_until(&mut self, wait: Wait) -> Option<TaskResult<O>> {
        if let Some(result) = self.poll_now() {
            return Some(result);
        }
        if nested::is_inside(&self.shared) {
            return Some(self.give_up_nested());
        }
        let completion = self.completions.wait(wait);
        completion.map(|completion| self.take(completion))
    }

    /// How much of the task is done, from 0 to 1, as far as it says so: see [`crate::Context::progress`].
    pub fn progress(&self) -> f64 {
        f64::from(self.completions.progress.load(Ordering::Relaxed)) / f64::from(PROGRESS_WHOLE)
    }

    /// Ends the task, wherever it is. Its result is then an error, unless it came first. Says whether it was in time.
    pub fn cancel(&self) -> bool {
        task_path::cancel(&self.shared, self.id)
    }

    /// From now on, dropping the ticket before its result was taken out cancels the task: what a future that is given up on
    /// should do.
    #[must_use = "the result comes through the ticket"]
    pub fn cancel_on_drop(mut self) -> Self {
        self.cancels = true;
        self
    }

    fn take(&mut self, completion: Completion<O>) -> TaskResult<O> {
        self.is_taken = true;
        completion.result
    }

    /// A task would wait for another one of its own orchestrator, which is cancelled.
    fn give_up_nested(&mut self) -> TaskResult<O> {
        self.cancel();
        self.is_taken = true;
        Err(RunError::of(self.id, TaskError::NestedWait))
    }

    fn no_longer_there(&self) -> TaskResult<O> {
        Err(RunError::of(self.id, TaskError::ResultTaken))
    }
}

impl<O> Future for Ticket<O> {
    type Output = TaskResult<O>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<TaskResult<O>> {
        if self.is_taken {
            return Poll::Ready(self.no_longer_there());
        }
        match self.completions.poll(context) {
            Poll::Ready(completion) => Poll::Ready(self.take(completion)),
            Poll::Pending if nested::is_inside(&self.shared) => Poll::Ready(self.give_up_nested()),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<O> Drop for Ticket<O> {
    fn drop(&mut self) {
        if self.cancels && !self.is_taken {
            self.cancel();
        }
    }
}

impl<O> fmt::Debug for Ticket<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, is_taken, cancels, .. } = self;
        let (taken, cancels_on_drop) = (is_taken, cancels);
        f.debug_struct("Ticket")
            .field("id", id)
            .field("taken", taken)
            .field("cancels_on_drop", cancels_on_drop)
            .finish()
    }
}
