//! Which stages of a slab run on a GPU: chosen once, from what may, what can, and what was measured on this machine.
//! Never changes a byte. Invariant: a stage that must run somewhere does, or it is an error before anything is written.

use std::fmt;
use std::sync::Arc;

use plimsoll_arrays::work::{Batch, DeviceStages, EncodeWork, Form, LevelsWork, Slab, StagedSlabsWork, TrialWork};
use plimsoll_arrays::{Layout, LevelLayout};
use plimsoll_blocks::pool::Pool;
use plimsoll_core::{Bytes, DeviceKind, Nanos};
use plimsoll_runtime::{Orchestrator, Registered, Task, Workload};

use super::error::ArrayError;
use super::writer::ArrayOptions;
use super::{engine, rows, slabs};
use crate::stage_choice::StageChoice;

/// Times that each choice is tried where nothing is known of it: the first time also compiles and allocates.
const TRIES: usize = 2;

/// Which stages run on a GPU, and why.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) stages: DeviceStages,
    pub(super) why: Why,
}

/// What a choice is expected to take for one slab.
#[derive(Copy, Clone, Debug)]
pub(super) struct Expected {
    stages: DeviceStages,
    on_gpu: Nanos,
    on_cpu: Nanos,
}

/// Why stages run where they do.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// There is nothing to be chosen.
    Only(&'static str),
    /// By what each choice takes for so many bytes.
    Measured(Bytes, Vec<Expected>),
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Only(reason) => write!(f, "on the GPU: {}; {reason}", self.stages),
            Why::Measured(bytes, all) => {
                write!(f, "on the GPU: {}; expected for {bytes} by what was measured here:", self.stages)?;
                all.iter().try_for_each(|of| {
                    write!(f, "\n  {}: {} (GPU {}, CPU cores {})", of.stages, of.longer(), of.on_gpu, of.on_cpu)
                })
            }
        }
    }
}

impl Expected {
    /// Both work beside each other.
    fn longer(&self) -> Nanos {
        self.on_gpu.max(self.on_cpu)
    }
}

fn must(choice: StageChoice) -> Option<bool> {
    match choice {
        StageChoice::Auto => None,
        StageChoice::Cpu => Some(false),
        StageChoice::Gpu => Some(true),
    }
}

/// Whether writing such an array could use a GPU.
pub(super) fn wants_gpu(layout: &Layout, options: &ArrayOptions) -> bool {
    let possible = DeviceStages::possible(layout, slabs::steps(layout));
    allowed(possible, options).any(|choice| !choice.is_none())
}

fn allowed(possible: DeviceStages, options: &ArrayOptions) -> impl Iterator<Item = DeviceStages> {
    let [levels, scatter, shuffle] = [options.levels_on, options.scatter_on, options.shuffle_on].map(must);
    let is = |asked: Option<bool>, chosen: bool| asked.is_none_or(|asked| asked == chosen);
    // Levels that there are none of are made nowhere.
    let levels = levels.filter(|_| possible.levels);
    possible.choices().filter(move |of| is(levels, of.levels) && is(scatter, of.scatter) && is(shuffle, of.shuffle))
}

/// Chooses.
///
/// # Errors
/// If a stage has to run on a GPU and cannot.
pub(super) fn choose(
    orchestrator: &Orchestrator,
    layout: &Arc<Layout>,
    options: &ArrayOptions,
) -> Result<Chosen, ArrayError> {
    let possible = DeviceStages::possible(layout, slabs::steps(layout));
    check(orchestrator, layout, possible, options)?;
    let only = |stages, reason| Ok(Chosen { stages, why: Why::Only(reason) });
    if !has_gpu(orchestrator) {
        return only(DeviceStages::default(), "there is no GPU");
    }
    let choices: Vec<DeviceStages> = allowed(possible, options).collect();
    match choices[..] {
        [] => only(DeviceStages::default(), "nothing else may be"),
        [one] => only(one, "nothing else may be"),
        _ => Ok(measured(orchestrator, layout, &choices)),
    }
}

fn has_gpu(orchestrator: &Orchestrator) -> bool {
    orchestrator.devices().any(|(_, facts)| facts.kind == DeviceKind::Gpu)
}

fn check(
    orchestrator: &Orchestrator,
    layout: &Layout,
    possible: DeviceStages,
    options: &ArrayOptions,
) -> Result<(), ArrayError> {
    let has_levels = layout.levels().len() > 1;
    let levels = format!("levels by {} of {}", layout.reduction(), layout.data_type());
    let stages = [
        ("levels", options.levels_on, possible.levels || !has_levels, levels),
        ("scatter", options.scatter_on, possible.scatter, "chunks of more steps than are handled together".to_owned()),
        ("shuffle", options.shuffle_on, possible.shuffle, "such chunks, or with this codec and order,".to_owned()),
    ];
    for (stage, on, can, what) in stages {
        match on {
            StageChoice::Gpu if !can => return Err(ArrayError::NotForGpu { stage, what }),
            StageChoice::Gpu if !has_gpu(orchestrator) && (stage != "levels" || has_levels) => {
                return Err(ArrayError::NoGpu { stage });
            }
            _ => {}
        }
    }
    let is_torn = options.shuffle_on == StageChoice::Gpu && options.scatter_on == StageChoice::Cpu;
    let what = "chunks that were cut on the CPU".to_owned();
    if is_torn { Err(ArrayError::NotForGpu { stage: "shuffle", what }) } else { Ok(()) }
}

