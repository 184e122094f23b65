//! The writer: whoever has steps appends them, in pieces of any size.
//! Never blocks longer than it was allowed to. Invariant: what was taken is written in the order in which it came, or an
//! error says from where on it is not.

use std::io::Read;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, bounded};
use plimsoll_arrays::Layout;
use plimsoll_arrays::sink::{Sink, WriteLock};
use plimsoll_arrays::work::{NoPlace, Places, StagedSlabsWork};
use plimsoll_blocks::pool::Pool;
use plimsoll_runtime::Orchestrator;

use super::begin::{self, Begin};
use super::engine::{self, Job};
use super::error::ArrayError;
use super::plan::ArrayPlan;
use super::shards::Stored;
use super::slabs;
use super::slabs_in::{Appended, AppendedSlabs, Cutter, Filling, ReadSlabs};
use super::stages;
use super::watch::ArrayWatch;
use crate::stage_choice::StageChoice;

/// How an array is written.
#[derive(Clone, Debug)]
pub struct ArrayOptions {
    /// What to do with what is there.
    pub begin: Begin,
    /// How long one append may wait for the store.
    pub append_wait_max: Duration,
    /// Where levels may be made. The bytes are the same.
    pub levels_on: StageChoice,
    /// Where slabs may be cut into chunks.
    pub scatter_on: StageChoice,
    /// Where chunks may be shuffled for their codec. What is shuffled on a GPU was cut there.
    pub shuffle_on: StageChoice,
    /// How many arrays are written at once with the devices of the orchestrator, this one included.
    pub arrays_at_once: usize,
    /// Follows it, and ends it.
    pub watch: ArrayWatch,
}

impl ArrayOptions {
    /// Whether writing an array of this layout can use a GPU: nobody needs to open one otherwise.
    pub fn wants_gpu(&self, layout: &Layout) -> bool {
        stages::wants_gpu(layout, self)
    }

    /// Which stages would run on a GPU, in which schedule, and why: a sentence a line. What is not known yet is measured.
    ///
    /// # Errors
    /// [`ArrayError`] if a stage has to run where it cannot.
    pub fn explain(&self, orchestrator: &Orchestrator, layout: &Layout) -> Result<String, ArrayError> {
        let layout = Arc::new(layout.clone());
        let chosen = stages::choose(orchestrator, &layout, self)?;
        let work = StagedSlabsWork::new(&layout, &Pool::default(), slabs::steps(&layout), chosen.stages);
        match work.shared_by(self.arrays_at_once).plan_at_best() {
            Some(plan) => Ok(format!("{chosen}\nschedule: {plan}")),
            None => Ok(format!("{chosen}\nschedule: slabs side by side on CPU cores")),
        }
    }
}

impl Default for ArrayOptions {
    fn default() -> Self {
        Self {
            begin: Begin::New,
            append_wait_max: Duration::from_secs(60),
            levels_on: StageChoice::default(),
            scatter_on: StageChoice::default(),
            shuffle_on: StageChoice::default(),
            arrays_at_once: 1,
            watch: ArrayWatch::default(),
        }
    }
}

/// What became of an array.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArraySummary {
    /// Steps along its first dimension.
    pub steps: u64,
    /// Those of them that were there before.
    pub resumed: u64,
    /// Bytes of the full resolution that were written now.
    pub raw: u64,
    /// Bytes that were stored for them, all levels together.
    pub stored: u64,
    /// Chunks that were stored; those that hold nothing but the fill value are not.
    pub chunks: u64,
    /// Objects that were stored.
    pub objects: u64,
}

/// Writes everything that a reader gives, and returns when all of it is in the store.
///
/// # Errors
/// [`ArrayError`]; every shard that was published is whole.
pub fn write_array(
    orchestrator: &Orchestrator,
    layout: Layout,
    sink: Arc<dyn Sink>,
    input: impl Read + Send + 'static,
    options: &ArrayOptions,
) -> Result<ArraySummary, ArrayError> {
    let (prepared, job) = Prepared::new(orchestrator, layout, sink, options)?;
    let skip = prepared.first * job.layout.levels()[0].grid.step_bytes();
    let slabs = ReadSlabs::new(input, prepared.cutter, skip, &options.watch);
    let written = engine::write(orchestrator, &job, slabs)?;
    Ok(summary(&job, written))
}

