//! Pipelines: stages over items. Each stage is a task of its own workload, made from what the stage before it gave.
//! Never a second scheduler: the slot that ends a stage submits the next one in the same step, and takes it at once if that
//! is where it finishes first.
//! Invariant: items submitted and not yet taken out ≤ `items_max`, and so are their bytes, but for a single item.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use plimsoll_core::task::ItemStage;
use plimsoll_core::{Bytes, Moment, Priority, SubmitErrorKind, TaskError};
use rustc_hash::FxHashMap;

use crate::completions::CompletionQueue;
use crate::fan_out::{FanOut, FanStage, Gathered};
use crate::job::{Completion, Output, ReplyChannel, RunError, TaskResult};
use crate::nested;
use crate::orchestrator::{Limits, Registered, SubmitError};
use crate::shared::{Shared, quietly};
use crate::submission;
use crate::task::Task;
use crate::task_path;
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

    /// The item where this task is its next stage. Either is at least as urgent as the other.
    pub(crate) fn next_stage<W: Workload>(self, task: &mut Task<W>) -> Self {
        task.options.priority = task.options.priority.max(self.priority);
        Self { priority: task.options.priority, before: self.before.saturating_add(1), ..self }
    }

    /// The same, at least this urgent.
    pub(crate) fn raised(self, priority: Priority) -> Self {
        Self { priority: self.priority.max(priority), ..self }
    }
}

/// The stage that follows one whose tasks give `O`.
pub(crate) trait Then<O>: Send + Sync {
    /// The next task of an item, or several, made from what the last one gave.
    fn follow(&self, shared: &Shared, item: Item, tag: u64, output: O) -> Output;
    fn fail(&self, tag: u64, failure: RunError, another_follows: bool);
}

/// What comes after a stage whose tasks give `O`: another stage, or the end.
pub(crate) struct Following<O> {
    pub(crate) reply: Arc<CompletionQueue<Completion<O>>>,
    pub(crate) then: Option<Arc<dyn Then<O>>>,
    pub(crate) group: Arc<Group>,
}

impl<O> Following<O> {
    /// Another stage follows; nothing is ever posted to this one's own queue.
    fn stage(then: Arc<dyn Then<O>>, group: Arc<Group>) -> Self {
        Self { reply: Arc::new(CompletionQueue::new()), then: Some(then), group }
    }

    /// An item failed before its last stage.
    pub(crate) fn fail(&self, tag: u64, failure: RunError, another_follows: bool) {
        Group::fail(Some(&*self.group), || {
            self.reply.post(Completion { tag, result: Err(failure) }, another_follows);
        });
    }
}

struct Stage<N: Workload, F> {
    make: Arc<F>,
    channel: Arc<ReplyChannel<N>>,
}

impl<O, N: Workload, F: Fn(O) -> Task<N> + Send + Sync> Then<O> for Stage<N, F> {
    fn follow(&self, shared: &Shared, item: Item, tag: u64, output: O) -> Output {
        let mut task = (self.make)(output);
        let item = item.next_stage(&mut task);
        let (spec, job) = task_path::describe(shared, &self.channel, task, tag, Some(item));
        Output::Next(Box::new((spec, job)))
    }

