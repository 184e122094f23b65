//! Levels in a session that a sequence holds: slabs go in one after the other, and come out with their levels later, in
//! the same order. Its rungs are how many are under way on a GPU, and the CPU.
//! Never keeps a slab back that it was told to flush. Invariant: a session that steps down takes along what it has not
//! published, and the next one does that first; the bytes are the same on every rung.

use std::any::Any;
use std::sync::Arc;

use plimsoll_blocks::pool::Pool;
use plimsoll_core::staged::{Facts, Plan, Stages};
use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::staged::{Published, StagedSession};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use super::Slab;
use super::kernels::{LEVEL_BYTES_MAX, buffer_bytes, runs_on_gpu};
use super::levels::all_levels;
use super::slab_stages::{DEPTH_MAX, SlabStages, declared, level_bytes};
use crate::layout::Layout;

/// The rungs on a GPU, best first, and how many slabs each has under way.
const GPU_RUNGS: [(&str, usize); DEPTH_MAX] = [("gpu-3", 3), ("gpu-2", 2), ("gpu-1", 1)];
/// The rung on the CPU.
const CPU_RUNG: &str = "cpu";

/// What is done next.
#[derive(Clone, Debug)]
pub enum SlabStep {
    /// One more slab.
    Feed(Arc<Slab>),
    /// Everything that was fed comes out.
    Flush,
}

/// Makes the slabs of every level but the first, several slabs under way at once.
#[derive(Debug)]
pub struct StagedSlabsWork {
    layout: Arc<Layout>,
    pool: Pool,
    /// Steps of a slab at most.
    steps: u64,
    /// None if no GPU can do it.
    stages: Option<Arc<Stages>>,
}

impl StagedSlabsWork {
    /// For slabs of so many steps at most.
    pub fn new(layout: &Arc<Layout>, pool: &Pool, steps: u64) -> Self {
        let bytes = steps.saturating_mul(layout.levels()[0].grid.step_bytes());
        let may = runs_on_gpu(layout) && bytes <= LEVEL_BYTES_MAX;
        let stages = may.then(|| declared(layout, steps).expect("the declaration is in order for every layout"));
        Self { layout: Arc::clone(layout), pool: pool.clone(), steps, stages }
    }

    /// Bytes of a whole slab.
    fn slab_bytes(&self) -> u64 {
        self.steps * self.layout.levels()[0].grid.step_bytes()
    }

    fn plan(&self, rung: &str) -> Option<Plan> {
        let (_, depth) = GPU_RUNGS.into_iter().find(|(name, _)| *name == rung)?;
        self.stages.as_ref().map(|stages| Plan::select(stages, Facts::depth(depth)))
    }

    /// A session that first does what another one left.
    fn session(&self, rung: &Rung, left: Vec<Arc<Slab>>, backend: &mut dyn Backend) -> Result<LevelsHeld, Fault> {
        let (layout, pool) = (Arc::clone(&self.layout), self.pool.clone());
        let Some(plan) = self.plan(rung.name) else {
            return Ok(LevelsHeld { layout, pool, steps: self.steps, left, staged: None });
        };
        let wanted = buffer_bytes(self.slab_bytes());
        if wanted > backend.buffer_limit() {
            return Err(Fault::Unsupported { detail: format!("a buffer of {wanted} for a slab") });
        }
        let staged = StagedSession::open(plan, SlabStages::new(&layout, &pool), backend)?;
        Ok(LevelsHeld { layout, pool, steps: self.steps, left, staged: Some(staged) })
    }
}

impl Workload for StagedSlabsWork {
    type Input = SlabStep;
    type Reference = ();
    type Prepared = ();
    /// The slabs that came out, oldest first: each with those of its coarser levels behind it.
    type Output = Vec<Vec<Arc<Slab>>>;

    fn name(&self) -> &str {
        "array-levels-staged"
    }

