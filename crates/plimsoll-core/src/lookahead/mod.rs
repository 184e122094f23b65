//! Plans a known set of tasks before the first one starts: a device and a rank for each.
//! Never reads a clock or draws an unseeded number: the same set, devices and budget give the same plan.
//! Invariant: with exact costs, the makespan a plan predicts is the makespan an executor of the rule in `README.md` gets.

mod bound;
mod climb;
mod evaluate;
mod list;
mod problem;
mod rank_set;
#[cfg(test)]
mod tests;

use smallvec::SmallVec;

use crate::Nanos;
pub use problem::TASK_LIMIT;

use bound::Bound;
use climb::Climb;
use evaluate::{Draft, Simulator, Trace, UNLIMITED};
use list::{Drafter, RECIPES};
use problem::Problem;

/// Candidate plans that [`Budget::default`] allows: about 2 ms for 250 tasks. `README.md` has what more would gain.
pub const SIMULATIONS_DEFAULT: u32 = 256;

/// Sets up to this size get their whole budget. Larger ones get a share of it, so that the work of a plan is bounded
/// by budget × this many tasks simulated, and only the first draft grows with the set.
pub const TASKS_WITH_FULL_BUDGET: usize = 4096;

/// A plan this close to the bound is taken: a 1024th of the makespan is less than looking further takes.
const CLOSE_ENOUGH: u64 = 1024;

/// One task of a known set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownTask {
    /// How long it takes on each device; `None`: it cannot run there.
    pub costs: SmallVec<[Option<Nanos>; 4]>,
    /// The tasks that have to be done before it, by their place in the set.
    pub after: SmallVec<[u32; 4]>,
    /// Of two tasks in one queue the one with the higher urgency goes first. What an urgent task waits for is as
    /// urgent as it is.
    pub urgency: u8,
    /// It cannot start before this, counted from now: it waits for something that is under way already.
    pub not_before: Nanos,
}

/// A device as a plan sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownDevice {
    /// How many tasks it runs at once.
    pub slots: usize,
    /// When it can start, counted from now.
    pub free_at: Nanos,
    /// Of its slots, those that come free later than that, and when.
    pub busy: Vec<Nanos>,
}

impl KnownDevice {
    /// When each of so many slots at the most comes free, the earliest first.
    fn slots_free_at(&self, limit: usize) -> impl Iterator<Item = Nanos> + '_ {
        let mut busy: Vec<Nanos> = self.busy.iter().map(|at| *at.max(&self.free_at)).collect();
        busy.sort_unstable();
        let idle = self.slots.saturating_sub(busy.len()).min(limit);
        std::iter::repeat_n(self.free_at, idle).chain(busy).take(limit.min(self.slots))
    }
}

/// How long a plan may be looked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Candidate plans to simulate, at least one; fewer for sets so large that this many would take too long.
    pub simulations: u32,
    /// Where the search goes when several moves look alike.
    pub seed: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { simulations: SIMULATIONS_DEFAULT, seed: 0 }
    }
}

/// Where and when one task goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The device whose queue it joins when its predecessors are done.
    pub device: usize,
    /// Its place in that queue: the lowest starts first. No two tasks of a plan have the same.
    pub rank: u32,
}

/// A device and a rank for every task of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// One for each task, in the order of the set.
    pub steps: Vec<Step>,
    /// When each task ends, counted from now, if every cost is exact; in the order of the set.
    pub ends: Vec<Nanos>,
    /// When the last task ends, counted from now, if every cost is exact.
    pub makespan: Nanos,
    /// What no plan of the set can beat: see [`lower_bound`].
    pub lower_bound: Nanos,
    /// The candidate plans that were simulated to find this one.
    pub simulations: u32,
}

/// Why a set cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Tasks wait for each other; this is one of them, or waits for them.
    #[error("task {task} can never start: the tasks before it wait for each other")]
    Cycle {
        /// Its place in the set.
        task: usize,
    },
    /// No device with a slot can run the task.
    #[error("task {task} fits no device; give it a cost on one that has slots")]
    FitsNowhere {
        /// Its place in the set.
        task: usize,
    },
    /// A predecessor that is not in the set.
    #[error("task {task} is to run after task {after}, which is not in the set")]
    NoSuchTask {
        /// Its place in the set.
        task: usize,
        /// The place that the set does not have.
        after: u32,
    },
    /// A task needs one cost, or `None`, for each device.
    #[error("task {task} has {costs} costs for {devices} devices; give one for each, None where it cannot run")]
    CostsMismatch {
        /// Its place in the set.
        task: usize,
        /// How many costs it has.
        costs: usize,
        /// How many devices there are.
        devices: usize,
    },
    /// More devices than a scheduler holds.
    #[error("{devices} devices are more than one plan holds ({})", crate::DeviceSet::LIMIT)]
    TooManyDevices {
        /// How many there are.
        devices: usize,
    },
    /// More tasks than [`TASK_LIMIT`].
    #[error("{tasks} tasks are more than one plan holds ({TASK_LIMIT}); plan them in parts")]
    TooManyTasks {
        /// How many there are.
        tasks: usize,
    },
}