/// The choice that takes the least for a slab; what is not known is tried first.
fn measured(orchestrator: &Orchestrator, layout: &Arc<Layout>, choices: &[DeviceStages]) -> Chosen {
    let trial = Trial::new(orchestrator, layout);
    let mut all: Vec<Expected> = choices.iter().filter_map(|stages| trial.expected(*stages)).collect();
    all.sort_by_key(Expected::longer);
    let bytes = Bytes(trial.slab.elements.len() as u64);
    match all.first() {
        Some(best) => Chosen { stages: best.stages, why: Why::Measured(bytes, all) },
        None => Chosen { stages: DeviceStages::default(), why: Why::Only("nothing could be measured") },
    }
}

/// A slab that is only tried with.
struct Trial<'a> {
    orchestrator: &'a Orchestrator,
    layout: &'a Arc<Layout>,
    pool: Pool,
    slab: Arc<Slab>,
}

impl<'a> Trial<'a> {
    /// A row of chunks, or a slab if that is less.
    fn new(orchestrator: &'a Orchestrator, layout: &'a Arc<Layout>) -> Self {
        let (grid, pool) = (&layout.levels()[0].grid, Pool::default());
        let window = layout.levels().iter().map(|level: &LevelLayout| level.factor[0]).max().unwrap_or(1);
        let steps = grid.chunk[0].next_multiple_of(window).min(slabs::steps(layout));
        let mut elements = pool.take((steps * grid.step_bytes()) as usize);
        // Neither the fill value nor all noise.
        let mixed = |at: u64| ((at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as u8).wrapping_add((at >> 6) as u8);
        elements.vec_mut().extend((0..steps * grid.step_bytes()).map(mixed));
        let slab = Arc::new(Slab { first: 0, steps, elements, form: Form::Steps, place: None });
        Self { orchestrator, layout, pool, slab }
    }

    /// What a choice takes; none if it cannot be had.
    fn expected(&self, stages: DeviceStages) -> Option<Expected> {
        let mut cut = Arc::clone(&self.slab);
        let mut on_gpu = Nanos::ZERO;
        if !stages.is_none() {
            let work = StagedSlabsWork::new(self.layout, &self.pool, slabs::steps(self.layout), stages);
            let work = self.orchestrator.register(TrialWork::new(work));
            let (time, output) = self.time(&work, || Arc::clone(&self.slab), DeviceKind::Gpu, stages.scatter)?;
            on_gpu = time;
            cut = output.and_then(|slabs| slabs.into_iter().next()).unwrap_or(cut);
        }
        let mut on_cpu = Nanos::ZERO;
        if self.layout.levels().len() > 1 && !stages.levels {
            let work = self.orchestrator.register(LevelsWork::new(self.layout, &self.pool));
            on_cpu = self.time(&work, || Arc::clone(&self.slab), DeviceKind::Cpu, false)?.0;
        }
        let encode = EncodeWork::new(self.layout, &self.pool).of_slabs(stages.form());
        let encode = self.orchestrator.register(encode);
        let batch = self.batch(cut);
        let packed = (batch.chunks.len() * self.layout.levels()[0].grid.chunk_bytes()) as f64;
        let pack = self.time(&encode, || batch.clone(), DeviceKind::Cpu, false)?.0;
        let pack = pack.0 as f64 * self.slab.elements.len() as f64 / packed.max(1.0);
        let slots = engine::slots(self.orchestrator) as u64;
        Some(Expected { stages, on_gpu, on_cpu: Nanos((on_cpu.0 + pack as u64) / slots) })
    }

    fn batch(&self, slab: Arc<Slab>) -> Batch {
        let grid = &self.layout.levels()[0].grid;
        let in_row = grid.chunks_in_object() / grid.chunks_per_object[0] as usize;
        let chunks = 0..rows::chunks_in_batch(grid).min(in_row);
        Batch { level: 0, object: vec![0; grid.rank()], chunks, slabs: Arc::new([slab]) }
    }

    /// What a task takes by the profile, tried first if that does not know it, or if its output is needed.
    fn time<W: Workload>(
        &self,
        work: &Registered<W>,
        input: impl Fn() -> W::Input,
        kind: DeviceKind,
        is_output_needed: bool,
    ) -> Option<(Nanos, Option<W::Output>)> {
        let devices: Vec<_> =
            self.orchestrator.devices().filter(|(_, facts)| facts.kind == kind).map(|(id, _)| id).collect();
        let known = || {
            let candidates = self.orchestrator.why(work, Task::new(input()).devices(devices.iter().copied()));
            let estimates = candidates.into_iter().filter_map(|candidate| candidate.estimate);
            estimates.filter(|estimate| estimate.measured).map(|estimate| estimate.run).min()
        };
        let mut output = None;
        let tries = if known().is_none() { TRIES } else { usize::from(is_output_needed) };
        for _ in 0..tries {
            let done = self.orchestrator.run(work, Task::new(input()).devices(devices.iter().copied()));
            output = Some(done.ok()?.output);
        }
        known().map(|time| (time, output))
    }
}
