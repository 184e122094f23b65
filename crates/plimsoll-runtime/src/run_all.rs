//! Runs every task of an iterator: lazily, with a bounded number under way, results as they end or in input order.
//! Never pulls an input before there is room for it, and runs nothing more once it is dropped.
//! Invariant: tasks under way plus results held back ≤ the window.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use plimsoll_core::SubmitErrorKind;

use crate::inbox::Inbox;
use crate::job::{RunError, TaskResult};
use crate::shared::quietly;
use crate::submission::{SpacePlace, Took};
use crate::task::Task;
use crate::task_path::{self, Described};
use crate::wait::Wait;
use crate::workload::Workload;

/// Tasks handed in under one lock while others are still under way: a quarter of the window, up to this many.
const SUBMIT_TOGETHER: usize = 256;
/// How long one pause between two results may last before the wait looks again; a task always ends, so the wait does.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The results of many tasks, in the order in which they end. See `Orchestrator::run_all`. Dropping it cancels what has
/// not ended.
///
/// An iterator that waits on its thread; [`RunAll::stream`] waits without one.
#[must_use = "nothing runs until results are asked for"]
pub struct RunAll<W: Workload, I> {
    inputs: I,
    inbox: Inbox<W>,
    window: usize,
    waiting: VecDeque<Described>,
    next_tag: u64,
    exhausted: bool,
    refused: VecDeque<(u64, RunError)>,
    /// Its place among those that wait for queue space, as a stream.
    place: SpacePlace,
}

impl<W: Workload, I: Iterator<Item = Task<W>>> RunAll<W, I> {
    pub(crate) fn new(inputs: I, inbox: Inbox<W>, window: usize) -> Self {
        let (waiting, refused) = (VecDeque::new(), VecDeque::new());
        Self {
            inputs,
            inbox,
            window: window.max(1),
            waiting,
            next_tag: 0,
            exhausted: false,
            refused,
            place: SpacePlace::default(),
        }
    }

    /// The same results in the order of the inputs.
    pub fn ordered(self) -> Ordered<W, I> {
        Ordered { results: self, next: 0, early: BTreeMap::new() }
    }

    /// The same results for async code: waits without a thread, for results and for queue space.
    ///
    /// ```
    /// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
    /// use futures_util::StreamExt;
    /// use plimsoll::{Orchestrator, Task, workload};
    /// # #[cfg(not(loom))]
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let orchestrator = Orchestrator::builder().cpu(2).build();
    /// let double = orchestrator.register(workload::function("double", |n: &u64| Ok::<_, std::io::Error>(n * 2)));
    /// let mut results = orchestrator.run_all(&double, (0..10).map(Task::new)).stream();
    /// while let Some(done) = results.next().await {
    ///     let done = done?;
    ///     assert_eq!(done.output, done.index * 2);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stream(self) -> ResultStream<Self> {
        ResultStream(self)
    }

    /// Pulls inputs while there is room, handing them in together when the devices are busy anyway.
    fn fill(&mut self, held_back: usize) {
        loop {
            let under_way = self.inbox.outstanding() + held_back;
            let room = self.window.saturating_sub(under_way);
            let together = self.together();
            if room < together && self.inbox.outstanding() > 0 {
                return;
            }
            while !self.exhausted && self.waiting.len() < room.min(together) {
                match self.inputs.next() {
                    Some(task) => {
                        self.waiting.push_back(self.inbox.describe(task, self.next_tag));
                        self.next_tag += 1;
                    }
                    None => self.exhausted = true,
                }
            }
            if self.waiting.is_empty() || room == 0 || !self.submit_all() {
                return;
            }
        }
    }

    /// How many tasks to hand in at once: one by one at first, so that a slow iterator keeps nobody waiting.
    fn together(&self) -> usize {
        self.inbox.outstanding().min(self.window / 4).clamp(1, SUBMIT_TOGETHER)
    }

    /// Hands in what waits; says whether it is worth going on.
    fn submit_all(&mut self) -> bool {
        match self.inbox.submit_all(&mut self.waiting) {
            Ok(()) => true,
            // Others fill the queue: what ends will make room.
            Err(SubmitErrorKind::QueueFull { .. }) => false,
            Err(refusal) => {
                self.give_up(&refusal);
                false
            }
        }
    }

    /// No more is taken in: what was pulled and not taken ends with the reason, in its turn.
    fn give_up(&mut self, refusal: &SubmitErrorKind) {
        self.exhausted = true;
        let first = self.next_tag - self.waiting.len() as u64;
        let error = task_path::refused(refusal);
        let failures = (first..self.next_tag).map(|tag| (tag, RunError::refused(tag, error.clone())));
        self.refused.extend(failures);
        let_go(&mut self.waiting);
    }

    /// A result that needs no waiting, or that there is none any more.
    fn at_hand(&mut self, held_back: usize) -> Option<Option<Tagged<W>>> {
        self.fill(held_back);
        if let Some((tag, failure)) = self.refused.pop_front() {
            return Some(Some((tag, Err(failure))));
        }
        let is_over = self.inbox.outstanding() == 0 && self.waiting.is_empty() && self.exhausted;
        is_over.then_some(None)
    }

    fn next_tagged(&mut self, held_back: usize) -> Option<Tagged<W>> {
        loop {
            if let Some(next) = self.at_hand(held_back) {
                return next;
            }
            if self.inbox.outstanding() == 0 {
                // The queue is full of other callers' tasks.
                self.inbox.wait_for_queue_space(Wait::at_most(LOOK_AGAIN));
                continue;
            }
            if let Some(completion) = self.inbox.wait_tagged(Wait::at_most(LOOK_AGAIN)) {
                return Some((completion.tag, completion.result));
            }
        }
    }

    fn poll_next_tagged(&mut self, held_back: usize, context: &mut Context<'_>) -> Poll<Option<Tagged<W>>> {
        loop {
            if let Some(next) = self.at_hand(held_back) {
                self.inbox.leave_space(&mut self.place, Took::Space);
                return Poll::Ready(next);
            }
            if self.inbox.outstanding() > 0 {
                self.inbox.leave_space(&mut self.place, Took::Space);
                let completion = ready!(self.inbox.poll_next_tagged(context));
                return Poll::Ready(completion.map(|completion| (completion.tag, completion.result)));
            }
            // The queue is full of other callers' tasks.
            if self.inbox.wait_for_space(&mut self.place, context) {
                return Poll::Pending;
            }
        }
    }
}

