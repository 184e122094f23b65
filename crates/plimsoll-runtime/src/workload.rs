//! What a workload is: it lists rungs and opens sessions; a session prepares references and runs tasks.
//! Never names a device API: a session reaches its device through the [`Backend`] it is handed.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use plimsoll_core::task::SessionShape;
use plimsoll_core::{ContentKey, Fault, Ladder, Rung};
use twox_hash::XxHash3_128;

use crate::backend::{Backend, Buffer};
use crate::completions::PROGRESS_WHOLE;
use crate::value::{AtHand, Value};

pub use crate::function::{Call, Function, function, function_with};

/// A kind of work.
pub trait Workload: Send + Sync + Sized + 'static {
    /// One piece of work. Kept until the task ends, so that it can be tried again on another rung.
    type Input: Send + Sync + 'static;
    /// What many tasks share and a session prepares once; `()` if there is none.
    type Reference: Content;
    /// A reference as its sessions prepare it; `()` if there is none. Rungs that prepare different things have an enum here.
    type Prepared: Send + Sync + 'static;
    /// What a task gives.
    type Output: Send + 'static;

    /// Its name in the profile, events and errors.
    fn name(&self) -> &str;

    /// How much of it there is (pixels, bytes, items): what its time is proportional to.
    fn units(&self, _input: &Self::Input) -> u64 {
        1
    }

    /// The ways to do it, best first.
    fn ladder(&self, input: &Self::Input) -> Ladder;

    /// Everything that changes a session's answer or size. Tasks with equal shapes share warm sessions.
    fn shape(&self, _input: &Self::Input) -> SessionShape {
        SessionShape::default()
    }

    /// Opens a session for this rung and for inputs of this shape.
    ///
    /// # Errors
    /// [`Fault::OutOfMemory`] steps down; see [`Fault`].
    fn open(
        &self,
        rung: &Rung,
        input: &Self::Input,
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Session<Self>>, Fault>;

    /// Opens a session for this rung that goes on with what another one held: what its [`Session::leave`] gave.
    ///
    /// # Errors
    /// As [`Workload::open`]. What the other one held is kept, and tried on the next rung.
    fn resume(
        &self,
        _rung: &Rung,
        _input: &Self::Input,
        _state: &(dyn Any + Send),
        _backend: &mut dyn Backend,
    ) -> Result<Box<dyn Session<Self>>, Fault> {
        Err(Fault::work("sessions of this workload cannot go on elsewhere"))
    }
}

/// A reference as a session prepared it, type-erased: what the scheduler keeps.
pub(crate) type AnyPrepared = Arc<dyn Any + Send + Sync>;

/// A warm instance of a workload on a device: costly to open, cheap to use. Used by one task at a time.
pub trait Session<W: Workload>: Send {
    /// Prepares a reference for this and later tasks.
    ///
    /// # Errors
    /// As [`Session::run`].
    fn prepare(&mut self, _reference: &W::Reference, _backend: &mut dyn Backend) -> Result<W::Prepared, Fault> {
        Err(Fault::work("this workload takes no references"))
    }

    /// Does one task.
    ///
    /// # Errors
    /// What went wrong; [`Fault`] says what happens then.
    fn run(&mut self, input: &W::Input, context: &mut Context<'_, W>) -> Result<W::Output, Fault>;

    /// Takes all that it holds from task to task into host memory, because a held session has to step down: see
    /// [`crate::Held::recall`]. It is closed after that.
    ///
    /// # Errors
    /// As [`Session::run`]. What it held is lost then.
    fn leave(&mut self, _backend: &mut dyn Backend) -> Result<Box<dyn Any + Send>, Fault> {
        Err(Fault::work("sessions of this workload cannot go on elsewhere"))
    }
}

/// What a running task has at hand.
pub struct Context<'a, W: Workload> {
    /// The way to its device.
    pub backend: &'a mut dyn Backend,
    /// Whether its result is still wanted.
    pub cancellation: Cancellation<'a>,
    /// In the order in which the task named them.
    pub(crate) references: &'a [AnyPrepared],
    pub(crate) values: AtHand<'a>,
    pub(crate) progress: &'a AtomicU32,
    pub(crate) of: PhantomData<fn() -> W>,
}

