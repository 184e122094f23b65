//! Ahead: a set of tasks that is known as a whole is simulated before the first of them is committed.
//! Never holds a task back for its plan: a device that is idle starts the next task it was given, and a task whose
//! plan has expired goes wherever it finishes first. A set with sequences in it is not planned: its tasks stay together.

use smallvec::SmallVec;

use super::choose::Assessed;
use super::state::Planned;
use super::{Host, Scheduler};
use crate::error::SubmitErrorKind;
use crate::lookahead::{self, Budget, KnownDevice, KnownTask, Plan};
use crate::task::{Priority, TaskSpec};
use crate::{DeviceId, Moment, Nanos, TaskId};

/// How much longer than planned a plan is trusted. Beyond that its figures were wrong and each task is chosen for anew.
const PLAN_PATIENCE: f64 = 1.25;
/// Sets smaller than this are not worth planning.
const SET_MIN: usize = 4;

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

impl<H: Host> Scheduler<H> {
    /// Takes a whole set of tasks in, or none of it. If every cost is known, where and in which order they run is
    /// simulated ahead, with as many tries as `Config::lookahead` allows.
    ///
    /// # Errors
    /// The reason and the tasks, if the set was refused.
    pub fn submit_all(&mut self, now: Moment, set: Vec<SetTask<H::Job>>) -> Result<Vec<TaskId>, RefusedSet<H::Job>> {
        let space = self.config.queue_limit - self.tasks.len().min(self.config.queue_limit);
        let refusal = set.iter().find_map(|task| self.may_enter(&task.spec).err());
        let full = (set.len() > space).then_some(SubmitErrorKind::QueueFull { limit: self.config.queue_limit });
        if let Some(refusal) = refusal.or(full) {
            return Err((refusal, set));
        }
        for task in &set {
            self.workloads.ensure_cells(task.spec.workload, &task.spec.ladder, self.devices.len());
        }
        let plan = self.plan_ahead(now, &set);
        let first = self.order;
        let mut ids: Vec<TaskId> = Vec::with_capacity(set.len());
        for (at, SetTask { mut spec, job, after }) in set.into_iter().enumerate() {
            spec.after.extend(after.iter().filter_map(|&before| ids.get(before as usize).copied()));
            let Ok(id) = self.enter(now, spec, job) else { unreachable!("space for the whole set was checked") };
            ids.push(id);
            if let (Some(plan), Some(state)) = (&plan, self.tasks.get_mut(id)) {
                let step = plan.steps[at];
                state.order = first + 1 + u64::from(step.rank);
                let valid_until = now + plan.makespan.scaled(PLAN_PATIENCE) + Nanos::millis(1);
                state.planned = Some(Planned { device: DeviceId(step.device as u16), valid_until });
            }
        }
        for &id in &ids {
            self.start_if_ready(now, id);
        }
        Ok(ids)
    }

    /// A plan for the set, if it is worth one and every task's cost is known somewhere.
    fn plan_ahead(&self, now: Moment, set: &[SetTask<H::Job>]) -> Option<Plan> {
        let stays_together = |task: &SetTask<H::Job>| task.spec.sequence.is_some();
        if self.config.lookahead == 0 || set.len() < SET_MIN || set.iter().any(stays_together) {
            return None;
        }
        let tasks: Option<Vec<KnownTask>> = set.iter().map(|task| self.known_task(now, task)).collect();
        let devices: Vec<KnownDevice> = self
            .devices
            .iter()
            .map(|device| KnownDevice { slots: device.width.slots(), free_at: device.wait(now, Priority::Background) })
            .collect();
        let budget = Budget { simulations: self.config.lookahead, seed: 0 };
        lookahead::plan(&tasks?, &devices, budget).ok()
    }

    fn known_task(&self, now: Moment, task: &SetTask<H::Job>) -> Option<KnownTask> {
        let costs: SmallVec<[Option<Nanos>; 4]> =
            self.device_ids().map(|device| self.known_cost(now, &task.spec, device)).collect();
        let somewhere = costs.iter().any(Option::is_some);
        let urgency = task.spec.priority.level() as u8;
        somewhere.then(|| KnownTask { costs, after: task.after.clone(), urgency })
    }

    /// The cheapest measured rung of a task on a device, among those of the best quality that it could have there.
    fn known_cost(&self, now: Moment, spec: &TaskSpec, device: DeviceId) -> Option<Nanos> {
        let rungs = spec.ladder.rungs().iter().enumerate();
        let estimates = rungs.filter_map(|(at, rung)| {
            let cell = self.workloads.cell(spec.workload, rung.name, device);
            let assessed = self.assess(now, spec, None, at, device, cell).ok()?;
            assessed.fits.then_some((rung.quality, assessed))
        });
        let estimates: SmallVec<[_; 4]> = estimates.collect();
        let best = estimates.iter().map(|(quality, _)| *quality).max()?;
        let mut of_best = estimates.iter().filter(|(quality, _)| *quality == best).map(|(_, assessed)| assessed);
        let costs = |assessed: &Assessed| assessed.estimate.measured.then(|| assessed.estimate.occupies());
        // Where one fits now, those below it are not taken.
        match of_best.clone().find(|assessed| assessed.fits_now) {
            Some(first) => costs(first),
            None => of_best.by_ref().filter_map(costs).min(),
        }
    }
}
