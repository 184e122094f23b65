//! Place: puts a ready task into the queue of the device that was chosen for it.
//! Never starts it; a placed task may still be moved until a slot takes it.
//! Invariant: a ready task is in exactly one queue, or stranded, or running.

use std::cmp::Reverse;

use super::choose::{Choice, Chosen, prepared_key};
use super::state::Phase;
use super::{Host, Scheduler};
use crate::arbiter;
use crate::error::{Attempt, Refusal, Setback, TaskError};
use crate::event::What;
use crate::ledger::ShortfallError;
use crate::queue::QueueKey;
use crate::{Bytes, DeviceId, DeviceSet, Moment, Nanos, TaskId};

/// A device is stolen from only if its slots have more than this much queued: looking costs some microseconds.
const STEAL_WORTH: Nanos = Nanos::micros(200);
/// Entries of ended tasks that a list may keep before it is swept.
pub(super) const LEFTOVERS: usize = 64;
/// How often a device with a long queue wakes idle ones to steal from it.
const STEAL_PAUSE: Nanos = Nanos::millis(10);

impl<H: Host> Scheduler<H> {
    /// Chooses for a ready task and queues it, strands it, or ends it.
    pub(super) fn place(&mut self, now: Moment, task: TaskId) {
        if self.waits_for_values(now, task) || self.has_nothing_to_leave(now, task) {
            return;
        }
        match self.choose(now, task) {
            Some(chosen) => self.place_as(now, task, &chosen),
            None => self.strand_or_end(now, task),
        }
    }

    /// Queues a task where it was chosen for, and counts it there.
    pub(super) fn place_as(&mut self, now: Moment, task: TaskId, chosen: &Chosen) {
        let Chosen { choice, offers } = chosen;
        if let Some(at) = offers.iter().position(|offer| offer.device == choice.device) {
            self.balancer.count(self.config.strategy, offers, at);
        }
        if let Some(sequence) = self.tasks.get(task).and_then(|state| state.spec.sequence) {
            self.sequences.make_home(sequence, choice.device);
        }
        self.enqueue(now, task, *choice);
    }

    /// Puts a task into its device's queue, and lets everybody know.
    pub(super) fn enqueue(&mut self, now: Moment, task: TaskId, choice: Choice) {
        self.stand_in_queue(task, choice);
        let Choice { rung, device, estimate } = choice;
        let Some(rung) = self.tasks.get(task).map(|state| state.spec.ladder.rungs()[rung].name) else { return };
        self.wakes = self.wakes.with(device);
        self.note(now, || What::Placed { task, rung, device, finish: now + estimate.finish() });
    }

    /// Puts a task into its device's queue, where it counts.
    pub(super) fn stand_in_queue(&mut self, task: TaskId, choice: Choice) {
        let Choice { rung, device, estimate } = choice;
        let Some(state) = self.tasks.get_mut(task) else { return };
        let spec = &state.spec;
        let stage = spec.item.map_or(0, |item| item.stage);
        let turn = arbiter::turn(state.submitted_at, spec.priority, spec.deadline, estimate.occupies(), stage);
        let key = QueueKey { turn, order: state.order };
        let name = spec.ladder.rungs()[rung].name;
        state.phase = Phase::Queued { device, rung, key, estimate };
        state.stranded_since = None;
        let target = &mut self.devices[device.index()];
        target.backlog[spec.priority.level()] += estimate.occupies();
        target.queue.push(key, task);
        for reference in &spec.references {
            target.cache.expect(prepared_key(spec, &spec.ladder.rungs()[rung], reference.content));
        }
        if !estimate.measured {
            self.workloads.cell_mut(spec.workload, name, device).exploring += 1;
        }
        self.keep_no_longer_if_before(device);
    }

