//! The known set in flat arrays: what every simulation reads and none changes.
//! Never searches and never allocates after it was built.
//! Invariant: acyclic, every index in range, every task has a class it can run on (checked in [`Problem::new`]).

use std::cmp::Reverse;

use crate::DeviceSet;

use super::evaluate::Draft;
use super::{KnownDevice, KnownTask, PlanError, Step};

/// Tasks one plan may hold. A plan of a million tasks takes about 1.2 s; a caller with more plans them in parts.
pub const TASK_LIMIT: usize = 1 << 20;

/// The cost of a task on a class that cannot run it.
pub(super) const NEVER: u64 = u64::MAX;

/// Room for one task at a time.
pub(super) struct Slot {
    pub(super) class: usize,
    pub(super) device: usize,
    pub(super) free_at: u64,
}

/// The flat form of a known set.
///
/// Devices on which every task costs the same are one *class* and share one queue while searching: which of three
/// equal GPUs takes a task is not a question worth a simulation.
pub(super) struct Problem {
    pub(super) len: usize,
    pub(super) classes: usize,
    pub(super) slots: Vec<Slot>,
    /// Task-major: `cost[task * classes + class]`.
    cost: Vec<u64>,
    next_start: Vec<u32>,
    next: Vec<u32>,
    /// Predecessors of each task.
    pub(super) waits: Vec<u32>,
    /// Tasks that cannot start before some moment, and that moment.
    pub(super) delayed: Vec<(u32, u64)>,
    /// Predecessors before successors; those without predecessors first of all.
    pub(super) topological: Vec<u32>,
    /// How many have no predecessors.
    pub(super) roots: usize,
    /// The caller's urgency, raised to that of the most urgent task waiting for this one.
    pub(super) urgency: Vec<u8>,
    /// The least time from a task's end to the end of the set: the cheapest chain of its successors.
    pub(super) tail: Vec<u64>,
}

impl Problem {
    pub(super) fn new(tasks: &[KnownTask], devices: &[KnownDevice]) -> Result<Self, PlanError> {
        check(tasks, devices)?;
        let (slots, representative) = slots(tasks, devices);
        let cost = tasks
            .iter()
            .flat_map(|task| representative.iter().map(|&device| cost(task, device).unwrap_or(NEVER)))
            .collect();
        let (next_start, next) = successors(tasks);
        let waits = tasks.iter().map(|task| task.after.len() as u32).collect();
        let mut problem = Self {
            len: tasks.len(),
            classes: representative.len(),
            slots,
            cost,
            next_start,
            next,
            waits,
            delayed: delayed(tasks),
            topological: Vec::new(),
            roots: tasks.iter().filter(|task| task.after.is_empty()).count(),
            urgency: tasks.iter().map(|task| task.urgency).collect(),
            tail: Vec::new(),
        };
        problem.topological = problem.sort()?;
        problem.inherit_urgency();
        problem.tail = problem.tails(|task| problem.least(task));
        Ok(problem)
    }

    /// The draft that these steps are, the more urgent first as in every draft; `None` unless each task can take its own.
    pub(super) fn draft_of(&self, steps: &[Step]) -> Option<Draft> {
        if steps.is_empty() || steps.len() != self.len {
            return None;
        }
        let class = steps.iter().enumerate().map(|(task, step)| {
            let class = self.slots.iter().find(|slot| slot.device == step.device)?.class;
            (self.cost(task, class) != NEVER).then_some(class as u8)
        });
        let class = class.collect::<Option<Vec<u8>>>()?;
        let mut order: Vec<u32> = (0..self.len as u32).collect();
        order.sort_by_key(|&task| (Reverse(self.urgency[task as usize]), steps[task as usize].rank));
        Some(Draft::new(class, order))
    }

    pub(super) fn cost(&self, task: usize, class: usize) -> u64 {
        self.cost[task * self.classes + class]
    }

    pub(super) fn costs(&self, task: usize) -> &[u64] {
        let width = self.classes;
        &self.cost[task * width..(task + 1) * width]
    }

    /// Whatever ends in a simulation has a number: tasks, then slots, then the delays of tasks from this one on.
    pub(super) fn first_delay(&self) -> u32 {
        (self.len + self.slots.len()) as u32
    }

    /// The task's cost where it is cheapest.
    pub(super) fn least(&self, task: usize) -> u64 {
        self.costs(task).iter().copied().min().unwrap_or(NEVER)
    }

    pub(super) fn after(&self, task: usize) -> &[u32] {
        &self.next[self.next_start[task] as usize..self.next_start[task + 1] as usize]
    }

    /// For each task the longest chain of its successors, each at the cost that `weight` gives it.
    pub(super) fn tails(&self, weight: impl Fn(usize) -> u64) -> Vec<u64> {
        let mut tail = vec![0u64; self.len];
        for &task in self.topological.iter().rev() {
            let longest = self.after(task as usize).iter().map(|&next| next as usize);
            tail[task as usize] = longest.map(|next| tail[next].saturating_add(weight(next))).max().unwrap_or(0);
        }
        tail
    }

