//! Ahead: a set of tasks that is known as a whole is simulated before the first of them is committed, and again when more
//! is known of what its tasks take.
//! Never plans by itself: it gives an [`Outlook`], which the host plans by without its lock, and follows the [`SetPlan`]
//! that comes of it. Never holds a task back for its plan: a device that is idle starts the next task it was given, and a
//! task whose plan has expired goes wherever it finishes first. A set with sequences in it is not planned: its tasks stay
//! together.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::choose::{Assessed, UNKNOWN_RUN};
use super::state::{Phase, Planned, TaskState};
use super::{Host, Scheduler};
use crate::error::SubmitErrorKind;
use crate::lookahead::{self, Budget, KnownDevice, KnownTask, Plan, Step};
use crate::task::{Priority, TaskSpec};
use crate::{DeviceId, DeviceKind, DeviceSet, Moment, Nanos, Quality, TaskId, WorkloadId};

/// How much longer than planned a plan is trusted. Beyond that its figures were wrong and each task is chosen for anew.
const PLAN_PATIENCE: f64 = 1.25;
/// Sets smaller than this are not worth planning.
const SET_MIN: usize = 4;
/// Sets that are planned again at any one time. More are planned once, when they are handed in.
pub(super) const SETS_MAX: usize = 16;
/// A set is planned again when this part of what was left has ended …
const AGAIN_AFTER_PART: usize = 16;
/// … but not for fewer tasks than this …
const AGAIN_AFTER_MIN: usize = 4;
/// … and not if those ended when they were planned to, to this part of what they took: who should run where does not
/// change by that, and planning takes four times as long as all other decisions together.
const AGAIN_IF_OFF_BY_PART: u64 = 8;
/// Schedules to simulate when a set is planned again, at the most.
pub(super) const SIMULATIONS_AGAIN: u32 = 32;

/// How much faster than a CPU core a GPU is taken to be until it was tried. If it counted as equally fast, a box with many
/// idle cores would never try its GPU; if as much faster, a plan would hold everything back for it.
const GPU_ADVANTAGE: u64 = 2;

/// A task of a set that is handed in as a whole.
#[derive(Clone, Debug)]
pub struct SetTask<J> {
    /// The task; its `after` names tasks outside the set.
    pub spec: TaskSpec,
    /// Its payload.
    pub job: J,
    /// The tasks of the set that must have succeeded before it, by their place in it: only earlier ones.
    pub after: SmallVec<[u32; 4]>,
}

/// The reason why a set was refused, and the set.
pub type RefusedSet<J> = (SubmitErrorKind, Vec<SetTask<J>>);

/// Names a set that is under way.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct SetId(u64);

/// All that a plan of a set depends on. It is made under the host's lock, and planned by without it.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// None for a set that is about to be handed in.
    set: Option<(SetId, Vec<TaskId>)>,
    pub(super) tasks: Vec<KnownTask>,
    /// For each task the devices on which what it takes is a guess.
    pub(super) guessed: Vec<DeviceSet>,
    pub(super) devices: Vec<KnownDevice>,
    pub(super) budget: Budget,
    /// What the tasks are to do as it is, in their order; empty if that is not known of all of them.
    in_force: Vec<Step>,
}

impl Outlook {
    /// Simulates schedules, and gives the best; `None` if there is none.
    pub fn plan(self) -> Option<SetPlan> {
        let plan = lookahead::plan_again(&self.tasks, &self.devices, self.budget, &self.in_force).ok()?;
        Some(SetPlan { set: self.set, guessed: self.guessed, plan })
    }
}

/// A plan for a set, or for what was left of it.
#[derive(Clone, Debug)]
pub struct SetPlan {
    set: Option<(SetId, Vec<TaskId>)>,
    guessed: Vec<DeviceSet>,
    plan: Plan,
}

/// The sets under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Sets {
    pub(super) live: Vec<LiveSet>,
    next: u64,
    /// The host was told to plan, and has not yet asked for everything.
    is_ordered: bool,
}