    /// Takes a task out of its queue; its phase is the caller's to set.
    pub(super) fn dequeue(&mut self, task: TaskId) {
        let Some(state) = self.tasks.get_mut(task) else { return };
        let Phase::Queued { device, rung, key, estimate } = state.phase else { return };
        state.phase = Phase::Stranded;
        let spec = &state.spec;
        let from = &mut self.devices[device.index()];
        from.queue.remove(key);
        from.backlog[spec.priority.level()] -= estimate.occupies();
        let rung = &spec.ladder.rungs()[rung];
        for reference in &spec.references {
            from.cache.no_longer_expect(&prepared_key(spec, rung, reference.content));
        }
        if !estimate.measured {
            let cell = self.workloads.cell_mut(spec.workload, rung.name, device);
            cell.exploring = cell.exploring.saturating_sub(1);
        }
    }

    /// Takes a task out of its queue for good. Those behind it may have been waiting for it alone.
    pub(super) fn leave_queue(&mut self, task: TaskId) {
        let Some(Phase::Queued { device, .. }) = self.tasks.get(task).map(|state| state.phase) else { return };
        self.dequeue(task);
        if !self.device(device).queue.is_empty() {
            self.wakes = self.wakes.with(device);
        }
    }

    /// Tasks have left a queue without having run: a grant may have waited only so that they would fit beside it.
    #[inline]
    pub(super) fn went_elsewhere(&mut self, now: Moment) {
        if self.grants.wait() {
            self.offer_memory_to_grants(now);
        }
    }

    /// Nobody can take it now. If somebody may later it waits for that; otherwise it ends with every reason.
    fn strand_or_end(&mut self, now: Moment, task: TaskId) {
        if self.lift_yield(task) {
            return self.place(now, task);
        }
        let refusals = self.refusals(now, task);
        let waiting_helps = refusals.iter().any(|(_, _, refusal)| refusal.may_pass());
        let Some(state) = self.tasks.get_mut(task) else { return };
        if waiting_helps {
            state.phase = Phase::Stranded;
            state.stranded_since.get_or_insert(now);
            self.stranded.push(task);
            self.forget_old_strandings();
            return;
        }
        let error = exhausted(std::mem::take(&mut state.attempts), refusals);
        self.end_without_result(now, task, error);
    }

    /// Something changed for the better: tasks that nobody could take are chosen for again.
    pub(super) fn place_stranded(&mut self, now: Moment) {
        for task in std::mem::take(&mut self.stranded) {
            if self.tasks.get(task).is_some_and(|state| state.phase == Phase::Stranded) {
                self.place(now, task);
            }
        }
    }

    /// A task that no device took for too long ends with every reason.
    pub(super) fn give_up_on_devices(&mut self, now: Moment) {
        let patience = self.config.device_wait_max;
        let waited = |since: Moment| now.since(since) >= patience;
        let given_up: Vec<TaskId> =
            self.strandings().filter(|(_, since)| waited(*since)).map(|(task, _)| task).collect();
        for &task in &given_up {
            // The end of one may have freed what another waited for: that one stands in a queue by now.
            if self.tasks.get(task).is_none_or(|state| state.phase != Phase::Stranded) {
                continue;
            }
            // Once waiting is over, a rung that is only closed by what was learnt is tried before the task ends.
            if let Some(chosen) = self.choose(now, task) {
                self.place_as(now, task, &chosen);
                continue;
            }
            let refusals = self.refusals(now, task);
            let Some(state) = self.tasks.get_mut(task) else { continue };
            let error = exhausted(std::mem::take(&mut state.attempts), refusals);
            self.end_without_result(now, task, error);
        }
        // One that is stranded again must not be in the list twice.
        if !given_up.is_empty() {
            self.sweep_strandings();
        }
    }

