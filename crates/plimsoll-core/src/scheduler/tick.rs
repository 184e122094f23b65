//! Tick: what is due because time has passed.
//! Never sets a timer; it says when it wants to be called next.

use std::cmp::Reverse;

use super::state::{Phase, RunId};
use super::take::LOOK;
use super::{Host, Scheduler};
use crate::error::{Attempt, Refusal, Setback, TaskError};
use crate::{DeviceId, Moment, Nanos, TaskId};

/// A run counts as stalled when it takes this many times its prediction, and its device's patience on top.
const STALL_FACTOR: u64 = 8;

impl<H: Host> Scheduler<H> {
    /// Does what is due.
    pub fn tick(&mut self, now: Moment) {
        self.pass_deadlines(now);
        self.give_up_on_devices(now);
        self.tick_grants(now);
        for device in self.device_ids() {
            self.try_device(now, device);
            self.stop_waiting_for_memory(now, device);
            self.find_stalled(now, device);
            // A run that takes far longer than predicted must not keep its queue from devices that are idle.
            self.wake_thieves(now, device);
        }
        self.went_elsewhere(now);
    }

    /// When something is due next, unless something happens before.
    pub fn next_tick(&self) -> Option<Moment> {
        let deadline = self.deadlines.peek().map(|Reverse((at, _))| *at);
        let devices = self.device_ids().flat_map(|device| self.device_due(device));
        let stranded = self.strandings().map(|(_, since)| since + self.config.device_wait_max).min();
        devices.chain(deadline).chain(stranded).chain(self.grants.due()).min()
    }

    fn device_due(&self, device: DeviceId) -> impl Iterator<Item = Moment> {
        let state = self.device(device);
        let retry = state.health.retry_at();
        let stalled = self.runs_on(device).filter_map(|run| self.stalled_at(run)).min();
        let hopeless = self.short_tasks(device).filter(|(task, _)| self.waits_in_vain(device, *task));
        let short = hopeless.map(|(_, since)| since + self.config.memory_wait_max).min();
        retry.into_iter().chain(stalled).chain(short)
    }

    fn pass_deadlines(&mut self, now: Moment) {
        while let Some(Reverse((at, task))) = self.deadlines.peek().copied() {
            if at > now && self.tasks.get(task).is_some() {
                break;
            }
            self.deadlines.pop();
            if at <= now {
                let started = self.tasks.get(task).is_some_and(|state| matches!(state.phase, Phase::Running { .. }));
                self.stop(now, task, TaskError::DeadlinePassed { started });
            }
        }
    }

    /// Tasks among the first of a queue that do not fit, and since when: those that a free slot looks at.
    fn short_tasks(&self, device: DeviceId) -> impl Iterator<Item = (TaskId, Moment)> + '_ {
        let heads = self.device(device).queue.iter().take(LOOK);
        heads.filter_map(move |task| Some((task, self.tasks.get(task)?.short_since(device)?)))
    }

    /// Whether no run here will give back the memory that a queued task waits for.
    fn waits_in_vain(&self, device: DeviceId, task: TaskId) -> bool {
        self.device(device).running == 0 || self.is_held_by_others(device, self.queued_bytes(task))
    }

    /// Memory that no run here will give back is waited for only so long; then the rung counts as refused.
    fn stop_waiting_for_memory(&mut self, now: Moment, device: DeviceId) {
        let patience = self.config.memory_wait_max;
        let waited = self.short_tasks(device).filter(|(_, since)| now.since(*since) >= patience);
        let given_up: Vec<_> = waited.map(|(task, _)| task).filter(|task| self.waits_in_vain(device, *task)).collect();
        for task in given_up {
            self.refuse_rung(now, task, device);
        }
    }

    /// The rung that a task is queued for counts as refused; the next one gets its chance.
    fn refuse_rung(&mut self, now: Moment, task: TaskId, device: DeviceId) {
        let wanted = self.queued_bytes(task);
        let shortfall = self.not_now(device, wanted, self.ledger.free(device));
        let Some(state) = self.tasks.get_mut(task) else { return };
        let Phase::Queued { rung, .. } = state.phase else { return };
        let refusal = Refusal::DoesNotFit(shortfall);
        let rung = state.spec.ladder.rungs()[rung].name;
        state.attempts.push(Attempt { rung, device, setback: Setback::Refused(refusal) });
        state.short = None;
        self.leave_queue(task);
        self.try_again(now, task);
    }

    fn find_stalled(&mut self, now: Moment, device: DeviceId) {
        let overdue = self.runs_on(device).filter(|run| self.stalled_at(*run).is_some_and(|at| at <= now));
        let overdue: Vec<TaskId> = overdue.collect();
        for run in overdue {
            self.give_up_waiting(now, RunId(run));
        }
    }

    /// Every run on a device that is watched for stalls.
    fn runs_on(&self, device: DeviceId) -> impl Iterator<Item = TaskId> + '_ {
        let watched = self.device(device).spec.stall_after.is_some();
        let runs = self.runs.ids().filter(move |_| watched);
        runs.filter(move |id| self.runs.get(*id).is_some_and(|run| run.device == device))
    }

    fn stalled_at(&self, run: TaskId) -> Option<Moment> {
        let run = self.runs.get(run).filter(|run| !run.overdue)?;
        let patience = self.device(run.device).spec.stall_after?;
        let predicted = Nanos(run.estimate.occupies().0.saturating_mul(STALL_FACTOR));
        Some(run.started_at + predicted + patience)
    }
}
