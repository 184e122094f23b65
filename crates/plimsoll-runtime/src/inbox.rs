//! An inbox: many tasks of one workload, their results in the order in which they end.
//! Never sees another caller's results.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::{SubmitRefusal, TaskId};

use crate::job::{Completion, ReplyChannel, TaskResult};
use crate::orchestrator::{Registered, TaskRefused};
use crate::shared::Shared;
use crate::task::Task;
use crate::task_path::{self, Described};
use crate::workload::Workload;

/// Submits tasks and collects their results, its own and nobody else's.
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
    submit_wait_max: Duration,
}

impl<W: Workload> Inbox<W> {
    pub(crate) fn new(shared: Arc<Shared>, registered: &Registered<W>, submit_wait_max: Duration) -> Self {
        let channel = ReplyChannel::new(&registered.known);
        Self { shared, channel, arrived: VecDeque::new(), outstanding: 0, submit_wait_max }
    }

    /// Tasks submitted whose results were not yet taken out.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Submits a task if there is room in the queue.
    ///
    /// # Errors
    /// The task and the reason, if there is not.
    pub fn try_submit(&mut self, task: Task<W>) -> Result<TaskId, TaskRefused<W>> {
        self.submit_until(task, None)
    }

    /// Submits a task; waits for room in the queue if it is full, but not for ever.
    ///
    /// # Errors
    /// The task and the reason, if there was no room for too long or the orchestrator is shutting down.
    pub fn submit(&mut self, task: Task<W>) -> Result<TaskId, TaskRefused<W>> {
        self.submit_until(task, Instant::now().checked_add(self.submit_wait_max))
    }

    fn submit_until(&mut self, task: Task<W>, until: Option<Instant>) -> Result<TaskId, TaskRefused<W>> {
        let id = task_path::submit_one(&self.shared, &self.channel, task, until)?;
        self.outstanding += 1;
        Ok(id)
    }

    pub(crate) fn describe(&self, task: Task<W>, tag: u64) -> Described {
        let (spec, job) = task_path::describe(&self.shared, &self.channel, task, tag);
        (spec, job)
    }

    /// Hands in described tasks under one lock. Those that are refused stay in `tasks`.
    pub(crate) fn submit_all(&mut self, tasks: &mut VecDeque<Described>) -> Result<(), SubmitRefusal> {
        self.outstanding += task_path::submit_all(&self.shared, tasks)?.count;
        Ok(())
    }

    pub(crate) fn wait_for_queue_space(&self, until: Instant) {
        task_path::wait_for_queue_space(&self.shared, Some(until));
    }

    /// A result, if one is there.
    pub fn poll_any(&mut self) -> Option<TaskResult<W::Output>> {
        self.poll_tagged().map(|completion| completion.result)
    }

    /// Waits for a result, at most this long. `None` if none came, or if nothing is outstanding.
    pub fn poll_any_blocking(&mut self, at_most: Duration) -> Option<TaskResult<W::Output>> {
        self.wait_tagged(Instant::now().checked_add(at_most)).map(|completion| completion.result)
    }

    pub(crate) fn poll_tagged(&mut self) -> Option<Completion<W::Output>> {
        if self.arrived.is_empty() {
            self.channel.reply.take_all(&mut self.arrived);
        }
        let completion = self.arrived.pop_front()?;
        self.outstanding -= 1;
        Some(completion)
    }

    pub(crate) fn wait_tagged(&mut self, until: Option<Instant>) -> Option<Completion<W::Output>> {
        if self.outstanding == 0 {
            return None;
        }
        if let Some(completion) = self.poll_tagged() {
            return Some(completion);
        }
        let completion = self.channel.reply.wait_until(until)?;
        self.outstanding -= 1;
        Some(completion)
    }
}