    fn fail(&self, tag: u64, failure: RunError, another_follows: bool) {
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

    /// Tells of a failure; the first one ends a group of which that was asked.
    pub(crate) fn fail(group: Option<&Self>, tell: impl FnOnce()) {
        let ends = |group: &&Self| group.on_failure == OnFailure::EndAll && !group.ended.swap(true, Ordering::AcqRel);
        let ended = group.filter(ends);
        tell();
        if let Some(group) = ended {
            group.end();
        }
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
/// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
/// use plimsoll::{Orchestrator, Pipeline, Task, workload};
/// let orchestrator = Orchestrator::builder().cpu(2).build();
/// let parse = orchestrator.register(workload::function("parse", |text: &String| text.parse::<u64>()));
/// let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));
/// let pipeline = Pipeline::of(&parse).then(&square, Task::new).items_max(8);
/// let inputs = (1..=3).map(|n| Task::new(n.to_string()));
/// let mut squares: Vec<u64> = orchestrator.run_pipeline(&pipeline, inputs).map(|done| done.unwrap().output).collect();
/// squares.sort();
/// assert_eq!(squares, [1, 4, 9]);
/// ```
pub struct Pipeline<First: Workload, O, End = Open> {
    /// Links all stages to what comes after the last one.
    link: Arc<Link<First, O>>,
    limits: FlowLimits,
    end: PhantomData<End>,
}

type Link<First, O> = dyn Fn(Following<O>) -> Arc<ReplyChannel<First>> + Send + Sync;

/// A pipeline to which a stage can be added.
#[derive(Copy, Clone, Debug)]
pub enum Open {}

/// A pipeline whose last stage fans out: what its tasks give is gathered, and ends the item.
#[derive(Copy, Clone, Debug)]
pub enum Closed {}

#[derive(Copy, Clone, Debug)]
struct FlowLimits {
    items: usize,
    bytes: Bytes,
    on_failure: OnFailure,
}

impl<W: Workload> Pipeline<W, W::Output> {
    /// A pipeline of one stage.
    pub fn of(workload: &Registered<W>) -> Self {
        let limits = FlowLimits { items: ITEMS_MAX, bytes: Bytes::MAX, on_failure: OnFailure::default() };
        let known = Arc::clone(&workload.known);
        let link = move |following| ReplyChannel::of_stage(&known, following);
        Self { link: Arc::new(link), limits, end: PhantomData }
    }
}

impl<First: Workload, O: Send + 'static> Pipeline<First, O> {
    /// One more stage: its task is made, where the stage before it ended, from what that gave. It is routed by itself, and
    /// steps down its own ladder.
    #[must_use]
    pub fn then<N: Workload>(
        self,
        workload: &Registered<N>,
        make: impl Fn(O) -> Task<N> + Send + Sync + 'static,
    ) -> Pipeline<First, N::Output> {
        let (known, make) = (Arc::clone(&workload.known), Arc::new(make));
        self.before(move |following: Following<N::Output>| {
            let group = Arc::clone(&following.group);
            let channel = ReplyChannel::of_stage(&known, following);
            Following::stage(Arc::new(Stage { make: Arc::clone(&make), channel }), group)
        })
    }

    /// A last stage of several tasks at once, of any workloads, made from what the stage before it gave. They are submitted
    /// as one known set, so that which goes where is planned together; what they give is gathered. One that fails costs
    /// the others nothing.
    ///
    /// ```
    /// use plimsoll_runtime::{FanOut, Orchestrator, Pipeline, Task, workload};
    /// let orchestrator = Orchestrator::builder().cpu(2).build();
    /// let parse = orchestrator.register(workload::function("parse", |text: &String| text.parse::<u64>()));
    /// let [twice, thrice] = [2, 3].map(|by| {
    ///     orchestrator.register(workload::function("times", move |n: &u64| Ok::<_, std::io::Error>(n * by)))
    /// });
    /// let pipeline = Pipeline::of(&parse).fan_out(move |n| {
    ///     FanOut::new(n).task(&twice, Task::new(n), |done| done.output).task(&thrice, Task::new(n), |done| done.output)
    /// });
    /// let done = orchestrator.run_pipeline(&pipeline, [Task::new("7".to_owned())]).next().unwrap()?;
    /// assert_eq!(done.output.kept, 7);
    /// assert_eq!(done.output.results.into_iter().flatten().collect::<Vec<_>>(), [14, 21]);
    /// # Ok::<(), plimsoll_runtime::RunError>(())
    /// ```
    #[must_use]
    pub fn fan_out<K: Send + 'static, R: Send + 'static>(
        self,
        make: impl Fn(O) -> FanOut<K, R> + Send + Sync + 'static,
    ) -> Pipeline<First, Gathered<K, R>, Closed> {
        let make = Arc::new(make);
        self.before(move |following: Following<Gathered<K, R>>| {
            let group = Arc::clone(&following.group);
            Following::stage(Arc::new(FanStage::new(Arc::clone(&make), following)), group)
        })
    }

    /// The same stages, with another behind them.
    fn before<N, End>(
        self,
        stage: impl Fn(Following<N>) -> Following<O> + Send + Sync + 'static,
    ) -> Pipeline<First, N, End> {
        let before = self.link;
        let link = move |following| before(stage(following));
        Pipeline { link: Arc::new(link), limits: self.limits, end: PhantomData }
    }
}

impl<First: Workload, O, End> Pipeline<First, O, End> {
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
pub struct Flow<First: Workload, O> {
    shared: Arc<Shared>,
    first: Arc<ReplyChannel<First>>,
    reply: Arc<CompletionQueue<Completion<O>>>,
    group: Arc<Group>,
    limits: FlowLimits,
    submit_wait_max: Duration,
    /// The bytes of each item under way.
    under_way: FxHashMap<u64, Bytes>,
    bytes: Bytes,
    next: u64,
}

impl<First: Workload, O> Flow<First, O> {
    pub(crate) fn new<End>(shared: &Arc<Shared>, pipeline: &Pipeline<First, O, End>, limits: Limits) -> Self {
        let (weak, on_failure) = (Arc::downgrade(shared), pipeline.limits.on_failure);
        let group = Arc::new(Group { shared: weak, on_failure, ended: AtomicBool::new(false) });
        let reply = Arc::new(CompletionQueue::new());
        let following = Following { reply: Arc::clone(&reply), then: None, group: Arc::clone(&group) };
        Self {
            shared: Arc::clone(shared),
            first: (pipeline.link)(following),
            reply,
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
    pub fn submit(&mut self, task: Task<First>) -> Result<u64, SubmitError<First>> {
        self.submit_sized(task, Bytes::ZERO)
    }

    /// Submits an item of so many bytes; gives its number. A full flow refuses at once, because only who submits here can
    /// take results out.
    ///
    /// # Errors
    /// The task and the reason, if too many items or bytes are under way, the flow has ended, or the queue was full for
    /// too long.
    pub fn submit_sized(&mut self, task: Task<First>, bytes: Bytes) -> Result<u64, SubmitError<First>> {
        let refused = |task, reason| Err(SubmitError { task: Box::new(task), reason });
        if self.group.has_ended() {
            return refused(task, SubmitErrorKind::FlowEnded);
        }
        if self.is_full(bytes) {
            return refused(task, SubmitErrorKind::FlowFull { items: self.limits.items, bytes: self.limits.bytes });
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
    pub fn poll(&mut self) -> Option<ItemResult<O>> {
        let completion = self.reply.take()?;
        Some(self.take_out(completion))
    }

    /// Waits for a result, at most this long. `None` if none came, or if nothing is outstanding.
    pub fn wait(&mut self, at_most: Duration) -> Option<ItemResult<O>> {
        if self.under_way.is_empty() {
            return None;
        }
        if nested::is_inside(&self.shared) {
            return Some(self.give_up_nested());
        }
        let completion = self.reply.wait(Wait::at_most(at_most))?;
        Some(self.take_out(completion))
    }

    /// A task would wait for others of its own orchestrator: the flow is ended, and it is told once.
    fn give_up_nested(&mut self) -> ItemResult<O> {
        self.group.end();
        self.under_way.clear();
        self.bytes = Bytes::ZERO;
        let arrived = self.reply.close();
        arrived.into_iter().for_each(|completion| quietly(move || drop(completion)));
        ItemResult { item: 0, result: Err(RunError::refused(0, TaskError::NestedWait)) }
    }

    fn take_out(&mut self, Completion { tag, result }: Completion<O>) -> ItemResult<O> {
        self.bytes -= self.under_way.remove(&tag).unwrap_or_default();
        ItemResult { item: tag, result }
    }

    /// Makes an item at least this urgent, and all its stages to come.
    pub fn raise(&self, item: u64, priority: Priority) {
        let address = Arc::as_ptr(&self.group).addr();
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
impl<First: Workload, O> Unpin for Flow<First, O> {}

/// Results as they end; over when nothing is outstanding.
impl<First: Workload, O> Stream for Flow<First, O> {
    type Item = ItemResult<O>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.under_way.is_empty() {
            return Poll::Ready(None);
        }
        match self.reply.poll(context) {
            Poll::Ready(completion) => Poll::Ready(Some(self.take_out(completion))),
            Poll::Pending if nested::is_inside(&self.shared) => Poll::Ready(Some(self.give_up_nested())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<First: Workload, O> fmt::Debug for Flow<First, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("outstanding", &self.under_way.len()).finish_non_exhaustive()
    }
}

impl<First: Workload, O, End> fmt::Debug for Pipeline<First, O, End> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl<First: Workload, O> Drop for Flow<First, O> {
    fn drop(&mut self) {
        let arrived = self.reply.close();
        if self.under_way.len() > arrived.len() {
            self.group.end();
        }
        // One by one: a result that panics when it goes takes no other with it.
        arrived.into_iter().for_each(|completion| quietly(move || drop(completion)));
    }
}

/// The results of a pipeline over all items of an iterator, as they end. Inputs are pulled while there is room.
#[must_use = "nothing runs until results are asked for"]
pub struct RunPipeline<First: Workload, O, I> {
    flow: Flow<First, O>,
    inputs: I,
    waiting: Option<Task<First>>,
    refused: Option<RunError>,
    exhausted: bool,
}

impl<First: Workload, O, I> fmt::Debug for RunPipeline<First, O, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunPipeline").field("flow", &self.flow).finish_non_exhaustive()
    }
}

impl<First: Workload, O, I: Iterator<Item = Task<First>>> RunPipeline<First, O, I> {
    pub(crate) fn new(flow: Flow<First, O>, inputs: I) -> Self {
        Self { flow, inputs, waiting: None, refused: None, exhausted: false }
    }

    /// The same results with the number of their item.
    pub fn numbered(mut self) -> impl Iterator<Item = ItemResult<O>> {
        std::iter::from_fn(move || self.next_numbered())
    }

    fn fill(&mut self) {
        while !self.exhausted && !self.flow.is_full(Bytes::ZERO) {
            let Some(task) = self.waiting.take().or_else(|| self.inputs.next()) else {
                self.exhausted = true;
                return;
            };
            if let Err(refused) = self.flow.submit(task) {
                let waits = matches!(refused.reason, SubmitErrorKind::QueueFull { .. }) && self.flow.outstanding() > 0;
                if waits {
                    self.waiting = Some(*refused.task);
                    return;
                }
                // What ends the flow is told by the item that did; the rest is not pulled.
                let is_told = refused.reason == SubmitErrorKind::FlowEnded;
                self.refused = (!is_told).then(|| refused.into());
                self.exhausted = true;
            }
        }
    }

    fn next_numbered(&mut self) -> Option<ItemResult<O>> {
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

impl<First: Workload, O, I: Iterator<Item = Task<First>>> Iterator for RunPipeline<First, O, I> {
    type Item = TaskResult<O>;

    fn next(&mut self) -> Option<TaskResult<O>> {
        self.next_numbered().map(|each| each.result)
    }
}
