//! An inbox: many tasks of one workload, their results in the order in which they end.
//! Never sees another caller's results.
//! Invariant: who leaves results lying has no more tasks submitted and not taken out than the limit; who takes them out
//! is never refused, however long results take on their way here.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::{SubmitRefusal, TaskId};

use crate::job::{Completion, ReplyChannel, TaskResult};
use crate::orchestrator::{Limits, Registered, TaskRefused};
use crate::shared::{Shared, quietly};
use crate::task::Task;
use crate::task_path::{self, Described};
use crate::wait::Wait;
use crate::workload::Workload;

/// Submits tasks and collects their results, its own and nobody else's. Dropping it cancels what has not ended.
///
/// ```
/// use std::time::Duration;
/// use plimsoll_runtime::{Orchestrator, Task, workload};
/// let orchestrator = Orchestrator::builder().cpu(2).build();
/// let double = orchestrator.register(workload::function("double", |n: &u64| Ok::<_, std::io::Error>(n * 2)));
/// let mut inbox = orchestrator.inbox(&double);
/// for n in 0..10 {
///     inbox.submit(Task::new(n)).map_err(|refused| refused.reason)?;
/// }
/// let mut sum = 0;
/// while let Some(result) = inbox.poll_any_blocking(Duration::from_secs(10)) {
///     sum += result.expect("doubling never fails").output;
/// }
/// assert_eq!(sum, 90);
/// # Ok::<(), plimsoll_core::SubmitRefusal>(())
/// ```
pub struct Inbox<W: Workload> {
    shared: Arc<Shared>,
    channel: Arc<ReplyChannel<W>>,
    arrived: VecDeque<Completion<W::Output>>,
    outstanding: usize,
    /// Results that were there at the last submit near the limit and were not taken out since.
    left_lying: usize,
    limits: Limits,
}

impl<W: Workload> Inbox<W> {
    pub(crate) fn new(shared: Arc<Shared>, registered: &Registered<W>, limits: Limits) -> Self {
        let channel = ReplyChannel::new(&registered.known);
        Self { shared, channel, arrived: VecDeque::new(), outstanding: 0, left_lying: 0, limits }
    }

    /// Tasks submitted whose results were not yet taken out.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Submits a task if there is room in the queue and in the inbox.
    ///
    /// # Errors
    /// The task and the reason, if there is not.
    pub fn try_submit(&mut self, task: Task<W>) -> Result<TaskId, TaskRefused<W>> {
        self.submit_waiting(task, Wait::Try)
    }

    /// Submits a task; waits for room in the queue if it is full, but not for ever. A full inbox refuses at once, because
    /// only who submits here can take results out.
    ///
    /// # Errors
    /// The task and the reason, if there was no room for too long, too many results were not taken out, or the
    /// orchestrator is shutting down.
    pub fn submit(&mut self, task: Task<W>) -> Result<TaskId, TaskRefused<W>> {
        self.submit_waiting(task, Wait::at_most(self.limits.submit_wait_max))
    }

    fn submit_waiting(&mut self, task: Task<W>, wait: Wait) -> Result<TaskId, TaskRefused<W>> {
        if self.is_full() {
            let reason = SubmitRefusal::InboxFull { limit: self.limits.inbox };
            return Err(TaskRefused { task: Box::new(task), reason });
        }
        let id = task_path::submit_one(&self.shared, &self.channel, task, wait, None)?;
        self.outstanding += 1;
        Ok(id)
    }

    /// Whether the limit is reached and the caller has left results lying that it could have taken out before.
    fn is_full(&mut self) -> bool {
        if self.outstanding + 1 < self.limits.inbox {
            return false;
        }
        let is_full = self.outstanding >= self.limits.inbox && self.left_lying > 0;
        self.channel.reply.take_all(&mut self.arrived);
        self.left_lying = self.arrived.len();
        is_full
    }

    pub(crate) fn describe(&self, task: Task<W>, tag: u64) -> Described {
        let (spec, job) = task_path::describe(&self.shared, &self.channel, task, tag, None);
        (spec, job)
    }

    /// Hands in described tasks under one lock. Those that are refused stay in `tasks`. How many are outstanding is the
    /// caller's to bound.
    pub(crate) fn submit_all(&mut self, tasks: &mut VecDeque<Described>) -> Result<(), SubmitRefusal> {
        self.outstanding += task_path::submit_all(&self.shared, tasks)?.count;
        Ok(())
    }

    pub(crate) fn wait_for_queue_space(&self, wait: Wait) {
        task_path::wait_for_queue_space(&self.shared, wait);
    }

    /// A result, if one is there.
    pub fn poll_any(&mut self) -> Option<TaskResult<W::Output>> {
        self.poll_tagged().map(|completion| completion.result)
    }

    /// Waits for a result, at most this long. `None` if none came, or if nothing is outstanding.
    pub fn poll_any_blocking(&mut self, at_most: Duration) -> Option<TaskResult<W::Output>> {
        self.wait_tagged(Wait::at_most(at_most)).map(|completion| completion.result)
    }

    pub(crate) fn poll_tagged(&mut self) -> Option<Completion<W::Output>> {
        if self.arrived.is_empty() {
            self.channel.reply.take_all(&mut self.arrived);
        }
        let completion = self.arrived.pop_front()?;
        self.taken_out();
        Some(completion)
    }

    pub(crate) fn wait_tagged(&mut self, wait: Wait) -> Option<Completion<W::Output>> {
        if self.outstanding == 0 {
            return None;
        }
        if let Some(completion) = self.poll_tagged() {
            return Some(completion);
        }
        let completion = self.channel.reply.wait(wait)?;
        self.taken_out();
        Some(completion)
    }

    fn taken_out(&mut self) {
        self.outstanding -= 1;
        self.left_lying = self.left_lying.saturating_sub(1);
    }
}

impl<W: Workload> Drop for Inbox<W> {
    fn drop(&mut self) {
        self.arrived.append(&mut self.channel.reply.close());
        if self.outstanding > self.arrived.len() {
            task_path::cancel_all(&self.shared, self.channel.address());
        }
        // One by one: a result that panics when it goes takes no other with it.
        self.arrived.drain(..).for_each(|completion| quietly(move || drop(completion)));
    }
}