#[derive(Clone, Debug)]
pub(super) struct LiveSet {
    pub(super) id: SetId,
    /// Its tasks; those that have ended since it was last planned included.
    pub(super) tasks: Vec<TaskId>,
    left: usize,
    ended_since_planned: usize,
    /// What those took, and how far from its planned end each of them ended, together.
    took: Nanos,
    off_by: Nanos,
    is_due: bool,
}

impl LiveSet {
    /// A new plan is about to be made.
    fn planned(&mut self) {
        (self.ended_since_planned, self.took, self.off_by, self.is_due) = (0, Nanos::ZERO, Nanos::ZERO, false);
    }

    fn one_ended(&mut self, took: Nanos, off_by: Nanos) {
        self.left -= 1;
        self.ended_since_planned += 1;
        self.took += took;
        self.off_by += off_by;
        let is_part = self.ended_since_planned >= (self.left / AGAIN_AFTER_PART).max(AGAIN_AFTER_MIN);
        self.is_due |= is_part && self.off_by.0 > self.took.0 / AGAIN_IF_OFF_BY_PART;
    }
}

impl Sets {
    fn add(&mut self, tasks: Vec<TaskId>) -> Option<SetId> {
        if self.live.len() >= SETS_MAX {
            return None;
        }
        self.next += 1;
        let (id, left) = (SetId(self.next), tasks.len());
        let (took, off_by) = (Nanos::ZERO, Nanos::ZERO);
        self.live.push(LiveSet { id, tasks, left, ended_since_planned: 0, took, off_by, is_due: false });
        Some(id)
    }

    fn get_mut(&mut self, id: SetId) -> Option<&mut LiveSet> {
        self.live.iter_mut().find(|set| set.id == id)
    }

    fn one_ended(&mut self, id: SetId, took: Nanos, off_by: Nanos) {
        let Some(set) = self.get_mut(id) else { return };
        set.one_ended(took, off_by);
        self.live.retain(|set| set.left > 0);
    }

    fn is_due(&self) -> bool {
        self.live.iter().any(|set| set.is_due)
    }
}

/// What is known of the time that a task takes on a device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Expected {
    Measured(Nanos),
    /// It could run there, but nobody has tried it.
    Untried,
    /// It is being tried there, or on a device of that kind.
    BeingTried,
    Never,
}

impl Expected {
    fn time(self) -> Option<Nanos> {
        match self {
            Self::Measured(time) => Some(time),
            Self::Untried | Self::BeingTried | Self::Never => None,
        }
    }
}

/// A task that a plan would have run where nobody has tried its kind.
#[derive(Copy, Clone, Debug)]
struct Try {
    is_ready: bool,
    rank: u32,
    task: TaskId,
    planned: Planned,
}

/// One try for each workload and kind of device; the others wait for what comes of it. Of those that could start now the
/// one that ranks last is tried with: whatever it takes, it holds up the least.
#[derive(Default)]
struct Tries(FxHashMap<(WorkloadId, DeviceKind), Try>);

impl Tries {
    fn offer(&mut self, of: (WorkloadId, DeviceKind), offered: Try) {
        let best = self.0.entry(of).or_insert(offered);
        if (offered.is_ready, offered.rank) > (best.is_ready, best.rank) {
            *best = offered;
        }
    }
}

impl<H: Host> Scheduler<H> {
    /// Takes a whole set of tasks in, or none of it. Where and in which order they run is simulated ahead, with as many
    /// tries as `Config::lookahead` allows; for a host without a lock to hold meanwhile.
    ///
    /// # Errors
    /// The reason and the tasks, if the set was refused.
    pub fn submit_all(&mut self, now: Moment, set: Vec<SetTask<H::Job>>) -> Result<Vec<TaskId>, RefusedSet<H::Job>> {
        let plan = self.outlook(now, &set).and_then(Outlook::plan);
        self.submit_planned(now, set, plan)
    }