/// Steps into an array, as they come.
///
/// ```
/// use std::sync::Arc;
///
/// use plimsoll::Orchestrator;
/// use plimsoll::array::sink::Memory;
/// use plimsoll::array::{ArrayOptions, ArraySpec, ArrayWriter, DataType, Layout};
///
/// let spec = ArraySpec { codec: "zstd:1".parse()?, ..ArraySpec::new(vec![0, 64, 64], DataType::U16, vec![4, 32, 32]) };
/// let store = Arc::new(Memory::default());
/// let orchestrator = Arc::new(Orchestrator::builder().cpu(2).build());
/// let mut writer = ArrayWriter::new(orchestrator, Layout::new(&spec)?, store, ArrayOptions::default())?;
/// for frame in 0..10_u16 {
///     let pixels = vec![frame; 64 * 64];
///     writer.append(&pixels.iter().flat_map(|pixel| pixel.to_le_bytes()).collect::<Vec<u8>>())?;
/// }
/// assert_eq!(writer.close()?.steps, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ArrayWriter {
    cutter: Cutter,
    /// The slab that is being filled.
    filling: Option<Wanted>,
    /// `None` once it has ended.
    to_engine: Option<Sender<Appended>>,
    engine: Option<JoinHandle<Result<ArraySummary, ArrayError>>>,
    /// What ended it before its time.
    failed: Option<ArrayError>,
    options: ArrayOptions,
    plan: ArrayPlan,
    first: u64,
    /// Steps that did not fit in time.
    dropped: u64,
}

impl std::fmt::Debug for ArrayWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrayWriter").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl ArrayWriter {
    /// Begins an array in a store, on the devices of an orchestrator.
    ///
    /// # Errors
    /// [`ArrayError`] if something else is there, or the store cannot be written.
    pub fn new(
        orchestrator: impl Into<Arc<Orchestrator>>,
        layout: Layout,
        sink: Arc<dyn Sink>,
        options: ArrayOptions,
    ) -> Result<Self, ArrayError> {
        let orchestrator = orchestrator.into();
        let (prepared, job) = Prepared::new(&orchestrator, layout, sink, &options)?;
        let Prepared { cutter, first, lock, plan } = prepared;
        // Every slab there may be, and the end.
        let (to_engine, slabs) = bounded(plan.slab_count + 1);
        let engine = thread::Builder::new().name("plimsoll-array".to_owned()).spawn(move || {
            let written = engine::write(&orchestrator, &job, AppendedSlabs::new(slabs));
            drop(lock);
            written.map(|written| summary(&job, written))
        });
        let engine = engine.map_err(|error| ArrayError::Panicked(format!("no thread could be started: {error}")))?;
        Ok(Self {
            filling: None,
            cutter,
            to_engine: Some(to_engine),
            engine: Some(engine),
            failed: None,
            options,
            plan,
            first,
            dropped: 0,
        })
    }

    /// The step that the next byte belongs to if none was appended yet: where an earlier run ended.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// What it needs.
    pub fn plan(&self) -> ArrayPlan {
        self.plan
    }

    /// Takes bytes in: any number, a part of an element too. Waits while the store is slower, at most as long as the
    /// options say.
    ///
    /// # Errors
    /// [`ArrayError::Busy`] says how many of the bytes were taken; any other error ends the array.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), ArrayError> {
        let waited = self.options.append_wait_max;
        let taken = self.take_in(bytes, Instant::now().checked_add(waited))?;
        if taken == bytes.len() { Ok(()) } else { Err(ArrayError::Busy { waited, taken }) }
    }

    /// Takes in what can be taken without waiting; says how many bytes that was. A camera that cannot wait knows by it
    /// what is lost.
    ///
    /// # Errors
    /// As [`ArrayWriter::append`], but never that it is busy.
    pub fn try_append(&mut self, bytes: &[u8]) -> Result<usize, ArrayError> {
        self.take_in(bytes, Some(Instant::now()))
    }

    /// Takes in a whole step, or nothing of it if that would have to wait: for cameras, which do not. Says whether it was
    /// taken; the others are counted, see [`ArrayWriter::dropped`].
    ///
    /// # Errors
    /// [`ArrayError::PartOfStep`] if it is no whole step, or comes within one; any other error ends the array.
    pub fn try_append_step(&mut self, step: &[u8]) -> Result<bool, ArrayError> {
        let wanted = self.cutter.step_bytes();
        let begun = self.filling.as_ref().map_or(0, |filling| filling.slab.elements.len() as u64 % wanted);
        if step.len() as u64 != wanted || begun > 0 {
            let rest = if begun > 0 { begun } else { step.len() as u64 };
            return Err(ArrayError::PartOfStep { rest, step: wanted });
        }
        // A slab ends with a step, so that it is taken as a whole.
        let is_taken = self.take_in(step, Some(Instant::now()))? > 0;
        self.dropped += u64::from(!is_taken);
        Ok(is_taken)
    }

    /// How many steps [`ArrayWriter::try_append_step`] did not take.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes what is left, and waits until all of it is in the store.
    ///
    /// # Errors
    /// [`ArrayError`]; every shard that was published is whole.
    pub fn close(mut self) -> Result<ArraySummary, ArrayError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let (slab, error) = self.filling.take().map_or((None, None), |filling| self.cutter.slab(filling.slab));
        if let Some(to_engine) = self.to_engine.take() {
            // A send fails only if the engine has ended; it says why.
            let _ = slab.map(|slab| to_engine.send(Some(Ok(slab))));
            let _ = to_engine.send(error.map(Err));
        }
        self.join()
    }

    fn take_in(&mut self, mut bytes: &[u8], until: Option<Instant>) -> Result<usize, ArrayError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let whole = bytes.len();
        while !bytes.is_empty() {
            if self.cutter.is_full() {
                return Err(self.cutter.too_many());
            }
            let Some(filling) = self.filling(until)? else {
                break;
            };
            let room = filling.wanted - filling.slab.elements.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            filling.slab.elements.vec_mut().extend_from_slice(now);
            let is_whole = now.len() == room;
            self.options.watch.take(now.len() as u64);
            bytes = later;
            if is_whole {
                self.hand_over()?;
            }
        }
        Ok(whole - bytes.len())
    }

    /// The slab that is being filled; none if there was no place for it in time.
    fn filling(&mut self, until: Option<Instant>) -> Result<Option<&mut Wanted>, ArrayError> {
        if self.filling.is_none() {
            match self.cutter.filling(until) {
                Ok(slab) => self.filling = Some(Wanted { slab, wanted: self.cutter.slab_bytes() }),
                Err(NoPlace::InTime) => return Ok(None),
                Err(NoPlace::Closed) => return Err(self.fail()),
            }
        }
        Ok(self.filling.as_mut())
    }

    /// Hands over the slab that is full. There is a place in the channel for every slab that there may be.
    fn hand_over(&mut self) -> Result<(), ArrayError> {
        let Some(Wanted { slab, .. }) = self.filling.take() else {
            return Ok(());
        };
        let (slab, _) = self.cutter.slab(slab);
        let is_gone = |to_engine: &Sender<Appended>| slab.is_some_and(|slab| to_engine.send(Some(Ok(slab))).is_err());
        if self.to_engine.as_ref().is_some_and(is_gone) { Err(self.fail()) } else { Ok(()) }
    }

    /// The engine has ended before its time: it says why.
    fn fail(&mut self) -> ArrayError {
        self.to_engine = None;
        let error = self.join().err().unwrap_or(ArrayError::Stopped);
        self.failed = Some(error.clone());
        error
    }

    fn join(&mut self) -> Result<ArraySummary, ArrayError> {
        let ended = self.engine.take().map(JoinHandle::join);
        match ended {
            Some(Ok(ended)) => ended,
            Some(Err(panic)) => Err(ArrayError::Panicked(engine::message(&*panic))),
            None => Err(ArrayError::Stopped),
        }
    }
}

