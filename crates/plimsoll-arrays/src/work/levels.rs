//! Levels: every coarser slab of a slab of the full resolution, each made from the one before it.
//! Invariant: what comes out depends on the slab alone. So a slab begins where the windows of every level do, and only the
//! last one of an array may end within a window.

use std::sync::Arc;

use plimsoll_blocks::pool::Pool;
use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use super::{Form, Slab};
use crate::layout::Layout;
use crate::levels::{Block, reduce};

/// Makes the slabs of every level but the first.
#[derive(Debug)]
pub struct LevelsWork {
    layout: Arc<Layout>,
    pool: Pool,
}

impl LevelsWork {
    /// For arrays of this layout.
    pub fn new(layout: &Arc<Layout>, pool: &Pool) -> Self {
        Self { layout: Arc::clone(layout), pool: pool.clone() }
    }

    fn bytes(&self, slab: &Slab) -> Bytes {
        let level = |at: usize| {
            let level = &self.layout.levels()[at];
            slab.steps.div_ceil(level.factor[0]) * level.grid.step_bytes()
        };
        Bytes((1..self.layout.levels().len()).map(level).sum())
    }
}

impl Workload for LevelsWork {
    type Input = Arc<Slab>;
    type Reference = ();
    type Prepared = ();
    /// The slab that came, and those of the coarser levels.
    type Output = Vec<Arc<Slab>>;

    fn name(&self) -> &str {
        "array-levels"
    }

    fn units(&self, slab: &Arc<Slab>) -> u64 {
        slab.elements.len() as u64
    }

    fn ladder(&self, slab: &Arc<Slab>) -> Ladder {
        let rung = Rung::new("cpu", Place::On(DeviceKind::Cpu), Footprint::task(self.bytes(slab)));
        Ladder::from(vec![rung])
    }

    fn open(&self, _: &Rung, _: &Arc<Slab>, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(LevelsSession { layout: Arc::clone(&self.layout), pool: self.pool.clone() }))
    }
}

struct LevelsSession {
    layout: Arc<Layout>,
    pool: Pool,
}

impl Session<LevelsWork> for LevelsSession {
    fn run(&mut self, slab: &Arc<Slab>, context: &mut Context<'_, LevelsWork>) -> Result<Vec<Arc<Slab>>, Fault> {
        all_levels(&self.layout, &self.pool, slab, || context.check_cancelled())
    }
}

/// A slab and those of all coarser levels, each made from the one before it. Asks before each whether it is still wanted.
pub(super) fn all_levels(
    layout: &Layout,
    pool: &Pool,
    slab: &Arc<Slab>,
    is_wanted: impl Fn() -> Result<(), Fault>,
) -> Result<Vec<Arc<Slab>>, Fault> {
    let mut slabs = vec![Arc::clone(slab)];
    for level in 1..layout.levels().len() {
        is_wanted()?;
        slabs.push(Arc::new(coarser(layout, pool, &slabs[level - 1], level)));
    }
    Ok(slabs)
}

fn coarser(layout: &Layout, pool: &Pool, finer: &Slab, level: usize) -> Slab {
    let [finer_level, this] = [level - 1, level].map(|level| &layout.levels()[level]);
    let mut shape: Vec<usize> = finer_level.grid.shape.iter().map(|size| *size as usize).collect();
    shape[0] = finer.steps as usize;
    let block = Block { elements: &finer.elements, shape: &shape, halved: &this.halved };
    let steps = block.reduced_shape()[0] as u64;
    let mut elements = pool.take((steps * this.grid.step_bytes()) as usize);
    reduce(layout.data_type(), layout.reduction(), block, elements.vec_mut());
    let by = if this.halved[0] { 2 } else { 1 };
    Slab { first: finer.first / by, steps, elements, form: Form::Steps, place: None }
}