    /// What a plan of this set depends on; `None` if it is not to be planned.
    pub fn outlook(&mut self, now: Moment, set: &[SetTask<H::Job>]) -> Option<Outlook> {
        let is_known = |task: &SetTask<H::Job>| self.workloads.contains(task.spec.workload);
        if !is_worth_planning(self.config.lookahead, set) || !set.iter().all(is_known) {
            return None;
        }
        for task in set {
            self.workloads.ensure_cells(task.spec.workload, &task.spec.ladder, self.devices.len());
        }
        let devices = self.devices.iter();
        let devices = devices.map(|device| KnownDevice {
            slots: device.width.slots(),
            free_at: device.wait(now, Priority::Background),
            ..KnownDevice::default()
        });
        let budget = Budget { simulations: self.config.lookahead, seed: 0 };
        let specs = set.iter().map(|task| (&task.spec, task.after.clone(), Nanos::ZERO));
        let (tasks, guessed) = self.known_tasks(now, specs);
        Some(Outlook { set: None, tasks, guessed, devices: devices.collect(), budget, in_force: Vec::new() })
    }

    /// Takes a whole set of tasks in, or none of it, to be run as planned.
    ///
    /// # Errors
    /// The reason and the tasks, if the set was refused.
    pub fn submit_planned(
        &mut self,
        now: Moment,
        set: Vec<SetTask<H::Job>>,
        plan: Option<SetPlan>,
    ) -> Result<Vec<TaskId>, RefusedSet<H::Job>> {
        let space = self.config.queue_limit - self.tasks.len().min(self.config.queue_limit);
        let refusal = set.iter().find_map(|task| self.may_enter(&task.spec).err());
        let full = (set.len() > space).then_some(SubmitErrorKind::QueueFull { limit: self.config.queue_limit });
        if let Some(refusal) = refusal.or(full) {
            return Err((refusal, set));
        }
        let is_watched = is_worth_planning(self.config.lookahead, &set);
        let mut ids: Vec<TaskId> = Vec::with_capacity(set.len());
        for SetTask { mut spec, job, after } in set {
            spec.after.extend(after.iter().filter_map(|&before| ids.get(before as usize).copied()));
            let Ok(id) = self.enter(now, spec, job) else { unreachable!("space for the whole set was checked") };
            ids.push(id);
        }
        if is_watched && let Some(set) = self.sets.add(ids.clone()) {
            ids.iter().for_each(|id| self.tasks.get_mut(*id).into_iter().for_each(|state| state.set = Some(set)));
        }
        let tries = plan.map_or_else(Vec::new, |plan| self.give_steps(now, &ids, &plan));
        // Tries first: whoever comes after one sees that somebody is trying already.
        for &id in tries.iter().chain(ids.iter().filter(|id| !tries.contains(id))) {
            self.start_if_ready(now, id);
        }
        Ok(ids)
    }

    /// What a new plan for a set depends on, if one is due. The host plans by it, and hands the plan to
    /// [`Scheduler::follow`].
    pub fn next_outlook(&mut self, now: Moment) -> Option<Outlook> {
        while let Some(at) = self.sets.live.iter().position(|set| set.is_due) {
            let outlook = self.outlook_of(now, at);
            if outlook.is_some() {
                return outlook;
            }
        }
        self.sets.is_ordered = false;
        None
    }

    /// The outlook of the `at`-th set; `None` if hardly anything of it is left.
    fn outlook_of(&mut self, now: Moment, at: usize) -> Option<Outlook> {
        let tasks = &self.tasks;
        let set = &mut self.sets.live[at];
        set.planned();
        set.tasks.retain(|task| tasks.get(*task).is_some());
        let id = set.id;
        let is_waiting = |task: &TaskId| self.tasks.get(*task).is_some_and(|state| !state.is_running());
        let waiting: Vec<TaskId> = self.sets.live[at].tasks.iter().copied().filter(is_waiting).collect();
        if waiting.len() < SET_MIN {
            return None;
        }
        let places: FxHashMap<TaskId, u32> = waiting.iter().copied().zip(0..).collect();
        let specs = waiting.iter().filter_map(|task| {
            let spec = &self.tasks.get(*task)?.spec;
            let after = spec.after.iter().filter_map(|before| places.get(before).copied()).collect();
            Some((spec, after, self.not_before(now, spec)))
        });
        let (tasks, guessed) = self.known_tasks(now, specs);
        let devices = self.device_ids().map(|device| self.known_device(now, device, id)).collect();
        let budget = Budget { simulations: self.config.lookahead.min(SIMULATIONS_AGAIN), seed: 0 };
        let in_force = self.in_force(&waiting).unwrap_or_default();
        Some(Outlook { set: Some((id, waiting)), tasks, guessed, devices, budget, in_force })
    }