impl Drop for ArrayWriter {
    /// What is under way is given up: published shards stay, and an array that is not closed can be resumed.
    fn drop(&mut self) {
        if self.engine.is_some() {
            self.to_engine = None;
            let _ = self.join();
        }
    }
}

/// A slab that is being filled, and how many bytes it wants.
#[derive(Debug)]
struct Wanted {
    slab: Filling,
    wanted: usize,
}

/// What must be known before the first byte.
struct Prepared {
    cutter: Cutter,
    first: u64,
    lock: Box<dyn WriteLock>,
    plan: ArrayPlan,
}

impl Prepared {
    fn new(
        orchestrator: &Orchestrator,
        layout: Layout,
        sink: Arc<dyn Sink>,
        options: &ArrayOptions,
    ) -> Result<(Self, Job), ArrayError> {
        let layout = Arc::new(layout);
        let plan = ArrayPlan::new(orchestrator, &layout).with_store(&layout, &*sink);
        // Before anything in the store is touched.
        plan.check(orchestrator)?;
        let stages = stages::choose(orchestrator, &layout, options)?.stages;
        let lock = sink.lock()?;
        let begun = begin::begin(&sink, &layout, options.begin)?;
        let first = begun.first;
        let pool = Pool::keeping(plan.slabs.0 as usize + plan.chunks.0 as usize);
        let places = Places::new(plan.slab_count);
        let cutter = Cutter::new(&layout, &pool, &places, first);
        let job = Job { layout, sink, pool, places, options: options.clone(), stages, begun };
        Ok((Self { cutter, first, lock, plan }, job))
    }
}

fn summary(job: &Job, (steps, stored): (u64, Stored)) -> ArraySummary {
    let Stored { objects, chunks, bytes } = stored;
    let raw = (steps - job.begun.first) * job.layout.levels()[0].grid.step_bytes();
    ArraySummary { steps, resumed: job.begun.first, raw, stored: bytes, chunks, objects }
}