impl<W: Workload> fmt::Debug for Context<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("cancellation", &self.cancellation).finish_non_exhaustive()
    }
}

/// Whether a task's result is still wanted.
#[derive(Copy, Clone, Debug)]
pub struct Cancellation<'a>(pub(crate) &'a AtomicBool);

impl Cancellation<'_> {
    /// Work that nobody can cancel, such as preparing a reference that other tasks want too.
    pub fn never() -> Cancellation<'static> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Cancellation(&NEVER)
    }

    /// Long work asks now and then.
    ///
    /// # Errors
    /// [`Fault::Cancelled`] if the result is not wanted any more, to be passed on with `?`.
    pub fn check(self) -> Result<(), Fault> {
        if self.0.load(Ordering::Relaxed) { Err(Fault::Cancelled) } else { Ok(()) }
    }
}

impl<'a, W: Workload> Context<'a, W> {
    /// Whether the result is still wanted. Long work asks now and then.
    ///
    /// # Errors
    /// [`Fault::Cancelled`] if it is not, to be passed on with `?`.
    pub fn check_cancelled(&self) -> Result<(), Fault> {
        self.cancellation.check()
    }

    /// Says how much of the task is done: `done` of `of`. Whoever has its ticket can ask: see [`crate::Ticket::progress`].
    pub fn progress(&self, done: u64, of: u64) {
        let share = done.min(of) as f64 / of.max(1) as f64;
        self.progress.store((share * f64::from(PROGRESS_WHOLE)) as u32, Ordering::Relaxed);
    }

    /// The buffers of the `at`-th value that the task takes, on this very device.
    ///
    /// # Errors
    /// [`Fault::WorkFailed`] if the task takes no such value.
    pub fn value(&self, at: usize) -> Result<&'a [Buffer], Fault> {
        let value = self.values.taken.get(at).ok_or_else(|| Fault::work(format!("the task takes no value {at}")))?;
        Ok(&value.0)
    }

    /// Keeps buffers on this device as the task's value: the claim to it goes into the output. The rung says with
    /// [`Rung::with_value`] how many bytes it keeps.
    ///
    /// # Errors
    /// [`Fault::WorkFailed`] if the task has kept a value already.
    pub fn keep(&mut self, buffers: Vec<Buffer>) -> Result<Value, Fault> {
        self.values.keep(buffers)
    }

    /// The `at`-th reference that the task names, as [`Session::prepare`] made it. It outlives the context, so the backend
    /// can be used beside it.
    ///
    /// # Errors
    /// [`Fault::WorkFailed`] if the task names no such reference.
    pub fn reference(&self, at: usize) -> Result<&'a W::Prepared, Fault> {
        let prepared = self.references.get(at).and_then(|prepared| prepared.downcast_ref());
        prepared.ok_or_else(|| Fault::work(format!("the task names no reference {at}")))
    }

    /// All its references, in the order in which the task names them.
    pub fn references(&self) -> impl Iterator<Item = &'a W::Prepared> + use<'a, W> {
        self.references.iter().filter_map(|prepared| prepared.downcast_ref())
    }
}

/// Something whose content can be told apart by a hash.
pub trait Content: Send + Sync + 'static {
    /// The hash of everything that preparing it depends on.
    fn key(&self) -> ContentKey;
}

/// The key of some bytes.
pub fn content_key(bytes: &[u8]) -> ContentKey {
    ContentKey(XxHash3_128::oneshot(bytes))
}

impl Content for () {
    fn key(&self) -> ContentKey {
        ContentKey(0)
    }
}

impl<T: bytemuck::NoUninit + Send + Sync> Content for Vec<T> {
    fn key(&self) -> ContentKey {
        content_key(bytemuck::cast_slice(self))
    }
}
