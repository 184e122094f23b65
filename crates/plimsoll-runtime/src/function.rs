//! Workloads made of plain functions that run on the CPU: one function, or several of which each needs less memory.
//! Never knows what a function really uses: the bytes that it says are promised, so that it waits or steps down before it
//! runs, not in the middle.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Quality, Rung};

use crate::backend::Backend;
use crate::workload::{Context, Session, Workload};

/// What a function that was called with [`function_with`] has at hand.
pub type Call<'a, I, O> = Context<'a, Function<I, O>>;

type Work<I, O> = dyn Fn(&I, &mut Call<'_, I, O>) -> Result<O, Fault> + Send + Sync;

type BytesOf<I> = dyn Fn(&I) -> Bytes + Send + Sync;

/// A workload made of a plain function that runs on the CPU.
///
/// ```
/// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
/// use plimsoll::{Orchestrator, Task, workload};
/// let orchestrator = Orchestrator::builder().cpu(2).build();
/// let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));
/// assert_eq!(orchestrator.run(&square, Task::new(12))?.output, 144);
/// # Ok::<(), plimsoll::RunError>(())
/// ```
pub fn function<I, O, E>(name: &str, work: impl Fn(&I) -> Result<O, E> + Send + Sync + 'static) -> Function<I, O>
where
    I: Send + Sync + 'static,
    O: Send + 'static,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    function_with(name, move |input: &I, _: &mut Call<'_, I, O>| work(input))
}

/// A workload made of a function that looks now and then whether its result is still wanted, and says how far it is.
///
/// ```
/// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
/// use plimsoll::Bytes;
/// use plimsoll::{Orchestrator, Task, workload};
/// let orchestrator = Orchestrator::builder().cpu(2).build();
/// let sort = workload::function_with("sort", |numbers: &Vec<u64>, call| {
///     call.check_cancelled()?;
///     let mut sorted = numbers.clone();
///     sorted.sort();
///     call.progress(1, 1);
///     Ok::<_, plimsoll::Fault>(sorted)
/// })
/// .units(|numbers| numbers.len() as u64)
/// .bytes(|numbers| Bytes(8 * numbers.len() as u64));
/// let sort = orchestrator.register(sort);
/// assert_eq!(orchestrator.run(&sort, Task::new(vec![3, 1, 2]))?.output, [1, 2, 3]);
/// # Ok::<(), plimsoll::RunError>(())
/// ```
pub fn function_with<I, O, E>(
    name: &str,
    work: impl Fn(&I, &mut Call<'_, I, O>) -> Result<O, E> + Send + Sync + 'static,
) -> Function<I, O>
where
    I: Send + Sync + 'static,
    O: Send + 'static,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    Function {
        name: name.to_owned(),
        units: Box::new(|_| 1),
        ways: vec![Way::new("cpu", work)],
        same_for_all: OnceLock::new(),
    }
}

/// A workload made of one or several functions. See [`function`] and [`function_with`].
pub struct Function<I: Send + Sync + 'static, O: Send + 'static> {
    name: String,
    units: Box<dyn Fn(&I) -> u64 + Send + Sync>,
    /// Best first; never empty.
    ways: Vec<Way<I, O>>,
    /// The ladder of every input, if none of the ways asks the input: made once.
    same_for_all: OnceLock<Ladder>,
}

/// One rung: a function and what it needs.
struct Way<I: Send + Sync + 'static, O: Send + 'static> {
    rung: &'static str,
    /// `None` if it does not say.
    bytes: Option<Box<BytesOf<I>>>,
    quality: Quality,
    work: Arc<Work<I, O>>,
}

