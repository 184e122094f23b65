//! A task of any workload, as the workers see it.
//! Never decides; never tells two results of one task apart by anything but the scheduler's word.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::scheduler::{Host, Report};
use plimsoll_core::{Bytes, Fault, Rung, TaskError, TaskId};

use crate::backend::Backend;
use crate::completions::CompletionQueue;
use crate::gauge::Gauge;
use crate::task::NamedReferences;
use crate::task_path::Known;
use crate::workload::{Cancellation, Context, Prepared, Session, Workload};

/// What the scheduler carries for the runtime.
pub(crate) struct Runtime;

impl Host for Runtime {
    type Job = Arc<dyn Job>;
    type Session = OpenSession;
    type Prepared = PreparedReference;
}

/// A session of any workload, and the bytes it holds.
pub(crate) struct OpenSession {
    pub(crate) session: Box<dyn Any + Send>,
    pub(crate) gauge: Arc<Gauge>,
}

/// A prepared reference of any workload, and the bytes it holds.
#[derive(Clone)]
pub(crate) struct PreparedReference {
    pub(crate) prepared: Prepared,
    pub(crate) gauge: Arc<Gauge>,
}

impl PreparedReference {
    pub(crate) fn bytes(&self) -> Bytes {
        self.gauge.now()
    }
}

/// How a task ended, type-erased.
pub(crate) type End = Result<(Box<dyn Any + Send>, Report), TaskError>;

/// A task type-erased.
pub(crate) trait Job: Send + Sync {
    fn open_session(&self, rung: &Rung, backend: &mut dyn Backend) -> Result<Box<dyn Any + Send>, Fault>;
    /// Prepares the `at`-th of its references that differ.
    fn prepare(&self, session: &mut OpenSession, at: usize, backend: &mut dyn Backend) -> Result<Prepared, Fault>;
    /// Runs with its references that differ, prepared.
    fn run(
        &self,
        session: &mut OpenSession,
        references: &[Prepared],
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Any + Send>, Fault>;
    /// The result goes to whoever asked for it.
    fn deliver(&self, task: TaskId, end: End, another_follows: bool);
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
    /// Its result.
    pub output: O,
    /// Device, rung, attempts, times and bytes.
    pub report: Report,
}

/// A task that ended without a result.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct TaskFailure {
    /// Which task; `None` if it was never taken in.
    pub id: Option<TaskId>,
    /// Why.
    #[source]
    pub error: TaskError,
}

/// How a task ended.
pub type TaskResult<O> = Result<Done<O>, TaskFailure>;

/// A result on its way, with the number that its caller gave the task.
pub(crate) struct Completion<O> {
    pub(crate) tag: u64,
    pub(crate) result: TaskResult<O>,
}

/// Who hands in tasks: of which workload, and where their results go. All tasks of one caller share it.
pub(crate) struct ReplyChannel<W: Workload> {
    pub(crate) known: Arc<Known<W>>,
    pub(crate) reply: Arc<CompletionQueue<Completion<W::Output>>>,
}

impl<W: Workload> ReplyChannel<W> {
    pub(crate) fn new(known: &Arc<Known<W>>) -> Arc<Self> {
        Arc::new(Self { known: Arc::clone(known), reply: Arc::new(CompletionQueue::new()) })
    }

    /// Tells it from every other caller's while it lives.
    pub(crate) fn address(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }
}

pub(crate) struct TypedJob<W: Workload> {
    pub(crate) channel: Arc<ReplyChannel<W>>,
    pub(crate) input: W::Input,
    pub(crate) references: NamedReferences<W>,
    pub(crate) tag: u64,
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

    fn prepare(&self, open: &mut OpenSession, at: usize, backend: &mut dyn Backend) -> Result<Prepared, Fault> {
        self.session(open)?.prepare(&self.references.nth_distinct(at).data, backend)
    }

    fn run(
        &self,
        open: &mut OpenSession,
        references: &[Prepared],
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Any + Send>, Fault> {
        let references = &self.references.at_their_places(references)[..];
        let mut context = Context { backend, references, cancellation: Cancellation(&self.stopped) };
        let output = self.session(open)?.run(&self.input, &mut context)?;
        Ok(Box::new(output))
    }

    fn reply_address(&self) -> usize {
        self.channel.address()
    }

    fn deliver(&self, id: TaskId, end: End, another_follows: bool) {
        let result = match end {
            Ok((output, report)) => {
                let output = *output.downcast().expect("`run` of this very job boxed it");
                Ok(Done { id, output, report })
            }
            Err(error) => Err(TaskFailure { id: Some(id), error }),
        };
        self.channel.reply.post(Completion { tag: self.tag, result }, another_follows);
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
