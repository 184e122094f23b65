//! A ticket: the claim to one task's result. Poll it, wait for it, await it, cancel it.
//! Never blocks for ever: a wait has a time limit, and a task always ends.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use plimsoll_core::TaskId;

use crate::completions::CompletionQueue;
use crate::job::{Completion, TaskResult};
use crate::shared::Shared;
use crate::task_path;
use crate::wait::Wait;

/// The claim to one task's result. Dropping it leaves the task running; its result is then dropped too.
///
/// It is a future: `.await` works on any runtime.
#[must_use = "the result comes through the ticket"]
pub struct Ticket<O> {
    pub(crate) id: TaskId,
    pub(crate) completions: Arc<CompletionQueue<Completion<O>>>,
    pub(crate) shared: Arc<Shared>,
}

impl<O> Ticket<O> {
    /// Which task.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// The result, if it is there.
    ///
    /// # Errors
    /// The ticket, if it is not.
    pub fn poll_now(self) -> Result<TaskResult<O>, Self> {
        match self.completions.take() {
            Some(completion) => Ok(completion.result),
            None => Err(self),
        }
    }

    /// Waits for the result, at most this long.
    ///
    /// # Errors
    /// The ticket, if it took longer.
    pub fn wait(self, at_most: Duration) -> Result<TaskResult<O>, Self> {
        match self.completions.wait(Wait::at_most(at_most)) {
            Some(completion) => Ok(completion.result),
            None => Err(self),
        }
    }

    /// Ends the task, wherever it is. Its result is then an error, unless it came first. Says whether it was in time.
    pub fn cancel(&self) -> bool {
        task_path::cancel(&self.shared, self.id)
    }
}

impl<O> Future for Ticket<O> {
    type Output = TaskResult<O>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<TaskResult<O>> {
        self.completions.poll(context).map(|completion| completion.result)
    }
}
