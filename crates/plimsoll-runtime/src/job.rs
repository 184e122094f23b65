//! A task of any workload, as the workers see it.
//! Never decides; never tells two results of one task apart by anything but the scheduler's word.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use plimsoll_core::scheduler::{Host, Report};
use plimsoll_core::{Attempt, Bytes, Fault, Priority, Rung, TaskError, TaskId};
use smallvec::SmallVec;

use crate::backend::Backend;
use crate::completions::CompletionQueue;
use crate::fan_out::Fan;
use crate::gauge::Gauge;
use crate::pipeline::{Following, Group, Item, Then};
use crate::task::NamedReferences;
use crate::task_path::{Described, Known};
use crate::value::{AtHand, KeptBuffers, Value};
use crate::workload::{AnyPrepared, Cancellation, Context, Session, Workload};

/// What the scheduler carries for the runtime.
pub(crate) struct Runtime;

impl Host for Runtime {
    type Job = Arc<dyn Job>;
    type Session = OpenSession;
    type Prepared = PreparedReference;
    type Value = KeptBuffers;
    type State = Box<dyn Any + Send>;
}

/// A session of any workload, and the bytes it holds.
pub(crate) struct OpenSession {
    pub(crate) session: Box<dyn Any + Send>,
    pub(crate) gauge: Arc<Gauge>,
}

/// A prepared reference of any workload, and the bytes it holds.
#[derive(Clone)]
pub(crate) struct PreparedReference {
    pub(crate) prepared: AnyPrepared,
    pub(crate) gauge: Arc<Gauge>,
}

impl PreparedReference {
    pub(crate) fn bytes(&self) -> Bytes {
        self.gauge.now()
    }
}

/// What a task gave.
pub(crate) struct Ran {
    pub(crate) output: Output,
    /// Buffers that stay as its value.
    pub(crate) kept: Option<KeptBuffers>,
}

/// The output of a task: for whoever asked for it, or for the next stage of its pipeline.
pub(crate) enum Output {
    Last(Box<dyn Any + Send>),
    Next(Box<Described>),
    /// For several tasks at once.
    Fan(Box<Fan>),
}

/// How a task ended, type-erased.
pub(crate) type End = Result<(Box<dyn Any + Send>, Report), TaskError>;

/// A task type-erased.
pub(crate) trait Job: Send + Sync {
    fn open_session(&self, rung: &Rung, backend: &mut dyn Backend) -> Result<Box<dyn Any + Send>, Fault>;
    /// Opens a session that goes on with what another one held.
    fn resume_session(
        &self,
        rung: &Rung,
        state: &(dyn Any + Send),
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Any + Send>, Fault>;
    /// Takes what a session holds out of it.
    fn leave(&self, session: &mut OpenSession, backend: &mut dyn Backend) -> Result<Box<dyn Any + Send>, Fault>;
    /// Prepares the `at`-th of its references that differ.
    fn prepare(&self, session: &mut OpenSession, at: usize, backend: &mut dyn Backend) -> Result<AnyPrepared, Fault>;
    /// Runs with its references that differ, prepared, and its values at hand.
    fn run(
        &self,
        session: &mut OpenSession,
        references: &[AnyPrepared],
        values: AtHand<'_>,
        backend: &mut dyn Backend,
    ) -> Result<Ran, Fault>;
    /// It was taken in: the scheduler counts it as a reader of its values from now on.
    fn spend_values(&self);
    /// Whether the group that it belongs to has been ended: nothing more of it is taken in.
    fn is_of_an_ended_group(&self) -> bool;
    /// If it is a stage of this item, the stages after it are at least this urgent. Says whether it is.
    fn raise(&self, item: u64, priority: Priority) -> bool;
    /// The attempts in vain at the stages before it: its item's, and so part of what its own report says.
    fn inherit(&self, attempts: Vec<Attempt>);
    /// What it inherited and its own.
    fn attempts_and(&self, own: Vec<Attempt>) -> Vec<Attempt>;
    /// The result goes to whoever asked for it.
    fn deliver(&self, task: TaskId, end: End, another_follows: bool);
    /// It was not taken in: whoever asked is told so.
    fn refuse(&self, error: TaskError);
    /// Which completions the result goes to, to tell whether two results go to the same.
    fn reply_address(&self) -> usize;
    /// From now on the work may stop.
    fn stop(&self);
    fn is_stopped(&self) -> bool;
}

/// A task that was done: its result, and where and at what cost.
#[derive(Debug)]
pub struct Done<O> {
    /// Which task.
    pub id: TaskId,
    /// Its place among the inputs of a `run_all` or a pipeline, or among the tasks submitted to an inbox, from 0.
    pub index: u64,
    /// Its result.
    pub output: O,
    /// Device, rung, attempts, times and bytes. Of an item of a pipeline: those of its last stage, and the attempts at all.
    pub report: Report,
}

/// A task that ended without a result.
#[derive(Clone, Debug)]
pub struct RunError {
    /// Which task; `None` if it was never taken in.
    pub id: Option<TaskId>,
    /// Its place among the inputs of a `run_all` or a pipeline, or among the tasks submitted to an inbox, from 0.
    pub index: u64,
    /// Why.
    pub error: TaskError,
}

impl RunError {
    pub(crate) fn of(id: TaskId, error: TaskError) -> Self {
        Self { id: Some(id), index: 0, error }
    }