    /// The tasks that no device can take, and since when.
    pub(super) fn strandings(&self) -> impl Iterator<Item = (TaskId, Moment)> + '_ {
        let stranded = self.stranded.iter().filter_map(|&task| Some((task, self.tasks.get(task)?)));
        let waiting = stranded.filter(|(_, state)| state.phase == Phase::Stranded);
        waiting.filter_map(|(task, state)| Some((task, state.stranded_since?)))
    }

    /// Ended tasks leave their place in the list; it never grows beyond twice the tasks there are.
    fn forget_old_strandings(&mut self) {
        if self.stranded.len() > 2 * self.tasks.len() + LEFTOVERS {
            self.sweep_strandings();
        }
    }

    fn sweep_strandings(&mut self) {
        let tasks = &self.tasks;
        self.stranded.retain(|task| tasks.get(*task).is_some_and(|state| state.phase == Phase::Stranded));
    }

    /// As with strandings: a deadline outlives its task only for so long.
    pub(super) fn forget_old_deadlines(&mut self) {
        if self.deadlines.len() > 2 * self.tasks.len() + LEFTOVERS {
            let tasks = &self.tasks;
            self.deadlines.retain(|Reverse((_, task))| tasks.get(*task).is_some());
        }
    }

    /// Chooses again for every task in a device's queue.
    pub(super) fn place_again(&mut self, now: Moment, device: DeviceId) {
        let queued: Vec<TaskId> = self.device(device).queue.iter().collect();
        for &task in &queued {
            self.dequeue(task);
        }
        for task in queued {
            self.place(now, task);
        }
    }

    /// Memory came back somewhere: whoever waits for it should look again.
    pub(super) fn memory_freed(&mut self, now: Moment) {
        self.offer_memory_to_grants(now);
        let waiting = self.device_ids().filter(|device| !self.device(*device).queue.is_empty());
        self.wakes = waiting.fold(self.wakes, DeviceSet::with);
        self.place_stranded(now);
    }

    /// Whether so much is queued here that an idle device should look for something to steal.
    pub(super) fn is_worth_stealing_from(&self, device: DeviceId) -> bool {
        let state = self.device(device);
        let queued: Nanos = state.backlog.iter().copied().sum();
        queued.0 / state.width.slots() as u64 > STEAL_WORTH.0
    }

    /// Wakes idle devices when this one has a long queue, so that they can steal what they would finish sooner.
    pub(super) fn wake_thieves(&mut self, now: Moment, device: DeviceId) {
        let state = self.device(device);
        if now.since(state.thieves_woken) < STEAL_PAUSE || !self.is_worth_stealing_from(device) {
            return;
        }
        self.device_mut(device).thieves_woken = now;
        let idle = self
            .devices
            .iter()
            .zip(0_u16..)
            .filter(|(other, _)| other.health.is_well() && other.queue.is_empty() && other.has_free_slot());
        self.wakes = idle.map(|(_, at)| DeviceId(at)).fold(self.wakes, DeviceSet::with);
    }
}

/// The error of a task that has no candidate left.
fn exhausted(attempts: Vec<Attempt>, refusals: Vec<(&'static str, DeviceId, Refusal)>) -> TaskError {
    let is_relevant = |refusal: &Refusal| {
        !matches!(refusal, Refusal::WrongKind | Refusal::TriedAlready | Refusal::OtherRungAsked | Refusal::NotAllowed)
    };
    // What the caller ruled out goes without saying, unless there is nothing else to say.
    let all_ruled_out = attempts.is_empty() && !refusals.iter().any(|(_, _, refusal)| is_relevant(refusal));
    let relevant = refusals.into_iter().filter(|(_, _, refusal)| all_ruled_out || is_relevant(refusal));
    let mut smallest: Option<(Bytes, Bytes)> = None;
    let mut only_memory = attempts.is_empty();
    let mut all = attempts;
    for (rung, device, refusal) in relevant {
        match &refusal {
            Refusal::DoesNotFit(ShortfallError::NeverFits { wanted, line, .. }) => {
                let (least, highest) = smallest.unwrap_or((*wanted, *line));
                smallest = Some((least.min(*wanted), highest.max(*line)));
            }
            _ => only_memory = false,
        }
        all.push(Attempt { rung, device, setback: Setback::Refused(refusal) });
    }
    match smallest.filter(|_| only_memory) {
        Some((needed, line)) => TaskError::NeverFits { needed, line, attempts: all },
        None => TaskError::Exhausted { attempts: all },
    }
}