    fn units(&self, step: &SlabStep) -> u64 {
        match step {
            SlabStep::Feed(slab) => slab.elements.len() as u64,
            SlabStep::Flush => self.slab_bytes(),
        }
    }

    /// The same for every step, because all of them run in one session.
    fn ladder(&self, _: &SlabStep) -> Ladder {
        let on_gpu = GPU_RUNGS.into_iter().filter_map(|(name, _)| {
            let session = self.plan(name)?.footprint();
            let footprint = Footprint { session, ..Footprint::default() };
            Some(Rung::new(name, Place::On(DeviceKind::Gpu), footprint))
        });
        let levels = Bytes(level_bytes(&self.layout, self.steps)[1..].iter().sum());
        let cpu = Rung::new(CPU_RUNG, Place::On(DeviceKind::Cpu), Footprint::task(levels));
        Ladder::from(on_gpu.chain([cpu]).collect::<Vec<_>>())
    }

    fn open(&self, rung: &Rung, _: &SlabStep, backend: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(self.session(rung, Vec::new(), backend)?))
    }

    fn resume(
        &self,
        rung: &Rung,
        _: &SlabStep,
        state: &(dyn Any + Send),
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Session<Self>>, Fault> {
        let left: &Vec<Arc<Slab>> =
            state.downcast_ref().ok_or_else(|| Fault::work("what the session left is of another kind"))?;
        Ok(Box::new(self.session(rung, left.clone(), backend)?))
    }
}

/// A session on one rung.
struct LevelsHeld {
    layout: Arc<Layout>,
    pool: Pool,
    steps: u64,
    /// What another session left, to be done first.
    left: Vec<Arc<Slab>>,
    /// On a GPU; none on the CPU.
    staged: Option<StagedSession<SlabStages>>,
}

impl Session<StagedSlabsWork> for LevelsHeld {
    fn run(
        &mut self,
        step: &SlabStep,
        context: &mut Context<'_, StagedSlabsWork>,
    ) -> Result<Vec<Vec<Arc<Slab>>>, Fault> {
        let mut slabs = std::mem::take(&mut self.left);
        if let SlabStep::Feed(slab) = step {
            slabs.push(Arc::clone(slab));
        }
        if let Some(slab) = slabs.iter().find(|slab| slab.steps > self.steps) {
            return Err(Fault::work(format!("a slab of {} steps, and {} were said", slab.steps, self.steps)));
        }
        match &mut self.staged {
            Some(staged) => on_gpu(staged, slabs, matches!(step, SlabStep::Flush), context.backend),
            None => self.on_cpu(&slabs, context),
        }
    }

    fn leave(&mut self, _: &mut dyn Backend) -> Result<Box<dyn Any + Send>, Fault> {
        let mut slabs = self.staged.take().map_or_else(Vec::new, |staged| staged.abandon().1);
        slabs.append(&mut self.left);
        Ok(Box::new(slabs))
    }
}

impl LevelsHeld {
    /// Everything comes out at once.
    fn on_cpu(
        &self,
        slabs: &[Arc<Slab>],
        context: &Context<'_, StagedSlabsWork>,
    ) -> Result<Vec<Vec<Arc<Slab>>>, Fault> {
        let made = |slab: &Arc<Slab>| all_levels(&self.layout, &self.pool, slab, || context.check_cancelled());
        slabs.iter().map(made).collect()
    }
}

/// Feeds them, and gives what that brought out. What failed is not published: whoever fed it does all of it again.
fn on_gpu(
    staged: &mut StagedSession<SlabStages>,
    slabs: Vec<Arc<Slab>>,
    is_flush: bool,
    backend: &mut dyn Backend,
) -> Result<Vec<Vec<Arc<Slab>>>, Fault> {
    let mut out = Vec::new();
    for slab in slabs {
        out.extend(staged.feed(slab, backend));
    }
    if is_flush {
        out.extend(staged.flush(backend));
    }
    out.into_iter().map(|Published { result, .. }| result).collect()
}
