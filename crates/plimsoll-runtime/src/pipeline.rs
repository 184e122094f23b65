//! Pipelines: stages over items. Each stage is a task of its own workload, made from what the stage before it gave.
//! Never a second scheduler: the slot that ends a stage submits the next one in the same step, and takes it at once if that
//! is where it finishes first.
//! Invariant: items submitted and not yet taken out ≤ `items_max`, and so are their bytes, but for a single item.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use plimsoll_core::task::ItemStage;
use plimsoll_core::{Bytes, Moment, Priority, SubmitRefusal, TaskError};
use rustc_hash::FxHashMap;

use crate::completions::CompletionQueue;
use crate::job::{Completion, ReplyChannel, TaskFailure, TaskResult};
use crate::nested;
use crate::orchestrator::{Limits, Registered, TaskRefused};
use crate::shared::{Shared, quietly};
use crate::submission;
use crate::task::Task;
use crate::task_path::{self, Described, Known};
use crate::wait::Wait;
use crate::workload::Workload;

/// Items under way at once, unless said otherwise: enough to keep every stage of a short pipeline busy on a few devices.
const ITEMS_MAX: usize = 64;
/// How long one pause between two results may last before the wait looks again; an item always ends, so the wait does.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What all stages of an item have in common.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Item {
    since: Moment,
    priority: Priority,
    /// Stages before the one at hand.
    before: u8,
}

impl Item {
    pub(crate) fn stage(self) -> ItemStage {
        ItemStage { since: self.since, stage: self.before }
    }

    /// The same, at least this urgent.
    pub(crate) fn raised(self, priority: Priority) -> Self {
        Self { priority: self.priority.max(priority), ..self }
    }
}

/// The stage that follows one of workload `W`.
pub(crate) trait Then<W: Workload>: Send + Sync {
    /// The next task of an item, made from what the last one gave.
    fn describe(&self, shared: &Shared, item: Item, tag: u64, output: W::Output) -> Described;
    fn fail(&self, tag: u64, failure: TaskFailure, another_follows: bool);
}

struct Stage<N: Workload, F> {
    make: Arc<F>,
    channel: Arc<ReplyChannel<N>>,
}

impl<W: Workload, N: Workload, F: Fn(W::Output) -> Task<N> + Send + Sync> Then<W> for Stage<N, F> {
    fn describe(&self, shared: &Shared, item: Item, tag: u64, output: W::Output) -> Described {
        let mut task = (self.make)(output);
        task.options.priority = task.options.priority.max(item.priority);
        let item = Item { priority: task.options.priority, before: item.before.saturating_add(1), ..item };
        let (spec, job) = task_path::describe(shared, &self.channel, task, tag, Some(item));
        (spec, job)
    }

    fn fail(&self, tag: u64, failure: TaskFailure, another_follows: bool) {
        self.channel.fail(tag, failure, another_follows);
    }
}

/// Work that ends together.
#[derive(Debug)]
pub(crate) struct Group {
    shared: Weak<Shared>,
    on_failure: OnFailure,
    ended: AtomicBool,
}

impl Group {
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// An item failed; says whether that is the first, and ends them all.
    pub(crate) fn item_failed(&self) -> bool {
        self.on_failure == OnFailure::EndAll && !self.ended.swap(true, Ordering::AcqRel)
    }

    /// Ends all tasks of the group. What a slot is about to submit for it is refused from now on.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        if let Some(shared) = self.shared.upgrade() {
            task_path::cancel_all(&shared, std::ptr::from_ref(self).addr());
        }
    }
}

/// What the failure of an item means for the others.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Nothing: the others go on.
    #[default]
    EndItem,
    /// All that have not ended are cancelled, and no more is taken in.
    EndAll,
}

