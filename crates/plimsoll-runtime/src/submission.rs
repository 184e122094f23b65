//! A task on its way in: at once, after a wait for queue space, or as a future that waits without a thread.
//! Never loses a task: what is refused comes back whole.
//! Invariant: queue space that came free is offered to a future that still waits for it (`SpaceWaiters`).

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use plimsoll_core::{SubmitErrorKind, TaskId};

use crate::job::{Job, ReplyChannel, TypedJob};
use crate::orchestrator::SubmitError;
use crate::pipeline::Item;
use crate::shared::{Shared, quietly};
use crate::task::{Task, TaskOptions};
use crate::task_path::{self, Described};
use crate::ticket::Ticket;
use crate::wait::Wait;
use crate::workload::Workload;

/// A described task, and what is needed to give it back.
struct Pending<W: Workload> {
    described: VecDeque<Described>,
    job: Arc<TypedJob<W>>,
    options: TaskOptions,
}

impl<W: Workload> Pending<W> {
    fn new(shared: &Shared, channel: &Arc<ReplyChannel<W>>, task: Task<W>, (tag, item): (u64, Option<Item>)) -> Self {
        let options = task.options.clone();
        let (spec, job) = task_path::describe(shared, channel, task, tag, item);
        let described = VecDeque::from([(spec, Arc::clone(&job) as Arc<dyn Job>)]);
        Self { described, job, options }
    }

    fn submit(&mut self, shared: &Shared) -> Result<TaskId, SubmitErrorKind> {
        let submitted = task_path::submit_all(shared, &mut self.described)?;
        Ok(submitted.last.expect("one task was submitted"))
    }

    /// It was taken in. It may have ended by now, and this be the last of it.
    fn let_go(self) {
        quietly(move || drop(self));
    }

    fn give_back(self, reason: SubmitErrorKind) -> SubmitError<W> {
        let Self { described, job, options } = self;
        drop(described);
        let job = Arc::into_inner(job).expect("a refused job is nobody else's");
        let task = Task { input: job.input, references: job.references.into_named(), values: job.values, options };
        SubmitError { task: Box::new(task), reason }
    }
}

/// Submits one task, waiting for queue space if there is none. A refused task comes back whole.
pub(crate) fn submit_one<W: Workload>(
    shared: &Shared,
    channel: &Arc<ReplyChannel<W>>,
    task: Task<W>,
    wait: Wait,
    place: (u64, Option<Item>),
) -> Result<TaskId, SubmitError<W>> {
    shared.refresh_memory();
    let mut pending = Pending::new(shared, channel, task, place);
    loop {
        let reason = match pending.submit(shared) {
            Ok(id) => {
                pending.let_go();
                return Ok(id);
            }
            Err(reason) => reason,
        };
        let waits = matches!(reason, SubmitErrorKind::QueueFull { .. });
        if !waits || !task_path::wait_for_queue_space(shared, wait) {
            return Err(pending.give_back(reason));
        }
    }
}

/// Submits a task when it is awaited, and waits for queue space without a thread. See `Orchestrator::submit_async`.
/// Dropped before that, the task was never submitted.
#[must_use = "nothing is submitted before it is awaited"]
pub struct SubmitAsync<W: Workload> {
    shared: Arc<Shared>,
    channel: Arc<ReplyChannel<W>>,
    /// `None` once it has given its answer.
    pending: Option<Pending<W>>,
    place: SpacePlace,
}

impl<W: Workload> SubmitAsync<W> {
    pub(crate) fn new(shared: &Arc<Shared>, channel: Arc<ReplyChannel<W>>, task: Task<W>) -> Self {
        let pending = Pending::new(shared, &channel, task, (0, None));
        Self { shared: Arc::clone(shared), channel, pending: Some(pending), place: SpacePlace::default() }
    }
}

/// Nothing in it is pinned.
impl<W: Workload> Unpin for SubmitAsync<W> {}

impl<W: Workload> Future for SubmitAsync<W> {
    type Output = Result<Ticket<W::Output>, SubmitError<W>>;

    /// # Panics
    /// If it is awaited once more after it has given its answer.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut pending = this.pending.take().expect("a future is not polled again after its end");
        this.shared.ask_for_memory();
        loop {
            match pending.submit(&this.shared) {
                Ok(id) => {
                    pending.let_go();
                    this.place.leave(&this.shared, Took::Space);
                    return Poll::Ready(Ok(Ticket::new(id, &this.channel.reply, &this.shared)));
                }
                Err(SubmitErrorKind::QueueFull { .. }) if this.place.wait(&this.shared, context) => {
                    this.pending = Some(pending);
                    return Poll::Pending;
                }
                Err(SubmitErrorKind::QueueFull { .. }) => {}
                Err(reason) => {
                    this.place.leave(&this.shared, Took::Nothing);
                    return Poll::Ready(Err(pending.give_back(reason)));
                }
            }
        }
    }
}

impl<W: Workload> Drop for SubmitAsync<W> {
    fn drop(&mut self) {
        self.place.leave(&self.shared, Took::Nothing);
    }
}

impl<W: Workload> fmt::Debug for SubmitAsync<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmitAsync").field("waits", &self.pending.is_some()).finish_non_exhaustive()
    }
}

/// Futures that wait for queue space, first come first.
#[derive(Default)]
pub(crate) struct SpaceWaiters {
    next: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl SpaceWaiters {
    pub(crate) fn is_empty(&self) -> bool {
        self.wakers.is_empty()
    }

    /// The first so many, to be woken outside the lock: each is tried once, and comes back if it finds no space.
    pub(crate) fn take_first(&mut self, count: usize) -> impl Iterator<Item = Waker> + '_ {
        (0..count).map_while(|_| self.wakers.pop_first().map(|(_, waker)| waker))
    }
}

/// A future's place among those that wait for queue space.
#[derive(Default)]
pub(crate) struct SpacePlace(Option<u64>);

/// What became of the space that a future was woken for.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Took {
    Space,
    Nothing,
}

impl SpacePlace {
    /// Waits in its place, a new one or the old. Says no if there is space by now.
    pub(crate) fn wait(&mut self, shared: &Shared, context: &Context<'_>) -> bool {
        let mut state = shared.lock();
        if !state.scheduler.is_full() {
            return false;
        }
        let waiters = &mut state.space_waiters;
        let place = *self.0.get_or_insert_with(|| {
            waiters.next += 1;
            waiters.next
        });
        waiters.wakers.insert(place, context.waker().clone());
        true
    }

    /// Waits no more. Space that it was woken for and did not take is the next one's.
    pub(crate) fn leave(&mut self, shared: &Shared, took: Took) {
        let Some(place) = self.0.take() else { return };
        let mut state = shared.lock();
        let was_woken = state.space_waiters.wakers.remove(&place).is_none();
        if was_woken && took == Took::Nothing {
            shared.notify_queue_space(&mut state);
        }
        shared.release(state);
    }
}