    /// One that was never taken in.
    pub(crate) fn refused(index: u64, error: TaskError) -> Self {
        Self { id: None, index, error }
    }
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

/// What it says is what its error says: the chain goes on behind that.
impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// How a task ended.
pub type TaskResult<O> = Result<Done<O>, RunError>;

/// A result on its way, with the number that its caller gave the task.
pub(crate) struct Completion<O> {
    pub(crate) tag: u64,
    pub(crate) result: TaskResult<O>,
}

/// Who hands in tasks: of which workload, and where their results go. All tasks of one caller share it.
pub(crate) struct ReplyChannel<W: Workload> {
    pub(crate) known: Arc<Known<W>>,
    pub(crate) reply: Arc<CompletionQueue<Completion<W::Output>>>,
    /// The stage that follows this one, in a pipeline.
    pub(crate) then: Option<Arc<dyn Then<W::Output>>>,
    /// Where the results of several tasks of one item are gathered, if this is one of them.
    branch: Option<Box<dyn Branch<W::Output>>>,
    /// The pipeline's work that this is a stage of.
    pub(crate) group: Option<Arc<Group>>,
}

/// One of several tasks of an item.
pub(crate) trait Branch<O>: Send + Sync {
    fn post(&self, result: TaskResult<O>);
}

impl<W: Workload> ReplyChannel<W> {
    pub(crate) fn new(known: &Arc<Known<W>>) -> Arc<Self> {
        let reply = Arc::new(CompletionQueue::new());
        Arc::new(Self { known: Arc::clone(known), reply, then: None, branch: None, group: None })
    }

    /// A stage of a pipeline.
    pub(crate) fn of_stage(known: &Arc<Known<W>>, following: Following<W::Output>) -> Arc<Self> {
        let Following { reply, then, group } = following;
        Arc::new(Self { known: Arc::clone(known), reply, then, branch: None, group: Some(group) })
    }

    /// One of several tasks of an item: nothing is ever posted to its own queue.
    pub(crate) fn of_branch(
        known: &Arc<Known<W>>,
        branch: Box<dyn Branch<W::Output>>,
        group: &Arc<Group>,
    ) -> Arc<Self> {
        let (reply, group) = (Arc::new(CompletionQueue::new()), Some(Arc::clone(group)));
        Arc::new(Self { known: Arc::clone(known), reply, then: None, branch: Some(branch), group })
    }

    /// Tells it from every other caller's while it lives; all stages of one pipeline's work have the same.
    pub(crate) fn address(&self) -> usize {
        self.group.as_ref().map_or(std::ptr::from_ref(self).addr(), |group| Arc::as_ptr(group).addr())
    }

    /// The result of a task goes to whoever asked for it; a failure of any stage ends its item there.
    pub(crate) fn fail(&self, tag: u64, failure: RunError, another_follows: bool) {
        if let Some(then) = &self.then {
            return then.fail(tag, failure, another_follows);
        }
        Group::fail(self.group.as_deref(), || self.post(tag, Err(failure), another_follows));
    }