/// Stages over items: what each stage gives becomes the next one's task.
///
/// ```
/// use plimsoll_runtime::{Orchestrator, Pipeline, Task, workload};
/// let orchestrator = Orchestrator::builder().cpu(2).build();
/// let parse = orchestrator.register(workload::function("parse", |text: &String| text.parse::<u64>()));
/// let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));
/// let pipeline = Pipeline::of(&parse).then(&square, Task::new).items_max(8);
/// let inputs = (1..=3).map(|n| Task::new(n.to_string()));
/// let mut squares: Vec<u64> = orchestrator.run_pipeline(&pipeline, inputs).map(|done| done.unwrap().output).collect();
/// squares.sort();
/// assert_eq!(squares, [1, 4, 9]);
/// ```
pub struct Pipeline<First: Workload, Last: Workload> {
    last: Arc<Known<Last>>,
    /// Links all stages to the channel of the last one.
    link: Arc<Link<First, Last>>,
    limits: FlowLimits,
}

type Link<First, Last> = dyn Fn(Arc<ReplyChannel<Last>>) -> Arc<ReplyChannel<First>> + Send + Sync;

#[derive(Copy, Clone, Debug)]
struct FlowLimits {
    items: usize,
    bytes: Bytes,
    on_failure: OnFailure,
}

impl<W: Workload> Pipeline<W, W> {
    /// A pipeline of one stage.
    pub fn of(workload: &Registered<W>) -> Self {
        let limits = FlowLimits { items: ITEMS_MAX, bytes: Bytes::MAX, on_failure: OnFailure::default() };
        Self { last: Arc::clone(&workload.known), link: Arc::new(|last| last), limits }
    }
}

impl<First: Workload, Last: Workload> Pipeline<First, Last> {
    /// One more stage: its task is made, where the stage before it ended, from what that gave. It is routed by itself, and
    /// steps down its own ladder.
    #[must_use]
    pub fn then<N: Workload>(
        self,
        workload: &Registered<N>,
        make: impl Fn(Last::Output) -> Task<N> + Send + Sync + 'static,
    ) -> Pipeline<First, N> {
        let (known, before, make) = (self.last, self.link, Arc::new(make));
        let link = move |channel: Arc<ReplyChannel<N>>| {
            let group = channel.group.clone();
            let then: Arc<dyn Then<Last>> = Arc::new(Stage { make: Arc::clone(&make), channel });
            let reply = Arc::new(CompletionQueue::new());
            before(Arc::new(ReplyChannel { known: Arc::clone(&known), reply, then: Some(then), group }))
        };
        Pipeline { last: Arc::clone(&workload.known), link: Arc::new(link), limits: self.limits }
    }

    /// How many items are under way at once at the most: submitted, and their results not taken out.
    #[must_use]
    pub fn items_max(mut self, items: usize) -> Self {
        self.limits.items = items.max(1);
        self
    }

    /// How many bytes they may have together, as far as [`Flow::submit_sized`] was told. A single item may have more.
    #[must_use]
    pub fn bytes_max(mut self, bytes: Bytes) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// What the failure of an item means for the others.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.limits.on_failure = on_failure;
        self
    }
}

/// A result of a pipeline: of which item, and what its last stage gave.
#[derive(Debug)]
pub struct ItemResult<O> {
    /// The item, counted from 0 in the order of submission.
    pub item: u64,
    /// What came of it.
    pub result: TaskResult<O>,
}

/// Items on their way through a pipeline. Dropping it cancels what has not ended.
pub struct Flow<First: Workload, Last: Workload> {
    shared: Arc<Shared>,
    first: Arc<ReplyChannel<First>>,
    last: Arc<ReplyChannel<Last>>,
    group: Arc<Group>,
    limits: FlowLimits,
    submit_wait_max: Duration,
    /// The bytes of each item under way.
    under_way: FxHashMap<u64, Bytes>,
    bytes: Bytes,
    next: u64,
}

