//! A held session: a sequence of tasks that owns its session, so that state lasts from task to task.
//! Never shared, never evicted; its owner drains and closes it, and is told what was lost with its device.
//! Invariant: its tasks run one at a time, in the order in which they were submitted.

use std::fmt;
use std::sync::Arc;

use plimsoll_core::scheduler::Undrained;
use plimsoll_core::{SequenceId, TaskId};

use crate::job::ReplyChannel;
use crate::orchestrator::{Limits, SubmitError};
use crate::shared::Shared;
use crate::submission;
use crate::task::Task;
use crate::task_path::Known;
use crate::ticket::Ticket;
use crate::wait::Wait;
use crate::workload::Workload;

/// The first number of sequences that own their session: far above what programs choose for their own.
const SEQUENCES_HELD: u64 = 1 << 63;

/// A sequence of tasks that owns its session. Dropping it closes the session and cancels what has not ended.
///
/// What its tasks leave in the session lasts until a task that [drains](Task::drains) it, or until it is closed. If its
/// device is lost, every task that would have gone on ends with
/// [`SessionLost`](plimsoll_core::TaskError::SessionLost), and so does each further one until [`Held::restart`].
pub struct Held<W: Workload> {
    shared: Arc<Shared>,
    known: Arc<Known<W>>,
    sequence: SequenceId,
    limits: Limits,
}

impl<W: Workload> fmt::Debug for Held<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl<W: Workload> Held<W> {
    pub(crate) fn new(shared: &Arc<Shared>, known: &Arc<Known<W>>, limits: Limits) -> Self {
        let sequence = SequenceId(SEQUENCES_HELD | shared.next_registration());
        let mut state = shared.lock();
        state.scheduler.hold(sequence);
        shared.release(state);
        Self { shared: Arc::clone(shared), known: Arc::clone(known), sequence, limits }
    }

    /// Submits the next task of the sequence.
    ///
    /// # Errors
    /// The task and the reason, if there was no queue space for too long, the session is lost, or the orchestrator is
    /// shutting down.
    pub fn submit(&self, mut task: Task<W>) -> Result<Ticket<W::Output>, SubmitError<W>> {
        (task.options.sequence, task.options.holds) = (Some(self.sequence), true);
        let channel = ReplyChannel::new(&self.known);
        let wait = Wait::at_most(self.limits.submit_wait_max);
        let id = submission::submit_one(&self.shared, &channel, task, wait, (0, None))?;
        Ok(Ticket::new(id, &channel.reply, &self.shared))
    }

    /// Tasks that were done since it was last drained, and the task that drained it.
    pub fn undrained(&self) -> (u64, Option<TaskId>) {
        let state = self.shared.lock();
        let Undrained { since, tasks } = state.scheduler.undrained(self.sequence);
        self.shared.release(state);
        (tasks, since)
    }

    /// Whether the session was lost, and with it what was not drained.
    pub fn is_lost(&self) -> bool {
        let state = self.shared.lock();
        let is_lost = state.scheduler.is_hold_lost(self.sequence);
        self.shared.release(state);
        is_lost
    }

    /// After a loss: the next task opens a new session. Says how many tasks were done and not drained, and since which.
    pub fn restart(&self) -> (u64, Option<TaskId>) {
        let mut state = self.shared.lock();
        let Undrained { since, tasks } = state.scheduler.restart(self.sequence);
        self.shared.release(state);
        (tasks, since)
    }

    /// Asks the session to step down to this rung, or below, before its next task: what it holds goes along
    /// ([`crate::Session::leave`], [`Workload::resume`]). Says whether there is such a rung.
    pub fn recall(&self, rung: &'static str) -> bool {
        let mut state = self.shared.lock();
        let now = self.shared.now();
        let is_there = state.scheduler.recall_hold(now, self.sequence, rung);
        self.shared.release(state);
        is_there
    }

    /// Closes the session; tasks that have not ended are cancelled.
    pub fn close(self) {}
}

impl<W: Workload> Drop for Held<W> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let now = self.shared.now();
        state.scheduler.close_hold(now, self.sequence);
        self.shared.release(state);
    }
}
