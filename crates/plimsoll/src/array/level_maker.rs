//! The stages before packing: slabs in, each with its coarser ones out, in the same order. Where they run is chosen once.
//! Invariant: what comes out does not depend on where.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream as _;
use plimsoll_arrays::Layout;
use plimsoll_arrays::work::{DeviceStages, LevelsWork, Slab, StagedSlabsWork};
use plimsoll_blocks::pool::Pool;
use plimsoll_core::Bytes;
use plimsoll_runtime::{Flow, ItemResult, Orchestrator, Pipeline, SubmitError, Task, TaskResult};

use super::error::ArrayError;
use super::held_levels::HeldLevels;
use super::writer::ArrayOptions;
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

/// The maker for a layout: in a session that is held, or on all CPU cores.
pub(super) fn open(
    orchestrator: &Orchestrator,
    layout: &Arc<Layout>,
    pool: &Pool,
    chosen: DeviceStages,
    options: &ArrayOptions,
) -> Box<dyn LevelMaker> {
    if chosen.is_none() {
        return Box::new(SideBySide::new(orchestrator, layout, pool));
    }
    let work = StagedSlabsWork::new(layout, pool, slabs::steps(layout), chosen).shared_by(options.arrays_at_once);
    let all = [
        (chosen.levels, options.levels_on),
        (chosen.scatter, options.scatter_on),
        (chosen.shuffle, options.shuffle_on),
    ];
    let must = all.iter().any(|(is, on)| *is && *on == StageChoice::Gpu);
    Box::new(HeldLevels::new(orchestrator, work, if must { StageChoice::Gpu } else { StageChoice::Auto }))
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