impl<First: Workload, Last: Workload> Flow<First, Last> {
    pub(crate) fn new(shared: &Arc<Shared>, pipeline: &Pipeline<First, Last>, limits: Limits) -> Self {
        let (weak, on_failure) = (Arc::downgrade(shared), pipeline.limits.on_failure);
        let group = Arc::new(Group { shared: weak, on_failure, ended: AtomicBool::new(false) });
        let reply = Arc::new(CompletionQueue::new());
        let (known, of) = (Arc::clone(&pipeline.last), Some(Arc::clone(&group)));
        let last = Arc::new(ReplyChannel { known, reply, then: None, group: of });
        Self {
            shared: Arc::clone(shared),
            first: (pipeline.link)(Arc::clone(&last)),
            last,
            group,
            limits: pipeline.limits,
            submit_wait_max: limits.submit_wait_max,
            under_way: FxHashMap::default(),
            bytes: Bytes::ZERO,
            next: 0,
        }
    }

    /// Items submitted whose results were not yet taken out.
    pub fn outstanding(&self) -> usize {
        self.under_way.len()
    }

    /// Whether another item of this many bytes would be refused.
    pub fn is_full(&self, bytes: Bytes) -> bool {
        let is_first = self.under_way.is_empty();
        !is_first && (self.under_way.len() >= self.limits.items || self.bytes + bytes > self.limits.bytes)
    }

    /// Submits an item that counts for no bytes.
    ///
    /// # Errors
    /// As [`Flow::submit_sized`].
    pub fn submit(&mut self, task: Task<First>) -> Result<u64, TaskRefused<First>> {
        self.submit_sized(task, Bytes::ZERO)
    }

    /// Submits an item of so many bytes; gives its number. A full flow refuses at once, because only who submits here can
    /// take results out.
    ///
    /// # Errors
    /// The task and the reason, if too many items or bytes are under way, the flow has ended, or the queue was full for
    /// too long.
    pub fn submit_sized(&mut self, task: Task<First>, bytes: Bytes) -> Result<u64, TaskRefused<First>> {
        let refused = |task, reason| Err(TaskRefused { task: Box::new(task), reason });
        if self.group.has_ended() {
            return refused(task, SubmitRefusal::FlowEnded);
        }
        if self.is_full(bytes) {
            return refused(task, SubmitRefusal::FlowFull { items: self.limits.items, bytes: self.limits.bytes });
        }
        let (number, wait) = (self.next, Wait::at_most(self.submit_wait_max));
        let item = Item { since: self.shared.now(), priority: task.options.priority, before: 0 };
        submission::submit_one(&self.shared, &self.first, task, wait, (number, Some(item)))?;
        self.next += 1;
        self.bytes += bytes;
        self.under_way.insert(number, bytes);
        Ok(number)
    }

    /// A result, if one is there.
    pub fn poll(&mut self) -> Option<ItemResult<Last::Output>> {
        let completion = self.last.reply.take()?;
        Some(self.take_out(completion))
    }

    /// Waits for a result, at most this long. `None` if none came, or if nothing is outstanding.
    pub fn wait(&mut self, at_most: Duration) -> Option<ItemResult<Last::Output>> {
        if self.under_way.is_empty() {
            return None;
        }
        if nested::is_inside(&self.shared) {
            return Some(self.give_up_nested());
        }
        let completion = self.last.reply.wait(Wait::at_most(at_most))?;
        Some(self.take_out(completion))
    }

    /// A task would wait for others of its own orchestrator: the flow is ended, and it is told once.
    fn give_up_nested(&mut self) -> ItemResult<Last::Output> {
        self.group.end();
        self.under_way.clear();
        self.bytes = Bytes::ZERO;
        let arrived = self.last.reply.close();
        arrived.into_iter().for_each(|completion| quietly(move || drop(completion)));
        ItemResult { item: 0, result: Err(TaskFailure::refused(0, TaskError::NestedWait)) }
    }

    fn take_out(&mut self, Completion { tag, result }: Completion<Last::Output>) -> ItemResult<Last::Output> {
        self.bytes -= self.under_way.remove(&tag).unwrap_or_default();
        ItemResult { item: tag, result }
    }

    /// Makes an item at least this urgent, and all its stages to come.
    pub fn raise(&self, item: u64, priority: Priority) {
        let address = self.last.address();
        let mut state = self.shared.lock();
        let now = self.shared.now();
        state.scheduler.raise_those(now, priority, |job| job.reply_address() == address && job.raise(item, priority));
        self.shared.release(state);
    }

