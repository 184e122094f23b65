//! Slabs in, an array out: levels made and chunks packed side by side, objects written in order.
//! Never holds more than the windows below. Invariant: what is written depends on the slabs and the layout alone; an error
//! comes once, and is that of the first slab or batch that has one.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use futures_util::Stream as _;
use plimsoll_arrays::Layout;
use plimsoll_arrays::sink::Sink;
use plimsoll_arrays::work::{DeviceStages, EncodeWork, Encoded, Places, Slab};
use plimsoll_blocks::pool::Pool;
use plimsoll_core::DeviceKind;
use plimsoll_runtime::{Flow, ItemResult, Orchestrator, Pipeline, SubmitError, Task, TaskResult};

use super::begin::{self, Begun};
use super::error::ArrayError;
use super::level_maker::{self, LevelMaker};
use super::rows::{Cut, Rows};
use super::shards::{Shards, Stored, Written};
use super::watch::ArrayWatch;
use super::writer::ArrayOptions;
use crate::in_order::InOrder;
use crate::intake::{Broken, Intake};

/// Packed batches that wait for the store.
pub(super) const WRITTEN_AHEAD: usize = 16;
/// Slots that count for how much is under way; on larger machines bytes are the bound.
const SLOTS_MAX: usize = 128;
/// Slabs whose levels are made at once.
const SLABS_MAX: usize = 4;

/// What the engine works for.
pub(super) struct Job {
    pub(super) layout: Arc<Layout>,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) pool: Pool,
    /// Closed when nothing more is taken in.
    pub(super) places: Places,
    pub(super) options: ArrayOptions,
    /// What a GPU does.
    pub(super) stages: DeviceStages,
    /// Where it begins.
    pub(super) begun: Begun,
}

/// How many batches are under way: one for each slot, as many waiting, and two for what is late.
pub(super) fn batches_max(orchestrator: &Orchestrator) -> usize {
    2 * slots(orchestrator) + 2
}

/// How many slabs are made levels of at once.
pub(super) fn slabs_max(orchestrator: &Orchestrator) -> usize {
    slots(orchestrator).clamp(1, SLABS_MAX)
}

/// Slots that pack chunks: those of the CPU.
pub(super) fn slots(orchestrator: &Orchestrator) -> usize {
    let cpus = orchestrator.devices().filter(|(_, facts)| facts.kind == DeviceKind::Cpu);
    let slots: usize = cpus.map(|(_, facts)| facts.slots.max(1)).sum();
    slots.clamp(1, SLOTS_MAX)
}

/// Writes everything that comes. Says how many steps the array has, and what was stored of those that came.
pub(super) fn write(
    orchestrator: &Orchestrator,
    job: &Job,
    slabs: impl Iterator<Item = Result<Slab, ArrayError>> + Send + 'static,
) -> Result<(u64, Stored), ArrayError> {
    let levels = level_maker::open(orchestrator, &job.layout, &job.pool, job.stages, &job.options);
    let shards = Shards::new(&job.layout, &job.sink, &job.options.watch, &job.begun.lengths)?;
    if job.begun.there.is_none() {
        shards.publish(0)?;
    }
    let (to_store, from_engine) = bounded(WRITTEN_AHEAD);
    let storing = thread::Builder::new().name("plimsoll-array-out".to_owned());
    let storing = storing
        .spawn(move || store(shards, &from_engine))
        .map_err(|error| ArrayError::Panicked(format!("no thread could be started: {error}")))?;
    let mut engine = Engine::new(orchestrator, job, levels, Intake::start("plimsoll-array-in", slabs));
    let ended = engine.run(&to_store);
    drop(to_store);
    job.places.close();
    let stored = storing.join().unwrap_or_else(|panic| Err(ArrayError::Panicked(message(&*panic))));
    // What the store says comes first: the engine may only have noticed that it is gone.
    let shards = stored?;
    let steps = ended?;
    finish(job, shards, steps, engine.last.take())
}

/// Ends the array with what came. What was there before is left as it is if less came than that.
fn finish(job: &Job, shards: Shards, steps: u64, error: Option<ArrayError>) -> Result<(u64, Stored), ArrayError> {
    let there = job.begun.there.unwrap_or(0);
    if steps < there {
        return Err(error.unwrap_or(ArrayError::Shorter { steps, there }));
    }
    let stored = shards.end(steps)?;
    if job.begun.there.is_some() {
        begin::remove_behind(&job.sink, &job.layout, steps)?;
    }
    error.map_or(Ok((steps, stored)), Err)
}

fn store(mut shards: Shards, from_engine: &Receiver<Written>) -> Result<Shards, ArrayError> {
    for written in from_engine {
        shards.take(&written)?;
    }
    Ok(shards)
}

pub(super) fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

struct Engine<'a> {
    watch: &'a ArrayWatch,
    /// `None` once it has nothing more to give.
    input: Option<Intake<Slab, ArrayError>>,
    levels: Box<dyn LevelMaker>,
    rows: Vec<Rows>,
    /// Cut, and not yet submitted.
    cuts: VecDeque<Cut>,
    encode: Flow<EncodeWork, Encoded>,
    batches_max: usize,
    encoded: InOrder<TaskResult<Encoded>>,
    /// Submitted, and not yet handed to the store.
    following: VecDeque<Cut>,
    /// Steps of the full resolution that came, and bytes of one.
    steps: u64,
    step_bytes: u64,
    has_ended: bool,
    /// What ended the input.
    last: Option<ArrayError>,
}