    fn sort(&self) -> Result<Vec<u32>, PlanError> {
        let mut waits = self.waits.clone();
        let mut order: Vec<u32> = (0..self.len as u32).filter(|&task| waits[task as usize] == 0).collect();
        let mut done = 0;
        while let Some(&task) = order.get(done) {
            done += 1;
            for &next in self.after(task as usize) {
                waits[next as usize] -= 1;
                if waits[next as usize] == 0 {
                    order.push(next);
                }
            }
        }
        match waits.iter().position(|&left| left > 0) {
            Some(task) => Err(PlanError::Cycle { task }),
            None => Ok(order),
        }
    }

    fn inherit_urgency(&mut self) {
        for &task in self.topological.iter().rev() {
            let (task, from) = (task as usize, self.next_start[task as usize] as usize);
            let heirs = &self.next[from..self.next_start[task + 1] as usize];
            let most = heirs.iter().map(|&next| self.urgency[next as usize]).max().unwrap_or(0);
            self.urgency[task] = self.urgency[task].max(most);
        }
    }
}

fn delayed(tasks: &[KnownTask]) -> Vec<(u32, u64)> {
    let delays = tasks.iter().zip(0..).map(|(task, at)| (at, task.not_before.0));
    delays.filter(|&(_, not_before)| not_before > 0).collect()
}

fn cost(task: &KnownTask, device: usize) -> Option<u64> {
    task.costs[device].map(|cost| cost.0.min(NEVER - 1))
}

fn check_counts(tasks: usize, devices: usize) -> Result<(), PlanError> {
    if devices > DeviceSet::LIMIT {
        return Err(PlanError::TooManyDevices { devices });
    }
    if tasks > TASK_LIMIT {
        return Err(PlanError::TooManyTasks { tasks });
    }
    Ok(())
}

fn check(tasks: &[KnownTask], devices: &[KnownDevice]) -> Result<(), PlanError> {
    check_counts(tasks.len(), devices.len())?;
    for (index, task) in tasks.iter().enumerate() {
        if task.costs.len() != devices.len() {
            return Err(PlanError::CostsMismatch { task: index, costs: task.costs.len(), devices: devices.len() });
        }
        if let Some(&after) = task.after.iter().find(|&&after| after as usize >= tasks.len()) {
            return Err(PlanError::NoSuchTask { task: index, after });
        }
        if !devices.iter().zip(&task.costs).any(|(device, cost)| device.slots > 0 && cost.is_some()) {
            return Err(PlanError::FitsNowhere { task: index });
        }
    }
    Ok(())
}

/// Groups devices with equal cost columns into classes; returns all slots and a device that stands for each class.
fn slots(tasks: &[KnownTask], devices: &[KnownDevice]) -> (Vec<Slot>, Vec<usize>) {
    let mut slots = Vec::new();
    let mut representative: Vec<usize> = Vec::new();
    for (device, facts) in devices.iter().enumerate().filter(|(_, facts)| facts.slots > 0) {
        let twin = representative.iter().position(|&known| tasks.iter().all(|t| t.costs[known] == t.costs[device]));
        let class = twin.unwrap_or_else(|| {
            representative.push(device);
            representative.len() - 1
        });
        // A device may claim any number of slots; more than there are tasks are never used.
        let free_at = facts.slots_free_at(tasks.len());
        slots.extend(free_at.map(|free_at| Slot { class, device, free_at: free_at.0 }));
    }
    (slots, representative)
}

/// Who waits for whom, as one list of successors with the place where each task's part begins.
fn successors(tasks: &[KnownTask]) -> (Vec<u32>, Vec<u32>) {
    let mut start = vec![0u32; tasks.len() + 1];
    for &before in tasks.iter().flat_map(|task| &task.after) {
        start[before as usize + 1] += 1;
    }
    for task in 0..tasks.len() {
        start[task + 1] += start[task];
    }
    let mut fill = start.clone();
    let mut next = vec![0u32; start[tasks.len()] as usize];
    for (index, task) in tasks.iter().enumerate() {
        for &before in &task.after {
            next[fill[before as usize] as usize] = index as u32;
            fill[before as usize] += 1;
        }
    }
    (start, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_tasks_and_devices_as_the_limits_say_can_be_planned_and_no_more() {
        assert_eq!(check_counts(TASK_LIMIT, DeviceSet::LIMIT), Ok(()));
        let tasks = TASK_LIMIT + 1;
        assert_eq!(check_counts(tasks, 1), Err(PlanError::TooManyTasks { tasks }));
        let devices = DeviceSet::LIMIT + 1;
        assert_eq!(check_counts(1, devices), Err(PlanError::TooManyDevices { devices }));
    }
}