/// A result and the place of its input.
type Tagged<W> = (u64, TaskResult<<W as Workload>::Output>);

/// The results of many tasks as a [`Stream`], for async code: see [`RunAll::stream`] and [`Ordered::stream`]. A type of its
/// own, because `next` and `map` of an iterator and of a stream are two things. Inputs are pulled where it is polled.
#[derive(Debug)]
#[must_use = "nothing runs until results are asked for"]
pub struct ResultStream<R>(R);

/// Nothing in it is pinned: the inputs are moved out one by one.
impl<R> Unpin for ResultStream<R> {}

impl<W: Workload, I: Iterator<Item = Task<W>>> Stream for ResultStream<RunAll<W, I>> {
    type Item = TaskResult<W::Output>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_tagged(0, context).map(|next| next.map(|(_, result)| result))
    }
}

impl<W: Workload, I> fmt::Debug for RunAll<W, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunAll").field("inbox", &self.inbox).field("pulled", &self.next_tag).finish_non_exhaustive()
    }
}

impl<W: Workload, I: Iterator<Item = Task<W>>> Iterator for RunAll<W, I> {
    type Item = TaskResult<W::Output>;

    fn next(&mut self) -> Option<TaskResult<W::Output>> {
        self.next_tagged(0).map(|(_, result)| result)
    }
}

/// The results of many tasks in the order of the inputs. See [`RunAll::ordered`]. Dropping it cancels what has not ended.
#[must_use = "nothing runs until results are asked for"]
pub struct Ordered<W: Workload, I> {
    results: RunAll<W, I>,
    next: u64,
    early: BTreeMap<u64, TaskResult<W::Output>>,
}

impl<W: Workload, I: Iterator<Item = Task<W>>> Iterator for Ordered<W, I> {
    type Item = TaskResult<W::Output>;

    fn next(&mut self) -> Option<TaskResult<W::Output>> {
        loop {
            if let Some(result) = self.early.remove(&self.next) {
                self.next += 1;
                return Some(result);
            }
            let (tag, result) = self.results.next_tagged(self.early.len())?;
            self.early.insert(tag, result);
        }
    }
}

impl<W: Workload, I: Iterator<Item = Task<W>>> Ordered<W, I> {
    /// The same results for async code: see [`RunAll::stream`].
    pub fn stream(self) -> ResultStream<Self> {
        ResultStream(self)
    }
}

impl<W: Workload, I: Iterator<Item = Task<W>>> Stream for ResultStream<Ordered<W, I>> {
    type Item = TaskResult<W::Output>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut self.0;
        loop {
            if let Some(result) = this.early.remove(&this.next) {
                this.next += 1;
                return Poll::Ready(Some(result));
            }
            let Some((tag, result)) = ready!(this.results.poll_next_tagged(this.early.len(), context)) else {
                return Poll::Ready(None);
            };
            this.early.insert(tag, result);
        }
    }
}

impl<W: Workload, I> fmt::Debug for Ordered<W, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ordered").field("results", &self.results).field("next", &self.next).finish_non_exhaustive()
    }
}

/// Drops one by one: an input that panics when it goes takes no other with it.
fn let_go(waiting: &mut VecDeque<Described>) {
    waiting.drain(..).for_each(|described| quietly(move || drop(described)));
}

impl<W: Workload, I> Drop for RunAll<W, I> {
    /// What is under way goes with the inbox.
    fn drop(&mut self) {
        self.inbox.leave_space(&mut self.place, Took::Nothing);
        let_go(&mut self.waiting);
    }
}

impl<W: Workload, I> Drop for Ordered<W, I> {
    fn drop(&mut self) {
        while let Some((_, early)) = self.early.pop_first() {
            quietly(move || drop(early));
        }
    }
}
