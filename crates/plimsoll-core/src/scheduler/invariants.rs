//! What must hold after every step, checked from the outside by the simulator and by tests.
//! Never part of the hot path.

use rustc_hash::FxHashMap;

use super::state::Phase;
use super::{Host, Scheduler};
use crate::task::Priority;
use crate::{DeviceId, Nanos, TaskId, WorkloadId};

impl<H: Host> Scheduler<H> {
    /// Checks everything that must always hold.
    ///
    /// # Errors
    /// The first thing that does not, in words.
    pub fn check_invariants(&self) -> Result<(), String> {
        let was_asked_for = |id: &TaskId| self.tasks.get(*id).is_some_and(|task| task.was_asked_for());
        let tasks = self.tasks.ids().filter(was_asked_for).count();
        if tasks > self.config.queue_limit {
            return Err(format!("{tasks} tasks beyond the limit of {}", self.config.queue_limit));
        }
        self.device_ids().try_for_each(|device| self.check_device(device))?;
        self.check_tasks()?;
        self.check_sequences()?;
        self.check_exploring()?;
        self.check_bounds()?;
        self.check_grants()?;
        self.check_leases()
    }

    /// Checks what must hold when every task has ended and every run has come back.
    ///
    /// # Errors
    /// The first thing that does not, in words.
    pub fn check_at_rest(&self) -> Result<(), String> {
        self.check_invariants()?;
        let queued: usize = self.devices.iter().map(|device| device.queue.len()).sum();
        let (tasks, runs) = (self.tasks.len(), self.runs.len());
        if queued + tasks + runs > 0 {
            return Err(format!("{queued} queued, {tasks} tasks and {runs} runs are left"));
        }
        let expecting = self.device_ids().find(|device| self.device(*device).cache.expects_anything());
        expecting.map_or(Ok(()), |device| Err(format!("{device} still expects references")))
    }

    /// The tasks in a device's queue, first to start first, each with the rung that it is queued for.
    pub fn queued(&self, device: DeviceId) -> impl Iterator<Item = (TaskId, usize)> + '_ {
        let queue = self.device(device).queue.iter();
        queue.filter_map(|task| match self.tasks.get(task)?.phase {
            Phase::Queued { rung, .. } => Some((task, rung)),
            _ => None,
        })
    }

    fn check_device(&self, device: DeviceId) -> Result<(), String> {
        let (promised, recount) = (self.ledger.promised(device), self.ledger.recount(device));
        if promised != recount {
            return Err(format!("{device}: {promised} promised, but the leases sum to {recount}"));
        }
        let state = self.device(device);
        if state.running > state.spec.slots || !(1..=state.spec.slots).contains(&state.width.slots()) {
            let (busy, slots, width) = (state.running, state.spec.slots, state.width.slots());
            return Err(format!("{device}: {busy} of {slots} slots busy, {width} in use"));
        }
        if !state.health.is_well() && !state.queue.is_empty() {
            return Err(format!("{device}: work is queued although it is not well"));
        }
        let mut backlog = [Nanos::ZERO; Priority::LEVELS];
        for task in state.queue.iter() {
            let Some(queued) = self.tasks.get(task) else { return Err(format!("{task} is queued but has ended")) };
            match queued.phase {
                Phase::Queued { device: at, estimate, .. } if at == device => {
                    backlog[queued.spec.priority.level()] += estimate.occupies();
                }
                phase => return Err(format!("{task} is in the queue of {device} but {phase:?}")),
            }
        }
        if backlog != state.backlog {
            return Err(format!("{device}: the backlog does not match the queue"));
        }
        Ok(())
    }

    fn check_tasks(&self) -> Result<(), String> {
        let queued: usize = self.devices.iter().map(|device| device.queue.len()).sum();
        let mut in_queues = 0;
        for id in self.tasks.ids() {
            let Some(task) = self.tasks.get(id) else { continue };
            match task.phase {
                Phase::Queued { .. } => in_queues += 1,
                Phase::Running { run } if self.runs.get(run.0).is_none_or(|run| !run.tasks.contains(&id)) => {
                    return Err(format!("{id} counts as running but its run is gone"));
                }
                Phase::Blocked if task.blockers == 0 => return Err(format!("{id} is blocked by nothing")),
                Phase::Stranded if !self.stranded.contains(&id) => return Err(format!("{id} is lost")),
                _ => {}
            }
        }
        if in_queues != queued {
            return Err(format!("{in_queues} tasks count as queued, {queued} are in queues"));
        }
        Ok(())
    }

    fn check_sequences(&self) -> Result<(), String> {
        let members =
            self.tasks.ids().filter(|id| self.tasks.get(*id).is_some_and(|task| task.spec.sequence.is_some()));
        let (members, counted) = (members.count(), self.sequences.members());
        if members != counted {
            return Err(format!("{members} tasks are part of a sequence, {counted} are counted"));
        }
        Ok(())
    }

    /// What counts as being tried is what is queued or under way without figures.
    fn check_exploring(&self) -> Result<(), String> {
        let mut tries: FxHashMap<(WorkloadId, &'static str, DeviceId), u32> = FxHashMap::default();
        for task in self.tasks.ids().filter_map(|id| self.tasks.get(id)) {
            if let Phase::Queued { device, rung, estimate, .. } = task.phase
                && !estimate.measured
            {
                *tries.entry((task.spec.workload, task.spec.ladder.rungs()[rung].name, device)).or_default() += 1;
            }
        }
        for run in self.runs.ids().filter_map(|id| self.runs.get(id)).filter(|run| !run.estimate.measured) {
            let key = run.session.key;
            *tries.entry((key.workload, key.rung, run.device)).or_default() += 1;
        }
        for (workload, rung, device, exploring) in self.workloads.exploring() {
            let counted = tries.get(&(workload, rung, device)).copied().unwrap_or(0);
            if exploring != counted {
                return Err(format!("{rung} on {device}: {exploring} tries counted, {counted} there"));
            }
        }
        Ok(())
    }

    /// What keeps entries of ended tasks keeps few of them.
    fn check_bounds(&self) -> Result<(), String> {
        let most = 2 * self.config.queue_limit + super::place::LEFTOVERS + 1;
        let (deadlines, stranded) = (self.deadlines.len(), self.stranded.len());
        if deadlines.max(stranded) > most {
            return Err(format!("{deadlines} deadlines and {stranded} strandings kept, {most} allowed"));
        }
        Ok(())
    }

    fn makes_value(&self, run: TaskId) -> bool {
        self.runs.get(run).is_some_and(|run| run.value_lease.is_some())
    }

    /// Everything that holds a lease is known.
    fn check_leases(&self) -> Result<(), String> {
        let warm: usize = self.devices.iter().map(|device| device.sessions.leases().count()).sum();
        let resident: usize = self.devices.iter().map(|device| device.cache.leases().count()).sum();
        let (runs, their_sessions) = (self.runs.len(), self.runs.len());
        let values = self.values.leases() + self.runs.ids().filter(|id| self.makes_value(*id)).count();
        let known = runs + their_sessions + values + self.holds.leases() + warm + resident + self.grants.leases();
        if known != self.ledger.leases() {
            return Err(format!("{} leases in the ledger, {known} holders", self.ledger.leases()));
        }
        Ok(())
    }
}