impl<'a> Engine<'a> {
    fn new(
        orchestrator: &Orchestrator,
        job: &'a Job,
        levels: Box<dyn LevelMaker>,
        input: Intake<Slab, ArrayError>,
    ) -> Self {
        let Job { layout, pool, stages, options, begun: Begun { first, .. }, .. } = job;
        let batches_max = batches_max(orchestrator);
        let encode = orchestrator.register(EncodeWork::new(layout, pool).of_slabs(stages.form()));
        let rows = |level: usize| Rows::new(layout, level, first.div_ceil(layout.levels()[level].factor[0]));
        Self {
            watch: &options.watch,
            input: Some(input),
            levels,
            rows: (0..layout.levels().len()).map(rows).collect(),
            cuts: VecDeque::new(),
            encode: orchestrator.flow(&Pipeline::of(&encode).items_max(batches_max)),
            batches_max,
            encoded: InOrder::new(),
            following: VecDeque::new(),
            steps: *first,
            step_bytes: layout.levels()[0].grid.step_bytes(),
            has_ended: false,
            last: None,
        }
    }

    /// Hands everything to the store, in order. Says how many steps the array has then.
    fn run(&mut self, to_store: &Sender<Written>) -> Result<u64, ArrayError> {
        while let Some(written) = self.next() {
            if to_store.send(written?).is_err() {
                // The store says why.
                return Ok(self.steps);
            }
        }
        Ok(self.steps)
    }

    fn next(&mut self) -> Option<Result<Written, ArrayError>> {
        pollster::block_on(poll_fn(|context| self.poll(context)))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Written, ArrayError>>> {
        if self.watch.sign().poll_raised(context).is_ready() {
            return Poll::Ready(Some(Err(ArrayError::Stopped)));
        }
        if let Err(error) = self.advance(context) {
            return Poll::Ready(Some(Err(error)));
        }
        if let Some((_, result)) = self.encoded.take() {
            return Poll::Ready(self.following.pop_front().map(|cut| written(cut, result)));
        }
        if self.has_ended && self.following.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }

    /// Moves everything on as far as it goes.
    fn advance(&mut self, context: &mut Context<'_>) -> Result<(), ArrayError> {
        loop {
            let mut has_moved = self.take_slab(context)?;
            has_moved |= self.cut(context)?;
            while let Poll::Ready(Some(ItemResult { item, result })) = Pin::new(&mut self.encode).poll_next(context) {
                if let (Ok(done), Some(level)) = (&result, self.level_of(item)) {
                    self.watch.pack(done.output.raw, level);
                }
                self.encoded.put(item, result);
            }
            has_moved |= self.submit_batches()?;
            if !has_moved && !self.levels.hurry()? {
                return Ok(());
            }
        }
    }

    /// Takes one more slab in, if there is room for it.
    fn take_slab(&mut self, context: &mut Context<'_>) -> Result<bool, ArrayError> {
        let has_room = self.levels.has_room() && self.cuts.len() <= self.batches_max;
        let Some(input) = self.input.as_mut().filter(|_| has_room) else {
            return Ok(false);
        };
        let Poll::Ready(given) = input.poll_item(context) else {
            return Ok(false);
        };
        match given {
            Some(Ok(slab)) => {
                self.steps = slab.end();
                self.levels.submit(slab)?;
            }
            Some(Err(Broken::Failed(ArrayError::Stopped))) => return Err(ArrayError::Stopped),
            Some(Err(Broken::Failed(error))) => (self.input, self.last) = (None, Some(error)),
            Some(Err(Broken::Panicked(message))) => return Err(ArrayError::Panicked(message)),
            None => self.input = None,
        }
        Ok(true)
    }

    /// Cuts the next slabs of all levels into batches, and what is left when nothing more comes.
    fn cut(&mut self, context: &mut Context<'_>) -> Result<bool, ArrayError> {
        if let Poll::Ready(slabs) = self.levels.poll(context) {
            let slabs = slabs?;
            self.watch.prepare(slabs.first().map_or(0, |slab| slab.steps * self.step_bytes));
            for (rows, slab) in self.rows.iter_mut().zip(slabs) {
                self.cuts.extend(rows.add(slab));
            }
            return Ok(true);
        }
        let is_over = self.input.is_none() && self.levels.is_empty() && !self.has_ended;
        if is_over {
            self.has_ended = true;
            self.cuts.extend(self.rows.iter_mut().flat_map(Rows::end));
        }
        Ok(is_over)
    }

    /// The level of a batch that was submitted and not handed to the store.
    fn level_of(&self, item: u64) -> Option<usize> {
        let before = item.checked_sub(self.encoded.taken())?;
        self.following.get(before as usize).map(|cut| cut.batch.level)
    }

    fn submit_batches(&mut self) -> Result<bool, ArrayError> {
        let mut has_moved = false;
        while self.encode.outstanding() < self.batches_max
            && self.following.len() < 2 * self.batches_max
            && let Some(cut) = self.cuts.pop_front()
        {
            let submitted = self.encode.submit(Task::new(cut.batch.clone()));
            let refused =
                |SubmitError { reason, .. }| ArrayError::Refused { what: "packing chunks".to_owned(), reason };
            submitted.map_err(refused)?;
            self.following.push_back(cut);
            has_moved = true;
        }
        Ok(has_moved)
    }
}

fn written(cut: Cut, result: TaskResult<Encoded>) -> Result<Written, ArrayError> {
    let Cut { batch, ends_object, ends_row_of_objects } = cut;
    let done = result.map_err(|failure| ArrayError::Work {
        what: format!("packing chunks of level {}, object {:?}", batch.level, batch.object),
        failure: Arc::new(failure),
    })?;
    Ok(Written { level: batch.level, object: batch.object, encoded: done.output, ends_object, ends_row_of_objects })
}
