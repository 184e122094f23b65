//! The stages of a recipe as a pipeline: one table from a recipe to its stages, used by every entry.

use std::task::{Context, Poll};

use plimsoll_blocks::pool::Pool;
use plimsoll_blocks::workloads::{Block, FilterWork, PackWork, Packed};
use plimsoll_blocks::{Method, Recipe};
use plimsoll_core::{Bytes, DeviceId, DeviceKind};
use plimsoll_runtime::{Flow, ItemResult, Orchestrator, Pipeline, Task, TaskRefused, Workload};

/// Where a stage may run.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum StageChoice {
    /// Wherever it finishes first.
    #[default]
    Auto,
    /// On the CPU, and nowhere else.
    Cpu,
    /// On a GPU, and nowhere else.
    Gpu,
}

/// Where each stage may run. What a block becomes does not depend on it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Filtering.
    pub filter: StageChoice,
}

impl Stages {
    /// Whether a stage of the recipe could use a GPU.
    pub fn want_gpu(&self, recipe: &Recipe) -> bool {
        let filters = recipe.filter.is_some() && self.filter != StageChoice::Cpu;
        filters && (recipe.method == Method::Staged || self.filter == StageChoice::Gpu)
    }
}

/// A pipeline on which blocks go in and come out packed.
pub(super) trait BlockFlow {
    fn submit(&mut self, block: Block, bytes: Bytes) -> Result<u64, plimsoll_core::SubmitRefusal>;
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ItemResult<Packed>>;
    fn outstanding(&self) -> usize;
}

struct Stream<First: Workload<Input = Block>, Last: Workload<Output = Packed>> {
    flow: Flow<First, Last>,
    /// Where its first stage may run.
    first: Vec<DeviceId>,
}

impl<First: Workload<Input = Block>, Last: Workload<Output = Packed>> BlockFlow for Stream<First, Last> {
    fn submit(&mut self, block: Block, bytes: Bytes) -> Result<u64, plimsoll_core::SubmitRefusal> {
        let task = allowed(Task::new(block), &self.first);
        self.flow.submit_sized(task, bytes).map_err(|TaskRefused { reason, .. }| reason)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ItemResult<Packed>> {
        self.flow.poll_result(context)
    }

    fn outstanding(&self) -> usize {
        self.flow.outstanding()
    }
}

fn allowed<W: Workload>(task: Task<W>, devices: &[DeviceId]) -> Task<W> {
    if devices.is_empty() { task } else { task.devices(devices.iter().copied()) }
}

/// The devices that a choice means; none for all of them.
fn devices_of(orchestrator: &Orchestrator, choice: StageChoice) -> Vec<DeviceId> {
    let kind = match choice {
        StageChoice::Auto => return Vec::new(),
        StageChoice::Cpu => DeviceKind::Cpu,
        StageChoice::Gpu => DeviceKind::Gpu,
    };
    orchestrator.devices().filter(|(_, facts)| facts.kind == kind).map(|(id, _)| id).collect()
}

/// The pipeline for a recipe. A filter on the CPU is fused with what follows; elsewhere it is a stage of its own.
pub(super) fn open(
    orchestrator: &Orchestrator,
    recipe: &Recipe,
    stages: Stages,
    pool: &Pool,
    items: usize,
) -> Box<dyn BlockFlow> {
    let pack = PackWork::new(*recipe, pool);
    match recipe.filter.filter(|_| stages.want_gpu(recipe)) {
        None => {
            let pack = orchestrator.register(pack);
            let flow = orchestrator.flow(&Pipeline::of(&pack).items_max(items));
            Box::new(Stream { flow, first: Vec::new() })
        }
        Some(filter) => {
            let filtering = orchestrator.register(FilterWork::new(filter, pool));
            let pack = orchestrator.register(pack.after_filter());
            let pipeline = Pipeline::of(&filtering).then(&pack, |done| Task::new(Block { bytes: done.bytes }));
            let flow = orchestrator.flow(&pipeline.items_max(items));
            Box::new(Stream { flow, first: devices_of(orchestrator, stages.filter) })
        }
    }
}
