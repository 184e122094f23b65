//! An inbox: many tasks of one workload, their results in the order in which they end.
//! Never sees another caller's results.
//! Invariant: who leaves results lying has no more tasks submitted and not taken out than the limit; who takes them out
//! is never refused, however long results take on their way here.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_core::Stream;
use plimsoll_core::{SubmitErrorKind, TaskError, TaskId};

use crate::job::{Completion, ReplyChannel, RunError, TaskResult};
use crate::nested;
use crate::orchestrator::{Limits, Registered, SubmitError};
use crate::shared::{Shared, quietly};
use crate::submission::{self, SpacePlace, Took};
use crate::task::Task;
use crate::task_path::{self, Described};
use crate::wait::Wait;
use crate::workload::Workload;

/// A reader that waited less than this for a result is one to whom they come quickly.
const QUICK: Duration = Duration::from_micros(500);
/// The longest that a result lies until a reader is woken to whom they come quickly. Waking it for each costs it, and the
/// worker whose core it takes, some 10 µs.
const SOON: Duration = Duration::from_millis(2);
/// Results that wake such a reader before that time is over.
const SEVERAL: usize = 256;

/// Submits tasks and collects their results, its own and nobody else's. Dropping it cancels what has not ended.
///
/// It is a [`Stream`] of results as they end, which is over when nothing is outstanding.
///
/// ```
/// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
/// use std::time::Duration;
/// use plimsoll::{Orchestrator, Task, workload};
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
/// # Ok::<(), plimsoll::SubmitErrorKind>(())
/// ```
pub struct Inbox<W: Workload> {
    shared: Arc<Shared>,
    channel: Arc<ReplyChannel<W>>,
    arrived: VecDeque<Completion<W::Output>>,
    outstanding: usize,
    /// Tasks submitted one by one so far.
    submitted: u64,
    /// Results that were there at the last submit near the limit and were not taken out since.
    left_lying: usize,
    /// Results come so quickly that the reader takes several at a time.
    is_quick: bool,
    limits: Limits,
}

impl<W: Workload> Inbox<W> {
    pub(crate) fn new(shared: Arc<Shared>, registered: &Registered<W>, limits: Limits) -> Self {
        let channel = ReplyChannel::new(&registered.known);
        Self {
            shared,
            channel,
            arrived: VecDeque::new(),
            outstanding: 0,
            submitted: 0,
            left_lying: 0,
            is_quick: false,
            limits,
        }
    }

    /// Tasks submitted whose results were not yet taken out.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Submits a task if there is room in the queue and in the inbox.
    ///
    /// # Errors
    /// The task and the reason, if there is not.
    pub fn try_submit(&mut self, task: Task<W>) -> Result<TaskId, SubmitError<W>> {
        self.submit_waiting(task, Wait::Try)
    }

    /// Submits a task; waits for room in the queue if it is full, but not for ever. A full inbox refuses at once, because
    /// only who submits here can take results out.
    ///
    /// # Errors
    /// The task and the reason, if there was no room for too long, too many results were not taken out, or the
    /// orchestrator is shutting down.
    pub fn submit(&mut self, task: Task<W>) -> Result<TaskId, SubmitError<W>> {
        self.submit_waiting(task, Wait::at_most(self.limits.submit_wait_max))
    }

    fn submit_waiting(&mut self, task: Task<W>, wait: Wait) -> Result<TaskId, SubmitError<W>> {
        if self.is_full() {
            let reason = SubmitErrorKind::InboxFull { limit: self.limits.inbox };
            return Err(SubmitError { task: Box::new(task), reason });
        }
        let id = submission::submit_one(&self.shared, &self.channel, task, wait, (self.submitted, None))?;
        self.submitted += 1;
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
    pub(crate) fn submit_all(&mut self, tasks: &mut VecDeque<Described>) -> Result<(), SubmitErrorKind> {
        self.shared.ask_for_memory();
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
        if nested::is_inside(&self.shared) {
            return Some(self.give_up_nested());
        }
        if self.is_quick
            && let Some(nap) = wait.nap()
        {
            let wanted = (self.outstanding / 2).clamp(1, SEVERAL);
            self.channel.reply.wait_for_several(wanted, nap.min(SOON));
            let first = self.poll_tagged();
            self.is_quick = !self.arrived.is_empty();
            if first.is_some() {
                return first;
            }
        }
        let began = Instant::now();
        let completion = self.channel.reply.wait(wait)?;
        self.is_quick = began.elapsed() < QUICK;
        self.taken_out();
        Some(completion)
    }

    /// As [`Inbox::wait_tagged`], for a future. `None` if nothing is outstanding.
    pub(crate) fn poll_next_tagged(&mut self, context: &mut Context<'_>) -> Poll<Option<Completion<W::Output>>> {
        if let Some(completion) = self.poll_tagged() {
            return Poll::Ready(Some(completion));
        }
        if self.outstanding == 0 {
            return Poll::Ready(None);
        }
        if nested::is_inside(&self.shared) {
            return Poll::Ready(Some(self.give_up_nested()));
        }
        let completion = std::task::ready!(self.channel.reply.poll(context));
        self.taken_out();
        Poll::Ready(Some(completion))
    }

    /// Waits, without a thread, until there is queue space. Says no if there is.
    pub(crate) fn wait_for_space(&self, place: &mut SpacePlace, context: &Context<'_>) -> bool {
        place.wait(&self.shared, context)
    }

    pub(crate) fn leave_space(&self, place: &mut SpacePlace, took: Took) {
        place.leave(&self.shared, took);
    }

    /// A task would wait for others of its own orchestrator: they are cancelled, and it is told once.
    fn give_up_nested(&mut self) -> Completion<W::Output> {
        task_path::cancel_all(&self.shared, self.channel.address());
        self.channel.reply.take_all(&mut self.arrived);
        self.arrived.drain(..).for_each(|completion| quietly(move || drop(completion)));
        (self.outstanding, self.left_lying) = (0, 0);
        let failure = RunError { id: None, index: 0, error: TaskError::NestedWait };
        Completion { tag: 0, result: Err(failure) }
    }

    fn taken_out(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.left_lying = self.left_lying.saturating_sub(1);
    }
}

/// Nothing in it is pinned.
impl<W: Workload> Unpin for Inbox<W> {}

impl<W: Workload> Stream for Inbox<W> {
    type Item = TaskResult<W::Output>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_next_tagged(context).map(|completion| completion.map(|completion| completion.result))
    }
}

impl<W: Workload> fmt::Debug for Inbox<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("outstanding", &self.outstanding).finish_non_exhaustive()
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