    /// Where and in which order these tasks are to run as it is; `None` if one of them has no plan.
    fn in_force(&self, waiting: &[TaskId]) -> Option<Vec<Step>> {
        let planned = waiting.iter().map(|task| {
            let state = self.tasks.get(*task)?;
            Some((state.planned?.device.index(), state.order))
        });
        let planned = planned.collect::<Option<Vec<(usize, u64)>>>()?;
        let mut orders: Vec<u64> = planned.iter().map(|(_, order)| *order).collect();
        orders.sort_unstable();
        let rank = |order| orders.partition_point(|other| *other < order) as u32;
        Some(planned.into_iter().map(|(device, order)| Step { device, rank: rank(order) }).collect())
    }

    /// A task of a set has ended; with a result if it is said how long that took.
    #[cold]
    pub(super) fn ended_of_set(&mut self, now: Moment, set: SetId, planned: Option<Planned>, took: Option<Nanos>) {
        let off_by = match (planned, took) {
            (Some(Planned { end, .. }), Some(_)) => now.since(end).max(end.since(now)),
            _ => Nanos::MAX,
        };
        self.sets.one_ended(set, took.unwrap_or_default(), off_by);
        self.order_plan();
    }

    /// Something was measured for the first time, or is about to be: plans that did not know of it are made again.
    #[cold]
    pub(super) fn more_is_known(&mut self) {
        self.sets.live.iter_mut().for_each(|set| set.is_due = true);
        self.order_plan();
    }

    fn order_plan(&mut self) {
        if !self.sets.is_ordered && self.sets.is_due() {
            self.sets.is_ordered = true;
            self.orders.push(super::Order::Plan);
        }
    }

    /// Gives the tasks of a set that have not begun the devices and the order of a new plan.
    pub fn follow(&mut self, now: Moment, plan: SetPlan) {
        let Some((id, tasks)) = &plan.set else { return };
        if self.sets.get_mut(*id).is_none() {
            return;
        }
        let is_queued = |task: &TaskId| {
            let phase = self.tasks.get(*task).map(|state| state.phase);
            matches!(phase, Some(Phase::Queued { .. }))
        };
        let queued: Vec<TaskId> = tasks.iter().copied().filter(is_queued).collect();
        for &task in &queued {
            // Where it stood, others may have waited for it alone.
            self.leave_queue(task);
        }
        let tries = self.give_steps(now, tasks, &plan);
        let (first, rest): (Vec<TaskId>, Vec<TaskId>) = queued.into_iter().partition(|task| tries.contains(task));
        for task in first.into_iter().chain(rest) {
            self.place(now, task);
        }
        self.went_elsewhere(now);
    }

    /// Gives each task its device and its place in the order. Tells which are to try what nobody has tried.
    fn give_steps(&mut self, now: Moment, tasks: &[TaskId], plan: &SetPlan) -> Vec<TaskId> {
        self.give_order(tasks, plan);
        let valid_until = now + plan.plan.makespan.scaled(PLAN_PATIENCE) + Nanos::millis(1);
        let mut tries = Tries::default();
        let steps = plan.plan.steps.iter().zip(&plan.plan.ends);
        for ((&task, (step, &end)), guessed) in tasks.iter().zip(steps).zip(&plan.guessed) {
            let Some(state) = self.tasks.get_mut(task).filter(|state| !state.is_running()) else { continue };
            let device = DeviceId(step.device as u16);
            let is_guess = guessed.contains(device);
            let planned = Planned { device, valid_until, end: now + end };
            state.planned = (!is_guess).then_some(planned);
            if is_guess {
                let kind = self.devices[device.index()].spec.kind;
                let offered = Try { is_ready: state.blockers == 0, rank: step.rank, task, planned };
                tries.offer((state.spec.workload, kind), offered);
            }
        }
        let mut tries: Vec<Try> = tries.0.into_values().collect();
        tries.sort_unstable_by_key(|each| each.rank);
        for Try { task, planned, .. } in &tries {
            self.tasks.get_mut(*task).into_iter().for_each(|state| state.planned = Some(*planned));
        }
        tries.into_iter().map(|each| each.task).collect()
    }