/// Plans a known set: simulates a few ways to share it out, then improves the best of them while the budget lasts.
///
/// ```
/// use plimsoll_core::Nanos;
/// use plimsoll_core::lookahead::{Budget, KnownDevice, KnownTask, plan};
///
/// let device = KnownDevice { slots: 1, ..KnownDevice::default() };
/// let task = |cpu, gpu| KnownTask {
///     costs: [cpu, gpu].into_iter().map(|ms| Some(Nanos::millis(ms))).collect(),
///     ..KnownTask::default()
/// };
/// // Each of the two is faster on the GPU, but only the first one much.
/// let plan = plan(&[task(40, 2), task(4, 3)], &[device.clone(), device], Budget::default())?;
/// assert_eq!(plan.makespan, Nanos::millis(4));
/// assert_eq!(plan.steps.iter().map(|step| step.device).collect::<Vec<_>>(), [1, 0]);
/// # Ok::<(), plimsoll_core::lookahead::PlanError>(())
/// ```
pub fn plan(tasks: &[KnownTask], devices: &[KnownDevice], budget: Budget) -> Result<Plan, PlanError> {
    plan_again(tasks, devices, budget, &[])
}

/// Plans a known set for which there is a plan already, or what is left of one: a step for each task. The search begins with
/// it, so that what comes out is no longer than that would take by now. Without steps, or with one that a task cannot take any
/// more, it begins anew.
///
/// # Errors
/// As [`plan`].
pub fn plan_again(
    tasks: &[KnownTask],
    devices: &[KnownDevice],
    budget: Budget,
    in_force: &[Step],
) -> Result<Plan, PlanError> {
    let problem = Problem::new(tasks, devices)?;
    let bound = Bound::new(&problem);
    let goal = bound.makespan.saturating_add(bound.makespan / CLOSE_ENOUGH);
    let allowed = affordable(budget.simulations, problem.len);
    let mut simulator = Simulator::new(&problem);
    let (draft, trace, drafts) =
        best_draft(&problem, &bound, &mut simulator, allowed, goal, problem.draft_of(in_force));
    let mut climb = Climb::new(&problem, simulator, draft, trace, budget.seed);
    let moves = climb.run(allowed - drafts, goal);
    Ok(Plan {
        steps: climb.steps(),
        ends: climb.ends(),
        makespan: Nanos(climb.makespan()),
        lower_bound: Nanos(bound.makespan),
        simulations: drafts + moves,
    })
}

/// What no plan can beat: the later of all work shared out in fractions over all devices, and the longest chain with
/// each task where it is fastest. A set that cannot be planned never ends: [`Nanos::MAX`].
pub fn lower_bound(tasks: &[KnownTask], devices: &[KnownDevice]) -> Nanos {
    Problem::new(tasks, devices).map_or(Nanos::MAX, |problem| Nanos(Bound::new(&problem).makespan))
}

/// The best draft of as many recipes as allowed and of what is in force, and how many those were.
fn best_draft(
    problem: &Problem,
    bound: &Bound,
    simulator: &mut Simulator<'_>,
    allowed: u32,
    goal: u64,
    in_force: Option<Draft>,
) -> (Draft, Trace, u32) {
    let drafter = Drafter::new(problem, &bound.prices);
    let recipes = if in_force.is_some() { &RECIPES[..] } else { &RECIPES[1..] };
    let mut best = in_force.unwrap_or_else(|| drafter.draft(RECIPES[0]));
    simulator.play(&best, UNLIMITED);
    let mut trace = simulator.trace.clone();
    let mut used = 1;
    for &recipe in recipes {
        if used == allowed || trace.makespan <= goal {
            break;
        }
        let draft = drafter.draft(recipe);
        used += 1;
        if simulator.play(&draft, trace.makespan.saturating_sub(1)).is_some() {
            trace.clone_from(&simulator.trace);
            best = draft;
        }
    }
    (best, trace, used)
}

/// The part of `count` passes over a set that a set of this size may have; at least one.
fn affordable(count: u32, tasks: usize) -> u32 {
    let share = u64::from(count) * TASKS_WITH_FULL_BUDGET as u64 / tasks.max(TASKS_WITH_FULL_BUDGET) as u64;
    share.max(1) as u32
}