impl<I: Send + Sync + 'static, O: Send + 'static> Way<I, O> {
    fn new<E: Into<Box<dyn Error + Send + Sync>>>(
        rung: &'static str,
        work: impl Fn(&I, &mut Call<'_, I, O>) -> Result<O, E> + Send + Sync + 'static,
    ) -> Self {
        let work = move |input: &I, call: &mut Call<'_, I, O>| work(input, call).map_err(fault);
        Self { rung, bytes: None, quality: Quality::FULL, work: Arc::new(work) }
    }

    fn rung(&self, input: &I) -> Rung {
        let bytes = self.bytes.as_ref().map_or(Bytes::ZERO, |bytes| bytes(input));
        Rung::new(self.rung, Place::On(DeviceKind::Cpu), Footprint::task(bytes)).with_quality(self.quality)
    }
}

/// What a function passes on with `?` from its call stays what it is; everything else is the work's own error.
fn fault<E: Into<Box<dyn Error + Send + Sync>>>(error: E) -> Fault {
    match error.into().downcast::<Fault>() {
        Ok(fault) => *fault,
        Err(error) => Fault::work(error),
    }
}

impl<I: Send + Sync + 'static, O: Send + 'static> Function<I, O> {
    /// How much of it there is (bytes, items): what its time is proportional to. Without it, all inputs count as alike.
    #[must_use]
    pub fn units(mut self, units: impl Fn(&I) -> u64 + Send + Sync + 'static) -> Self {
        self.units = Box::new(units);
        self
    }

    /// The memory that it takes at most, beside its input: promised before it runs, so that tasks together stay under the
    /// line. Of the rung named last.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Fn(&I) -> Bytes + Send + Sync + 'static) -> Self {
        self.last().bytes = Some(Box::new(bytes));
        self
    }

    /// How good its result is, of the rung named last. Tasks that ask for more do not take it.
    #[must_use]
    pub fn quality(mut self, quality: Quality) -> Self {
        self.last().quality = quality;
        self
    }

    /// One more rung, below those named before: another way to do the same in less memory, taken when they do not fit.
    ///
    /// # Panics
    /// If a rung of that name is there already, as the first one, "cpu", is.
    #[must_use]
    pub fn or<E: Into<Box<dyn Error + Send + Sync>>>(
        mut self,
        rung: &'static str,
        work: impl Fn(&I, &mut Call<'_, I, O>) -> Result<O, E> + Send + Sync + 'static,
    ) -> Self {
        assert!(self.ways.iter().all(|way| way.rung != rung), "there is a rung '{rung}' already");
        self.ways.push(Way::new(rung, work));
        self
    }

    fn last(&mut self) -> &mut Way<I, O> {
        self.ways.last_mut().expect("there is at least one way")
    }
}

struct FunctionSession<I: Send + Sync + 'static, O: Send + 'static>(Arc<Work<I, O>>);

impl<I: Send + Sync + 'static, O: Send + 'static> Workload for Function<I, O> {
    type Input = I;
    type Reference = ();
    type Prepared = ();
    type Output = O;

    fn name(&self) -> &str {
        &self.name
    }

    fn units(&self, input: &I) -> u64 {
        (self.units)(input)
    }

    fn ladder(&self, input: &I) -> Ladder {
        let made = || self.ways.iter().map(|way| way.rung(input)).collect::<Vec<_>>().into();
        match self.ways.iter().all(|way| way.bytes.is_none()) {
            true => self.same_for_all.get_or_init(made).clone(),
            false => made(),
        }
    }

    fn open(&self, rung: &Rung, _: &I, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        let way = self.ways.iter().find(|way| way.rung == rung.name);
        let way = way.ok_or_else(|| Fault::work(format!("{} has no rung '{}'", self.name, rung.name)))?;
        Ok(Box::new(FunctionSession(Arc::clone(&way.work))))
    }
}

impl<I: Send + Sync + 'static, O: Send + 'static> Session<Function<I, O>> for FunctionSession<I, O> {
    fn run(&mut self, input: &I, call: &mut Call<'_, I, O>) -> Result<O, Fault> {
        (self.0)(input, call)
    }
}

impl<I: Send + Sync + 'static, O: Send + 'static> fmt::Debug for Function<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rungs: Vec<&str> = self.ways.iter().map(|way| way.rung).collect();
        f.debug_struct("Function").field("name", &self.name).field("rungs", &rungs).finish_non_exhaustive()
    }
}
