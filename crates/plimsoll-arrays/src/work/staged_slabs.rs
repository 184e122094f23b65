//! Stages of slabs in a session that a sequence holds: slabs go in one after the other, and come out with their levels
//! later, in the same order. Its rungs are how many are under way on a GPU, and the CPU.
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
use super::kernels::{LEVEL_BYTES_MAX, buffer_bytes};
use super::levels::all_levels;
use super::slab_stages::{DEPTH_MAX, DeviceStages, SlabStages, Work, level_bytes};
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

/// Makes levels of slabs, cuts them into chunks and shuffles these, as far as a device is to; several slabs under way at once.
#[derive(Debug)]
pub struct StagedSlabsWork {
    work: Work,
    pool: Pool,
    /// Arrays that share the device, this one included.
    sharers: usize,
    /// None if no GPU can do it.
    stages: Option<Arc<Stages>>,
}

impl StagedSlabsWork {
    /// For slabs of so many steps at most.
    pub fn new(layout: &Arc<Layout>, pool: &Pool, steps: u64, stages: DeviceStages) -> Self {
        let bytes = steps.saturating_mul(layout.levels()[0].grid.step_bytes());
        let possible = DeviceStages::possible(layout, steps);
        let may = bytes <= LEVEL_BYTES_MAX && !stages.is_none() && possible.choices().any(|choice| choice == stages);
        let work = Work { layout: Arc::clone(layout), stages, steps };
        let stages = may.then(|| work.declared().expect("the declaration is in order for every layout"));
        Self { work, pool: pool.clone(), sharers: 1, stages }
    }

    /// Beside so many arrays on the same device, this one included: they keep it busy together, so each has one slab under
    /// way and gives its slot back at once.
    pub fn shared_by(self, arrays: usize) -> Self {
        Self { sharers: arrays.max(1), ..self }
    }

    /// How slabs pass through, on its best rung; none if no GPU can do it.
    pub fn plan_at_best(&self) -> Option<Plan> {
        GPU_RUNGS.into_iter().find_map(|(name, _)| self.plan(name))
    }

    /// Bytes of a whole slab.
    fn slab_bytes(&self) -> u64 {
        self.work.steps * self.work.layout.levels()[0].grid.step_bytes()
    }

    fn plan(&self, rung: &str) -> Option<Plan> {
        let (_, depth) = GPU_RUNGS.into_iter().find(|(name, _)| *name == rung)?;
        let is_for_these = self.sharers == 1 || depth == 1;
        let stages = self.stages.as_ref().filter(|_| is_for_these)?;
        Some(Plan::select(stages, Facts { sharers: self.sharers, ..Facts::depth(depth) }))
    }

    /// A session that first does what another one left.
    fn session(&self, rung: &Rung, left: Vec<Arc<Slab>>, backend: &mut dyn Backend) -> Result<SlabsHeld, Fault> {
        let (layout, pool, steps) = (Arc::clone(&self.work.layout), self.pool.clone(), self.work.steps);
        let Some(plan) = self.plan(rung.name) else {
            return Ok(SlabsHeld { layout, pool, steps, left, staged: None });
        };
        let largest = plan.stages().pool_ids().map(|pool| plan.stages()[pool].bytes).max();
        let wanted = largest.unwrap_or(Bytes::ZERO).max(buffer_bytes(self.slab_bytes()));
        if wanted > backend.buffer_limit() {
            return Err(Fault::Unsupported { detail: format!("a buffer of {wanted} for a slab") });
        }
        let staged = StagedSession::open(plan, SlabStages::new(&self.work, &pool), backend)?;
        Ok(SlabsHeld { layout, pool, steps, left, staged: Some(staged) })
    }
}

/// By what a device does: costs are learnt by it.
fn staged_name(stages: DeviceStages) -> &'static str {
    match (stages.levels, stages.scatter, stages.shuffle) {
        (_, false, _) => "array-levels-staged",
        (false, true, false) => "array-scatter-staged",
        (false, true, true) => "array-shuffle-staged",
        (true, true, false) => "array-levels-scatter-staged",
        (true, true, true) => "array-levels-shuffle-staged",
    }
}

impl Workload for StagedSlabsWork {
    type Input = SlabStep;
    type Reference = ();
    type Prepared = ();
    /// The slabs that came out, oldest first: each with those of its coarser levels behind it.
    type Output = Vec<Vec<Arc<Slab>>>;

    fn name(&self) -> &str {
        staged_name(self.work.stages)
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
        let levels = Bytes(level_bytes(&self.work.layout, self.work.steps)[1..].iter().sum());
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
struct SlabsHeld {
    layout: Arc<Layout>,
    pool: Pool,
    steps: u64,
    /// What another session left, to be done first.
    left: Vec<Arc<Slab>>,
    /// On a GPU; none on the CPU.
    staged: Option<StagedSession<SlabStages>>,
}

impl Session<StagedSlabsWork> for SlabsHeld {
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

impl SlabsHeld {
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

/// One slab through the stages of a device and out again, alone: tried so that it is known what it costs.
#[derive(Debug)]
pub struct TrialWork(StagedSlabsWork);

impl TrialWork {
    /// For the stages of this work.
    pub fn new(work: StagedSlabsWork) -> Self {
        Self(work)
    }
}

impl Workload for TrialWork {
    type Input = Arc<Slab>;
    type Reference = ();
    type Prepared = ();
    /// The slab as it came out, and those of its coarser levels.
    type Output = Vec<Arc<Slab>>;

    fn name(&self) -> &str {
        match staged_name(self.0.work.stages) {
            "array-scatter-staged" => "array-scatter-trial",
            "array-shuffle-staged" => "array-shuffle-trial",
            "array-levels-scatter-staged" => "array-levels-scatter-trial",
            "array-levels-shuffle-staged" => "array-levels-shuffle-trial",
            _ => "array-levels-trial",
        }
    }

    fn units(&self, slab: &Arc<Slab>) -> u64 {
        slab.elements.len() as u64
    }

    fn ladder(&self, _: &Arc<Slab>) -> Ladder {
        let (name, _) = GPU_RUNGS[DEPTH_MAX - 1];
        let session = self.0.plan(name).map_or(Bytes::ZERO, |plan| plan.footprint());
        let footprint = Footprint { session, ..Footprint::default() };
        Ladder::from(vec![Rung::new(name, Place::On(DeviceKind::Gpu), footprint)])
    }

    fn open(&self, rung: &Rung, _: &Arc<Slab>, backend: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(TrialSession(self.0.session(rung, Vec::new(), backend)?)))
    }
}

struct TrialSession(SlabsHeld);

impl Session<TrialWork> for TrialSession {
    fn run(&mut self, slab: &Arc<Slab>, context: &mut Context<'_, TrialWork>) -> Result<Vec<Arc<Slab>>, Fault> {
        let staged = self.0.staged.as_mut().ok_or_else(|| Fault::work("there is nothing for a device to do"))?;
        let out = on_gpu(staged, vec![Arc::clone(slab)], true, context.backend)?;
        Ok(out.into_iter().flatten().collect())
    }
}
