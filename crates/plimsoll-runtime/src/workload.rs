//! What a workload is: it lists rungs and opens sessions; a session prepares references and runs tasks.
//! Never names a device API: a session reaches its device through the [`Backend`] it is handed.

use std::any::Any;
use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::task::SessionShape;
use plimsoll_core::{Bytes, ContentKey, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use xxhash_rust::xxh3::xxh3_128;

use crate::backend::{Backend, Buffer};
use crate::value::{AtHand, Value};

/// A kind of work.
pub trait Workload: Send + Sync + Sized + 'static {
    /// One piece of work. Kept until the task ends, so that it can be tried again on another rung.
    type Input: Send + Sync + 'static;
    /// What many tasks share and a session prepares once; `()` if there is none.
    type Reference: Content;
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

/// A reference as a session prepared it.
pub type Prepared = Arc<dyn Any + Send + Sync>;

/// A warm instance of a workload on a device: costly to open, cheap to use. Used by one task at a time.
pub trait Session<W: Workload>: Send {
    /// Prepares a reference for this and later tasks.
    ///
    /// # Errors
    /// As [`Session::run`].
    fn prepare(&mut self, _reference: &W::Reference, _backend: &mut dyn Backend) -> Result<Prepared, Fault> {
        Err(Fault::work("this workload takes no references"))
    }

    /// Does one task.
    ///
    /// # Errors
    /// What went wrong; [`Fault`] says what happens then.
    fn run(&mut self, input: &W::Input, context: &mut Context<'_>) -> Result<W::Output, Fault>;

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
pub struct Context<'a> {
    /// The way to its device.
    pub backend: &'a mut dyn Backend,
    /// Its references, in the order in which the task named them.
    pub references: &'a [Prepared],
    /// Whether its result is still wanted.
    pub cancellation: Cancellation<'a>,
    pub(crate) values: AtHand<'a>,
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

impl<'a> Context<'a> {
    /// Whether the result is still wanted. Long work asks now and then.
    ///
    /// # Errors
    /// [`Fault::Cancelled`] if it is not, to be passed on with `?`.
    pub fn check_cancelled(&self) -> Result<(), Fault> {
        self.cancellation.check()
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

    /// A reference as the type that [`Session::prepare`] gave it.
    ///
    /// # Errors
    /// [`Fault::WorkFailed`] if the task named no such reference, or it is of another type.
    pub fn reference<T: Any + Send + Sync>(&self, at: usize) -> Result<&'a T, Fault> {
        let prepared =
            self.references.get(at).ok_or_else(|| Fault::work(format!("the task names no reference {at}")))?;
        prepared.downcast_ref().ok_or_else(|| Fault::work(format!("reference {at} was prepared as another type")))
    }
}

/// Something whose content can be told apart by a hash.
pub trait Content: Send + Sync + 'static {
    /// The hash of everything that preparing it depends on.
    fn key(&self) -> ContentKey;
}

/// The key of some bytes.
pub fn content_key(bytes: &[u8]) -> ContentKey {
    ContentKey(xxh3_128(bytes))
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

/// A workload made of a plain function that runs on the CPU.
///
/// ```
/// use plimsoll_runtime::{Orchestrator, Task, workload};
/// let orchestrator = Orchestrator::builder().cpu(2).build();
/// let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));
/// assert_eq!(orchestrator.run(&square, Task::new(12))?.output, 144);
/// # Ok::<(), plimsoll_runtime::TaskFailure>(())
/// ```
pub fn function<I, O, E, F>(name: &str, work: F) -> Function<I, O, F>
where
    F: Fn(&I) -> Result<O, E> + Send + Sync + 'static,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let rung = Rung::new("cpu", Place::On(DeviceKind::Cpu), Footprint::task(Bytes::ZERO));
    Function { name: name.to_owned(), ladder: Ladder::new([rung]), work: Arc::new(work), types: PhantomData }
}

/// See [`function`].
pub struct Function<I, O, F> {
    name: String,
    ladder: Ladder,
    work: Arc<F>,
    types: PhantomData<fn(&I) -> O>,
}

struct FunctionSession<F>(Arc<F>);

impl<I, O, E, F> Workload for Function<I, O, F>
where
    I: Send + Sync + 'static,
    O: Send + 'static,
    E: Into<Box<dyn Error + Send + Sync>> + 'static,
    F: Fn(&I) -> Result<O, E> + Send + Sync + 'static,
{
    type Input = I;
    type Reference = ();
    type Output = O;

    fn name(&self) -> &str {
        &self.name
    }

    fn ladder(&self, _input: &I) -> Ladder {
        self.ladder.clone()
    }

    fn open(&self, _: &Rung, _: &I, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(FunctionSession(Arc::clone(&self.work))))
    }
}

impl<I, O, E, F> Session<Function<I, O, F>> for FunctionSession<F>
where
    I: Send + Sync + 'static,
    O: Send + 'static,
    E: Into<Box<dyn Error + Send + Sync>> + 'static,
    F: Fn(&I) -> Result<O, E> + Send + Sync + 'static,
{
    fn run(&mut self, input: &I, _context: &mut Context<'_>) -> Result<O, Fault> {
        (self.0)(input).map_err(|error| Fault::work(error))
    }
}
