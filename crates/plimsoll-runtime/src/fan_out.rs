//! Fanning out: several tasks of one item at once, and what they give gathered into one result.
//! Never decides who goes first: the tasks are submitted as one known set, which the scheduler plans.
//! Invariant: an item is delivered when its last task has ended and the stage that made them was settled, and only then.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use plimsoll_core::scheduler::Report;
use plimsoll_core::{TaskError, TaskId};

use crate::job::{Branch, Completion, Done, Output, ReplyChannel, RunError, TaskResult};
use crate::orchestrator::Registered;
use crate::pipeline::{Following, Item, Then};
use crate::shared::Shared;
use crate::sync::{Mutex, lock};
use crate::task::Task;
use crate::task_path::{self, Described, panic_message};
use crate::workload::Workload;

/// The tasks that an item fans out into, and what is kept of it meanwhile.
pub struct FanOut<K, R> {
    kept: K,
    branches: Vec<DescribeBranch<K, R>>,
}

type DescribeBranch<K, R> = Box<dyn FnOnce(&Shared, Item, &Arc<Gathering<K, R>>, usize) -> Described + Send>;

impl<K: Send + 'static, R: Send + 'static> FanOut<K, R> {
    /// No tasks: the item ends with what is kept of it.
    pub fn new(kept: K) -> Self {
        Self { kept, branches: Vec::new() }
    }

    /// One more task; `gives` makes of its output what all tasks of the item have in common.
    #[must_use]
    pub fn task<W: Workload>(
        mut self,
        workload: &Registered<W>,
        mut task: Task<W>,
        gives: impl Fn(Done<W::Output>) -> R + Send + Sync + 'static,
    ) -> Self {
        let known = Arc::clone(&workload.known);
        self.branches.push(Box::new(move |shared, item, gathering, at| {
            let item = item.next_stage(&mut task);
            let branch = Box::new(OneOf { gathering: Arc::clone(gathering), at, gives });
            let channel = ReplyChannel::of_branch(&known, branch, &gathering.following.group);
            let (spec, job) = task_path::describe(shared, &channel, task, gathering.tag, Some(item));
            (spec, job)
        }));
        self
    }
}

impl<K: fmt::Debug, R> fmt::Debug for FanOut<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FanOut").field("kept", &self.kept).field("tasks", &self.branches.len()).finish()
    }
}

/// An item whose tasks have all ended.
#[derive(Debug)]
pub struct Gathered<K, R> {
    /// What was kept of it.
    pub kept: K,
    /// What came of each task, in the order in which they were named.
    pub results: Vec<Result<R, RunError>>,
}

/// The stage that fans out.
pub(crate) struct FanStage<K, R, F> {
    make: Arc<F>,
    following: Arc<Following<Gathered<K, R>>>,
}

impl<K, R, F> FanStage<K, R, F> {
    pub(crate) fn new(make: Arc<F>, following: Following<Gathered<K, R>>) -> Self {
        Self { make, following: Arc::new(following) }
    }
}

impl<O, K, R, F> Then<O> for FanStage<K, R, F>
where
    K: Send + 'static,
    R: Send + 'static,
    F: Fn(O) -> FanOut<K, R> + Send + Sync,
{
    fn follow(&self, shared: &Shared, item: Item, tag: u64, output: O) -> Output {
        let FanOut { kept, branches } = (self.make)(output);
        let results = branches.iter().map(|_| None).collect();
        let parts = Parts { kept: Some(kept), results, left: branches.len() + 1, of: None };
        let gathering = Arc::new(Gathering { parts: Mutex::new(parts), tag, following: Arc::clone(&self.following) });
        let describe = |(at, branch): (usize, DescribeBranch<K, R>)| branch(shared, item, &gathering, at);
        let set = branches.into_iter().enumerate().map(describe).collect();
        Output::Fan(Box::new(Fan { set, gathering }))
    }

    fn fail(&self, tag: u64, failure: RunError, another_follows: bool) {
        self.following.fail(tag, failure, another_follows);
    }
}

/// The tasks of an item, on their way to be submitted together.
pub(crate) struct Fan {
    pub(crate) set: Vec<Described>,
    pub(crate) gathering: Arc<dyn Begun>,
}

/// What hears that the stage which fanned out was settled.
pub(crate) trait Begun: Send + Sync {
    fn begun(&self, stage: TaskId, report: Report);
}

/// What has come of an item so far.
struct Gathering<K, R> {
    parts: Mutex<Parts<K, R>>,
    tag: u64,
    following: Arc<Following<Gathered<K, R>>>,
}

struct Parts<K, R> {
    kept: Option<K>,
    results: Vec<Option<Result<R, RunError>>>,
    /// Tasks that have not ended, and the stage that made them until it was settled.
    left: usize,
    /// That stage.
    of: Option<(TaskId, Report)>,
}

impl<K, R> Gathering<K, R> {
    fn put(&self, change: impl FnOnce(&mut Parts<K, R>)) {
        let mut parts = lock(&self.parts);
        change(&mut parts);
        parts.left -= 1;
        if parts.left > 0 {
            return;
        }
        let (kept, of) = (parts.kept.take(), parts.of.take());
        let results: Vec<_> = parts.results.drain(..).flatten().collect();
        drop(parts);
        if let (Some(kept), Some((id, report))) = (kept, of) {
            let result = Ok(Done { id, index: self.tag, output: Gathered { kept, results }, report });
            self.following.reply.post(Completion { tag: self.tag, result }, false);
        }
    }
}

impl<K: Send, R: Send> Begun for Gathering<K, R> {
    fn begun(&self, stage: TaskId, report: Report) {
        self.put(|parts| parts.of = Some((stage, report)));
    }
}

/// One task of an item.
struct OneOf<K, R, G> {
    gathering: Arc<Gathering<K, R>>,
    at: usize,
    gives: G,
}

impl<K: Send, R: Send, O, G: Fn(Done<O>) -> R + Send + Sync> Branch<O> for OneOf<K, R, G> {
    fn post(&self, result: TaskResult<O>) {
        let given = result.and_then(|done| {
            let id = Some(done.id);
            let failed = |panic: Box<dyn Any + Send>| {
                let error = TaskError::Panicked { message: panic_message(&*panic) };
                RunError { id, index: self.gathering.tag, error }
            };
            // Whatever it does, the item ends.
            catch_unwind(AssertUnwindSafe(|| (self.gives)(done))).map_err(failed)
        });
        self.gathering.put(|parts| parts.results[self.at] = Some(given));
    }
}