    /// Tasks that have not begun trade their places in the order of submission for those of their ranks. No other task's
    /// place is given away, for it may be queued again: places stay unique.
    fn give_order(&mut self, tasks: &[TaskId], plan: &SetPlan) {
        let waiting = tasks.iter().zip(&plan.plan.steps).filter_map(|(&task, step)| {
            let state = self.tasks.get(task).filter(|state| !state.is_running())?;
            Some((step.rank, task, state.order))
        });
        let mut ranked: Vec<(u32, TaskId, u64)> = waiting.collect();
        let mut orders: Vec<u64> = ranked.iter().map(|(_, _, order)| *order).collect();
        ranked.sort_unstable_by_key(|(rank, ..)| *rank);
        orders.sort_unstable();
        for ((_, task, _), order) in ranked.into_iter().zip(orders) {
            self.tasks.get_mut(task).into_iter().for_each(|state| state.order = order);
        }
    }

    /// The tasks as a plan sees them, and the devices on which what each takes is a guess. Where nobody has tried it, it
    /// counts as a little faster on a GPU than where it is fastest, and as a little slower on the CPU: a plan that would
    /// gain by that has it tried, and is made again once that has begun, without that device. What nobody has tried anywhere takes as long as the others on average.
    fn known_tasks<'s>(
        &self,
        now: Moment,
        specs: impl Iterator<Item = (&'s TaskSpec, SmallVec<[u32; 4]>, Nanos)>,
    ) -> (Vec<KnownTask>, Vec<DeviceSet>) {
        let (mut tasks, mut guessed, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        let (mut sum, mut count) = (0_u128, 0_u128);
        for (spec, after, not_before) in specs {
            let expected: SmallVec<[Expected; 4]> =
                self.device_ids().map(|device| self.expected(now, spec, device)).collect();
            let least = expected.iter().filter_map(|expected| expected.time()).min();
            let cost = |(expected, device): (&Expected, DeviceId)| match expected {
                Expected::Untried => least.map(|least| untried(least, self.device(device).spec.kind)),
                expected => expected.time(),
            };
            let costs = expected.iter().zip(self.device_ids()).map(cost).collect();
            let guesses = self.device_ids().zip(&expected).filter(|(_, expected)| expected.time().is_none());
            guessed.push(guesses.map(|(device, _)| device).fold(DeviceSet::NONE, DeviceSet::with));
            match least {
                Some(least) => (sum, count) = (sum + u128::from(least.0), count + 1),
                None => unknown.push((tasks.len(), expected)),
            }
            tasks.push(KnownTask { costs, after, urgency: spec.priority.level() as u8, not_before });
        }
        let typical = Nanos(sum.checked_div(count).map_or(UNKNOWN_RUN.0, |mean| mean as u64));
        for (at, expected) in unknown {
            let guess = |expected: &Expected| (*expected != Expected::Never).then_some(typical);
            tasks[at].costs = expected.iter().map(guess).collect();
        }
        (tasks, guessed)
    }

    /// When what a task waits for should have ended, as far as that is under way.
    fn not_before(&self, now: Moment, spec: &TaskSpec) -> Nanos {
        let ends = spec.after.iter().filter_map(|before| match self.tasks.get(*before)?.phase {
            Phase::Running { run } => self.runs.get(run.0).map(|run| run.expected_end.since(now)),
            _ => None,
        });
        ends.max().unwrap_or_default()
    }

    /// A device as a plan for what is left of a set sees it: other work that is queued there comes first.
    fn known_device(&self, now: Moment, device: DeviceId, set: SetId) -> KnownDevice {
        let state = self.device(device);
        let slots = state.width.slots();
        let others = state.queue.iter().filter_map(|task| {
            let state = self.tasks.get(task).filter(|state| state.set != Some(set))?;
            let Phase::Queued { estimate, .. } = state.phase else { return None };
            Some(estimate.occupies())
        });
        let free_at = Nanos(others.sum::<Nanos>().0 / slots as u64);
        let busy = state.each_left(now).map(|left| free_at + left.max(Nanos(1))).collect();
        KnownDevice { slots, free_at, busy }
    }

    /// Whether a workload is being tried on a device of this kind.
    fn is_tried_now(&self, workload: WorkloadId, kind: DeviceKind) -> bool {
        let mut runs = self.runs.ids().filter_map(|id| self.runs.get(id));
        runs.any(|run| {
            let is_there = || self.device(run.device).spec.kind == kind;
            !run.estimate.measured && run.session.key.workload == workload && is_there()
        })
    }

    /// What is known of a task on a device: the cheapest measured rung among those of the best quality that it could have
    /// there.
    fn expected(&self, now: Moment, spec: &TaskSpec, device: DeviceId) -> Expected {
        let rungs = spec.ladder.rungs().iter().enumerate();
        let estimates = rungs.filter_map(|(at, rung)| {
            let cell = self.workloads.cell(spec.workload, rung.name, device);
            let assessed = self.assess(now, spec, None, at, device, cell).ok()?;
            assessed.fits.then_some((rung.quality, assessed))
        });
        let estimates: SmallVec<[_; 4]> = estimates.collect();
        let Some(best) = estimates.iter().map(|(quality, _)| *quality).max() else { return Expected::Never };
        let mut of_best = estimates.iter().filter(|(quality, _)| *quality == best).map(|(_, assessed)| assessed);
        let costs = |assessed: &Assessed| assessed.estimate.measured.then(|| assessed.estimate.occupies());
        // Where one fits now, those below it are not taken.
        let measured = match of_best.clone().find(|assessed| assessed.fits_now) {
            Some(first) => costs(first),
            None => of_best.by_ref().filter_map(costs).min(),
        };
        match measured.or_else(|| self.measured_alike(spec, best, device)) {
            Some(time) => Expected::Measured(time),
            None if self.is_tried_now(spec.workload, self.device(device).spec.kind) => Expected::BeingTried,
            None => Expected::Untried,
        }
    }

    /// What a task takes on average on other devices of the same kind, on rungs of this quality. They need not be equally
    /// fast, but are more alike than a device of another kind.
    fn measured_alike(&self, spec: &TaskSpec, quality: Quality, device: DeviceId) -> Option<Nanos> {
        let kind = self.device(device).spec.kind;
        let alike = || self.device_ids().filter(|other| *other != device && self.device(*other).spec.kind == kind);
        let rungs = spec.ladder.rungs().iter().filter(|rung| rung.quality == quality && rung.place.allows(kind));
        let times = rungs.flat_map(|rung| {
            alike().filter_map(|other| self.workloads.cell(spec.workload, rung.name, other)?.cost.run(spec.units))
        });
        let (sum, count) = times.fold((0_u128, 0), |(sum, count), run| (sum + u128::from(run.time.0), count + 1));
        sum.checked_div(count).map(|mean| Nanos(mean as u64))
    }
}

/// What is expected of a device that nobody has tried, if a task takes so long where it is fastest.
fn untried(least: Nanos, kind: DeviceKind) -> Nanos {
    match kind {
        DeviceKind::Gpu => Nanos(least.0 / GPU_ADVANTAGE),
        DeviceKind::Cpu => Nanos(least.0.saturating_mul(GPU_ADVANTAGE)),
    }
}

/// Whether a set is worth a plan, and may have one.
fn is_worth_planning<J>(lookahead: u32, set: &[SetTask<J>]) -> bool {
    lookahead > 0 && set.len() >= SET_MIN && set.iter().all(|task| task.spec.sequence.is_none())
}

impl<J> TaskState<J> {
    fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }
}