    /// Ends every item that has not ended, each with an error; no more is taken in.
    pub fn cancel(&self) {
        self.group.end();
    }
}

/// Nothing in it is pinned.
impl<First: Workload, Last: Workload> Unpin for Flow<First, Last> {}

/// Results as they end; over when nothing is outstanding.
impl<First: Workload, Last: Workload> Stream for Flow<First, Last> {
    type Item = ItemResult<Last::Output>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.under_way.is_empty() {
            return Poll::Ready(None);
        }
        match self.last.reply.poll(context) {
            Poll::Ready(completion) => Poll::Ready(Some(self.take_out(completion))),
            Poll::Pending if nested::is_inside(&self.shared) => Poll::Ready(Some(self.give_up_nested())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<First: Workload, Last: Workload> fmt::Debug for Flow<First, Last> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("outstanding", &self.under_way.len()).finish_non_exhaustive()
    }
}

impl<First: Workload, Last: Workload> fmt::Debug for Pipeline<First, Last> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("last", &self.last.workload.name()).finish_non_exhaustive()
    }
}

impl<First: Workload, Last: Workload> Drop for Flow<First, Last> {
    fn drop(&mut self) {
        let arrived = self.last.reply.close();
        if self.under_way.len() > arrived.len() {
            self.group.end();
        }
        // One by one: a result that panics when it goes takes no other with it.
        arrived.into_iter().for_each(|completion| quietly(move || drop(completion)));
    }
}

/// The results of a pipeline over all items of an iterator, as they end. Inputs are pulled while there is room.
#[must_use = "nothing runs until results are asked for"]
pub struct RunPipeline<First: Workload, Last: Workload, I> {
    flow: Flow<First, Last>,
    inputs: I,
    waiting: Option<Task<First>>,
    refused: Option<TaskFailure>,
    exhausted: bool,
}

impl<First: Workload, Last: Workload, I: Iterator<Item = Task<First>>> RunPipeline<First, Last, I> {
    pub(crate) fn new(flow: Flow<First, Last>, inputs: I) -> Self {
        Self { flow, inputs, waiting: None, refused: None, exhausted: false }
    }

    /// The same results with the number of their item.
    pub fn numbered(mut self) -> impl Iterator<Item = ItemResult<Last::Output>> {
        std::iter::from_fn(move || self.next_numbered())
    }

    fn fill(&mut self) {
        while !self.exhausted && !self.flow.is_full(Bytes::ZERO) {
            let Some(task) = self.waiting.take().or_else(|| self.inputs.next()) else {
                self.exhausted = true;
                return;
            };
            if let Err(refused) = self.flow.submit(task) {
                let waits = matches!(refused.reason, SubmitRefusal::QueueFull { .. }) && self.flow.outstanding() > 0;
                if waits {
                    self.waiting = Some(*refused.task);
                    return;
                }
                // What ends the flow is told by the item that did; the rest is not pulled.
                let is_told = refused.reason == SubmitRefusal::FlowEnded;
                self.refused = (!is_told).then(|| refused.into());
                self.exhausted = true;
            }
        }
    }

    fn next_numbered(&mut self) -> Option<ItemResult<Last::Output>> {
        loop {
            self.fill();
            if let Some(result) = self.flow.wait(LOOK_AGAIN) {
                return Some(result);
            }
            if self.flow.outstanding() == 0 && self.exhausted {
                let item = self.flow.next;
                return self.refused.take().map(|failure| ItemResult { item, result: Err(failure) });
            }
        }
    }
}

impl<First: Workload, Last: Workload, I: Iterator<Item = Task<First>>> Iterator for RunPipeline<First, Last, I> {
    type Item = TaskResult<Last::Output>;

    fn next(&mut self) -> Option<TaskResult<Last::Output>> {
        self.next_numbered().map(|each| each.result)
    }
}