    fn post(&self, tag: u64, result: TaskResult<W::Output>, another_follows: bool) {
        match &self.branch {
            Some(branch) => branch.post(result),
            None => self.reply.post(Completion { tag, result }, another_follows),
        }
    }
}

pub(crate) struct TypedJob<W: Workload> {
    pub(crate) channel: Arc<ReplyChannel<W>>,
    pub(crate) input: W::Input,
    pub(crate) references: NamedReferences<W>,
    pub(crate) values: SmallVec<[Value; 1]>,
    pub(crate) tag: u64,
    /// The item that it is a stage of.
    pub(crate) item: Option<Item>,
    /// The level that its item was raised to since.
    pub(crate) raised: AtomicU8,
    /// Attempts in vain at the stages before it; hardly ever any.
    pub(crate) inherited: OnceLock<Vec<Attempt>>,
    pub(crate) stopped: AtomicBool,
}

impl<W: Workload> TypedJob<W> {
    fn session<'a>(&self, open: &'a mut OpenSession) -> Result<&'a mut Box<dyn Session<W>>, Fault> {
        let named = || {
            Fault::work(format!("a session of another workload was handed to {}", self.channel.known.workload.name()))
        };
        open.session.downcast_mut().ok_or_else(named)
    }
}

impl<W: Workload> Job for TypedJob<W> {
    fn open_session(&self, rung: &Rung, backend: &mut dyn Backend) -> Result<Box<dyn Any + Send>, Fault> {
        let session = self.channel.known.workload.open(rung, &self.input, backend)?;
        Ok(Box::new(session))
    }

    fn resume_session(
        &self,
        rung: &Rung,
        state: &(dyn Any + Send),
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Any + Send>, Fault> {
        let session = self.channel.known.workload.resume(rung, &self.input, state, backend)?;
        Ok(Box::new(session))
    }

    fn leave(&self, open: &mut OpenSession, backend: &mut dyn Backend) -> Result<Box<dyn Any + Send>, Fault> {
        self.session(open)?.leave(backend)
    }

    fn prepare(&self, open: &mut OpenSession, at: usize, backend: &mut dyn Backend) -> Result<AnyPrepared, Fault> {
        let prepared = self.session(open)?.prepare(&self.references.nth_distinct(at).data, backend)?;
        Ok(Arc::new(prepared))
    }

    fn run(
        &self,
        open: &mut OpenSession,
        references: &[AnyPrepared],
        values: AtHand<'_>,
        backend: &mut dyn Backend,
    ) -> Result<Ran, Fault> {
        let references = &self.references.at_their_places(references)[..];
        let shared = values.shared;
        let mut context = Context {
            backend,
            cancellation: Cancellation(&self.stopped),
            references,
            values,
            progress: &self.channel.reply.progress,
            of: PhantomData,
        };
        let output = self.session(open)?.run(&self.input, &mut context)?;
        let kept = context.values.kept.take();
        let output = match (&self.channel.then, self.item) {
            (Some(then), Some(item)) => {
                let item = item.raised(Priority::of_level(self.raised.load(Ordering::Relaxed)));
                then.follow(shared, item, self.tag, output)
            }
            _ => Output::Last(Box::new(output)),
        };
        Ok(Ran { output, kept })
    }

    fn spend_values(&self) {
        self.values.iter().for_each(Value::spend);
    }

    fn is_of_an_ended_group(&self) -> bool {
        self.channel.group.as_ref().is_some_and(|group| group.has_ended())
    }

    fn reply_address(&self) -> usize {
        self.channel.address()
    }

    fn deliver(&self, id: TaskId, end: End, another_follows: bool) {
        let result = match end {
            Ok((output, mut report)) => {
                let output = *output.downcast().expect("`run` of this very job boxed it");
                report.attempts = self.attempts_and(std::mem::take(&mut report.attempts));
                Ok(Done { id, index: self.tag, output, report })
            }
            Err(error) => {
                let failure = RunError { id: Some(id), index: self.tag, error };
                return self.channel.fail(self.tag, failure, another_follows);
            }
        };
        self.channel.post(self.tag, result, another_follows);
    }

    fn inherit(&self, attempts: Vec<Attempt>) {
        self.inherited.get_or_init(|| attempts);
    }

    fn attempts_and(&self, own: Vec<Attempt>) -> Vec<Attempt> {
        match self.inherited.get() {
            Some(earlier) => earlier.iter().cloned().chain(own).collect(),
            None => own,
        }
    }

    fn raise(&self, item: u64, priority: Priority) -> bool {
        self.raised.fetch_max(if self.tag == item { priority.level() as u8 } else { 0 }, Ordering::Relaxed);
        self.tag == item
    }

    fn refuse(&self, error: TaskError) {
        self.channel.fail(self.tag, RunError::refused(self.tag, error), false);
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
