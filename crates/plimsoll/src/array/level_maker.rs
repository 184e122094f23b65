//! The stage that makes levels: slabs in, each with its coarser ones out, in the same order. Where it runs is chosen once.
//! Invariant: what comes out does not depend on where.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream as _;
use plimsoll_arrays::Layout;
use plimsoll_arrays::work::{LevelsWork, Slab, StagedSlabsWork, runs_on_gpu};
use plimsoll_blocks::pool::Pool;
use plimsoll_core::{Bytes, DeviceKind};
use plimsoll_runtime::{Flow, ItemResult, Orchestrator, Pipeline, SubmitError, Task, TaskResult};

use super::error::ArrayError;
use super::held_levels::HeldLevels;
use super::{engine, slabs};
use crate::in_order::InOrder;
use crate::stage_choice::StageChoice;

/// A slab of the full resolution, and those of its coarser levels behind it.
pub(super) type WithLevels = Vec<Arc<Slab>>;

/// Makes levels of slabs.
pub(super) trait LevelMaker {
    /// Whether one more slab may come now.
    fn has_room(&self) -> bool;
    fn submit(&mut self, slab: Slab) -> Result<(), ArrayError>;
    /// The next slab that is done, in the order in which they came.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<WithLevels, ArrayError>>;
    /// Nothing else can be done now: what is kept until more comes is to be done without it. Says whether there was any.
    fn hurry(&mut self) -> Result<bool, ArrayError>;
    /// Whether all that came has been given out.
    fn is_empty(&self) -> bool;
}

/// Whether levels of such an array are made on a GPU: if there is one that can, and it may.
///
/// # Errors
/// If they have to be and cannot.
pub(super) fn goes_to_gpu(orchestrator: &Orchestrator, layout: &Layout, on: StageChoice) -> Result<bool, ArrayError> {
    let has_gpu = orchestrator.devices().any(|(_, facts)| facts.kind == DeviceKind::Gpu);
    match on {
        StageChoice::Cpu => Ok(false),
        _ if layout.levels().len() == 1 => Ok(false),
        StageChoice::Auto => Ok(has_gpu && runs_on_gpu(layout)),
        StageChoice::Gpu if !runs_on_gpu(layout) => {
            let what = format!("levels by {} of {}", layout.reduction(), layout.data_type());
            Err(ArrayError::NotForGpu { what })
        }
        StageChoice::Gpu if !has_gpu => Err(ArrayError::NoGpu { stage: "levels" }),
        StageChoice::Gpu => Ok(true),
    }
}

/// The maker for a layout: in a session that is held, or on all CPU cores.
pub(super) fn open(
    orchestrator: &Orchestrator,
    layout: &Arc<Layout>,
    pool: &Pool,
    on: StageChoice,
) -> Result<Box<dyn LevelMaker>, ArrayError> {
    if goes_to_gpu(orchestrator, layout, on)? {
        let work = StagedSlabsWork::new(layout, pool, slabs::steps(layout));
        return Ok(Box::new(HeldLevels::new(orchestrator, work, on)));
    }
    Ok(Box::new(SideBySide::new(orchestrator, layout, pool)))
}

/// Whether the levels of such an array could be made on a GPU.
pub(super) fn wants_gpu(layout: &Layout, on: StageChoice) -> bool {
    on != StageChoice::Cpu && runs_on_gpu(layout)
}

/// Several slabs at once on CPU cores.
struct SideBySide {
    flow: Flow<LevelsWork, WithLevels>,
    slabs_max: usize,
    made: InOrder<TaskResult<WithLevels>>,
    /// Slabs that came and were not given out.
    inside: usize,
}

impl SideBySide {
    fn new(orchestrator: &Orchestrator, layout: &Arc<Layout>, pool: &Pool) -> Self {
        let slabs_max = engine::slabs_max(orchestrator);
        let work = orchestrator.register(LevelsWork::new(layout, pool));
        let flow = orchestrator.flow(&Pipeline::of(&work).items_max(slabs_max));
        Self { flow, slabs_max, made: InOrder::new(), inside: 0 }
    }
}

impl LevelMaker for SideBySide {
    fn has_room(&self) -> bool {
        self.flow.outstanding() < self.slabs_max
    }

    fn submit(&mut self, slab: Slab) -> Result<(), ArrayError> {
        let bytes = Bytes(slab.elements.len() as u64);
        let what = format!("making levels of the steps {} to {}", slab.first, slab.end());
        let submitted = self.flow.submit_sized(Task::new(Arc::new(slab)), bytes);
        submitted.map_err(|SubmitError { reason, .. }| ArrayError::Refused { what, reason })?;
        self.inside += 1;
        Ok(())
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<WithLevels, ArrayError>> {
        while let Poll::Ready(Some(ItemResult { item, result })) = Pin::new(&mut self.flow).poll_next(context) {
            self.made.put(item, result);
        }
        let Some((number, result)) = self.made.take() else { return Poll::Pending };
        self.inside -= 1;
        Poll::Ready(result.map(|done| done.output).map_err(|failure| ArrayError::Work {
            what: format!("making the levels of slab {number}"),
            failure: Arc::new(failure),
        }))
    }

    fn hurry(&mut self) -> Result<bool, ArrayError> {
        Ok(false)
    }

    fn is_empty(&self) -> bool {
        self.inside == 0
    }
}
