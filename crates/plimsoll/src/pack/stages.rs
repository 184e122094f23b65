//! The stages of a recipe as a pipeline: one table from a recipe to its stages, used by every entry.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream as _;
use plimsoll_blocks::pool::Pool;
use plimsoll_blocks::workloads::{Block, CodeFrameWork, CodeMemberWork, FilterWork, FindWork, Found, PackWork, Packed};
use plimsoll_blocks::{Format, Method, Recipe};
use plimsoll_core::{Bytes, DeviceId, SubmitErrorKind};
use plimsoll_runtime::{Flow, ItemResult, Orchestrator, Pipeline, SubmitError, Task, Workload};

use super::error::PackError;
use crate::stage_choice::StageChoice;

/// Where each stage may run. What a block becomes does not depend on it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Filtering.
    pub filter: StageChoice,
    /// Match finding, of the staged method.
    pub find: StageChoice,
    /// Coding, of the staged method; zstd is always coded on the CPU.
    pub code: StageChoice,
}

impl Stages {
    /// Whether a stage of the recipe could use a GPU.
    pub fn want_gpu(&self, recipe: &Recipe) -> bool {
        let could = |choice: StageChoice| choice != StageChoice::Cpu;
        match recipe.method {
            Method::Library => self.filters_apart(recipe),
            Method::Staged => {
                let codes = recipe.format == Format::Gzip && could(self.code);
                could(self.find) || codes || (recipe.filter.is_some() && could(self.filter))
            }
        }
    }

    /// Whether the filter is a stage of its own. On the CPU it costs less than handing a block over, so the library's
    /// method does it in the same call unless a GPU is asked for.
    fn filters_apart(&self, recipe: &Recipe) -> bool {
        let alone = recipe.method == Method::Staged || self.filter == StageChoice::Gpu;
        recipe.filter.is_some() && alone
    }
}

/// A pipeline on which blocks go in and come out packed.
pub(super) trait BlockFlow {
    fn submit(&mut self, block: Block, bytes: Bytes) -> Result<u64, SubmitErrorKind>;
    /// The next result; none if nothing is outstanding.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<ItemResult<Packed>>>;
    fn outstanding(&self) -> usize;
}

struct Stream<First: Workload<Input = Block>> {
    flow: Flow<First, Packed>,
    /// Where its first stage may run.
    first: Vec<DeviceId>,
}

impl<First: Workload<Input = Block>> BlockFlow for Stream<First> {
    fn submit(&mut self, block: Block, bytes: Bytes) -> Result<u64, SubmitErrorKind> {
        let task = allowed(Task::new(block), &self.first);
        self.flow.submit_sized(task, bytes).map_err(|SubmitError { reason, .. }| reason)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<ItemResult<Packed>>> {
        Pin::new(&mut self.flow).poll_next(context)
    }

    fn outstanding(&self) -> usize {
        self.flow.outstanding()
    }
}

fn allowed<W: Workload>(task: Task<W>, devices: &[DeviceId]) -> Task<W> {
    if devices.is_empty() { task } else { task.devices(devices.iter().copied()) }
}

/// The devices that a choice means; none for all of them.
fn devices_of(
    orchestrator: &Orchestrator,
    choice: StageChoice,
    stage: &'static str,
) -> Result<Vec<DeviceId>, PackError> {
    choice.devices(orchestrator).ok_or(PackError::NoGpu { stage })
}

/// The pipeline for a recipe.
pub(super) fn open(
    orchestrator: &Orchestrator,
    recipe: &Recipe,
    stages: Stages,
    pool: &Pool,
    items: usize,
) -> Result<Box<dyn BlockFlow>, PackError> {
    let filter = recipe.filter.filter(|_| stages.filters_apart(recipe));
    let filter_on = devices_of(orchestrator, stages.filter, "filter")?;
    let find_on = devices_of(orchestrator, stages.find, "match")?;
    let code_on = devices_of(orchestrator, stages.code, "code")?;
    let pack = PackWork::new(*recipe, pool);
    Ok(match (recipe.method, filter) {
        (Method::Library, None) => {
            let pack = orchestrator.register(pack);
            stream(orchestrator, Pipeline::of(&pack), Vec::new(), items)
        }
        (Method::Library, Some(filter)) => {
            let filtering = orchestrator.register(FilterWork::new(filter, pool));
            let pack = orchestrator.register(pack.after_filter());
            stream(orchestrator, Pipeline::of(&filtering).then(&pack, Task::new), filter_on, items)
        }
        (Method::Staged, None) => {
            let finding = orchestrator.register(FindWork::new(recipe));
            coded(orchestrator, recipe, pool, Pipeline::of(&finding), code_on, find_on, items)
        }
        (Method::Staged, Some(filter)) => {
            let filtering = orchestrator.register(FilterWork::new(filter, pool));
            let finding = orchestrator.register(FindWork::new(recipe));
            let pipeline = Pipeline::of(&filtering).then(&finding, move |block| allowed(Task::new(block), &find_on));
            coded(orchestrator, recipe, pool, pipeline, code_on, filter_on, items)
        }
    })
}

/// What was found is coded as the format asks for.
fn coded<First: Workload<Input = Block>>(
    orchestrator: &Orchestrator,
    recipe: &Recipe,
    pool: &Pool,
    pipeline: Pipeline<First, Found>,
    code_on: Vec<DeviceId>,
    first: Vec<DeviceId>,
    items: usize,
) -> Box<dyn BlockFlow> {
    match recipe.format {
        Format::Zstd => {
            let coding = orchestrator.register(CodeFrameWork::new(*recipe, pool));
            stream(orchestrator, pipeline.then(&coding, Task::new), first, items)
        }
        Format::Gzip | Format::Bgzf => {
            let coding = orchestrator.register(CodeMemberWork::new(pool));
            let pipeline = pipeline.then(&coding, move |found| allowed(Task::new(found), &code_on));
            stream(orchestrator, pipeline, first, items)
        }
    }
}

fn stream<First: Workload<Input = Block>>(
    orchestrator: &Orchestrator,
    pipeline: Pipeline<First, Packed>,
    first: Vec<DeviceId>,
    items: usize,
) -> Box<dyn BlockFlow> {
    Box::new(Stream { flow: orchestrator.flow(&pipeline.items_max(items)), first })
}
