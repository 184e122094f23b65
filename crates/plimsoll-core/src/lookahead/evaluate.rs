//! One simulation: what happens when the executor follows a draft (`README.md`, "The rule").
//! Never chooses: class and rank are given.
//! Invariant: a slot is never idle while its class has a task ready.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::problem::Problem;
use super::rank_set::RankSet;

/// No task: nothing had to end before this one could start.
pub(super) const NOBODY: u32 = u32::MAX;

/// A limit that no draft passes: times saturate there.
pub(super) const UNLIMITED: u64 = u64::MAX;

/// A class for each task and a total order over all of them: what the search changes.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) class: Vec<u8>,
    /// The task at each rank.
    pub(super) order: Vec<u32>,
    /// The rank of each task: the inverse of `order`.
    pub(super) rank: Vec<u32>,
}

impl Draft {
    pub(super) fn new(class: Vec<u8>, order: Vec<u32>) -> Self {
        let mut rank = vec![0; order.len()];
        for (place, &task) in order.iter().enumerate() {
            rank[task as usize] = place as u32;
        }
        Self { class, order, rank }
    }

    pub(super) fn class(&self, task: usize) -> usize {
        usize::from(self.class[task])
    }

    /// Takes the task at rank `from` out and puts it in at rank `to`.
    pub(super) fn shift(&mut self, from: u32, to: u32) {
        let span = from.min(to) as usize..=from.max(to) as usize;
        if from < to {
            self.order[span.clone()].rotate_left(1);
        } else {
            self.order[span.clone()].rotate_right(1);
        }
        for place in span {
            self.rank[self.order[place] as usize] = place as u32;
        }
    }
}

/// When each task was ready and started in one simulation, and what held it up.
#[derive(Clone)]
pub(super) struct Trace {
    pub(super) ready: Vec<u64>,
    pub(super) start: Vec<u64>,
    /// The slot the task ran on, counted over all classes.
    pub(super) slot: Vec<u32>,
    /// The predecessor that ended last.
    pub(super) released_by: Vec<u32>,
    /// The task that had the slot before.
    pub(super) slot_from: Vec<u32>,
    /// The task that ended last.
    pub(super) last: u32,
    pub(super) makespan: u64,
}

impl Trace {
    pub(super) fn new(len: usize) -> Self {
        Self {
            ready: vec![0; len],
            start: vec![0; len],
            slot: vec![0; len],
            released_by: vec![NOBODY; len],
            slot_from: vec![NOBODY; len],
            last: NOBODY,
            makespan: 0,
        }
    }

    /// Whether the task stood in a queue: it was ready and no slot was free.
    pub(super) fn waited(&self, task: usize) -> bool {
        self.start[task] > self.ready[task]
    }
}

/// Plays drafts. Its room is made once and used for all of them.
pub(super) struct Simulator<'p> {
    problem: &'p Problem,
    /// Of the draft played last; whole only if that one was played to its end.
    pub(super) trace: Trace,
    waits: Vec<u32>,
    queue: Vec<RankSet>,
    /// Free slots of each class.
    free: Vec<Vec<u32>>,
    /// The task that had each slot last, and when the slot came free.
    held: Vec<u32>,
    freed_at: Vec<u64>,
    /// How long the slots of each class, together, can still stand idle without passing the limit.
    spare: Vec<u128>,
    /// What ends when. Numbers from `len` on are slots that were busy before the plan began, those behind them the
    /// delays of tasks.
    running: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<'p> Simulator<'p> {
    pub(super) fn new(problem: &'p Problem) -> Self {
        Self {
            problem,
            trace: Trace::new(problem.len),
            waits: vec![0; problem.len],
            queue: vec![RankSet::new(problem.len); problem.classes],
            free: vec![Vec::with_capacity(problem.slots.len()); problem.classes],
            held: vec![NOBODY; problem.slots.len()],
            freed_at: vec![0; problem.slots.len()],
            spare: vec![0; problem.classes],
            running: BinaryHeap::with_capacity(problem.slots.len()),
        }
    }

    /// Plays the draft; `None` as soon as it is sure to end after `limit`: a chain of tasks is too long for it, or a
    /// class has more work and idle time behind it than its slots can hold.
    pub(super) fn play(&mut self, draft: &Draft, limit: u64) -> Option<u64> {
        self.set_spare(draft, limit)?;
        self.reset(draft);
        let mut now = 0;
        loop {
            self.start_all(draft, now, limit)?;
            match self.running.peek() {
                Some(&Reverse((end, _))) => now = end,
                None => return Some(self.trace.makespan),
            }
            while let Some(&Reverse((end, task))) = self.running.peek()
                && end == now
            {
                self.running.pop();
                self.end(draft, now, task);
            }
        }
    }

    fn set_spare(&mut self, draft: &Draft, limit: u64) -> Option<()> {
        if limit == UNLIMITED {
            self.spare.fill(u128::MAX);
            return Some(());
        }
        self.spare.fill(0);
        for slot in &self.problem.slots {
            self.spare[slot.class] += u128::from(limit.saturating_sub(slot.free_at));
        }
        for task in 0..self.problem.len {
            let class = draft.class(task);
            let left = self.spare[class].checked_sub(u128::from(self.problem.cost(task, class)));
            self.spare[class] = left?;
        }
        Some(())
    }

    fn reset(&mut self, draft: &Draft) {
        self.waits.copy_from_slice(&self.problem.waits);
        self.queue.iter_mut().for_each(RankSet::clear);
        self.free.iter_mut().for_each(Vec::clear);
        self.held.fill(NOBODY);
        self.running.clear();
        (self.trace.makespan, self.trace.last) = (0, NOBODY);
        for (index, slot) in self.problem.slots.iter().enumerate() {
            self.freed_at[index] = slot.free_at;
            match slot.free_at {
                0 => self.free[slot.class].push(index as u32),
                busy => self.running.push(Reverse((busy, (self.problem.len + index) as u32))),
            }
        }
        for (number, &(task, until)) in (self.problem.first_delay()..).zip(&self.problem.delayed) {
            self.waits[task as usize] += 1;
            self.running.push(Reverse((until, number)));
        }
        for &task in &self.problem.topological[..self.problem.roots] {
            // Ready from the beginning, as every trace has it.
            if self.waits[task as usize] == 0 {
                self.queue[draft.class(task as usize)].insert(draft.rank[task as usize]);
            }
        }
    }

    fn start_all(&mut self, draft: &Draft, now: u64, limit: u64) -> Option<()> {
        for class in 0..self.queue.len() {
            while !self.free[class].is_empty()
                && let Some(rank) = self.queue[class].take_first()
                && let Some(slot) = self.free[class].pop()
            {
                let task = draft.order[rank as usize];
                let end = now.saturating_add(self.problem.cost(task as usize, class));
                if end.saturating_add(self.problem.tail[task as usize]) > limit {
                    return None;
                }
                let idle = u128::from(now - self.freed_at[slot as usize]);
                self.spare[class] = self.spare[class].checked_sub(idle)?;
                self.freed_at[slot as usize] = end;
                self.running.push(Reverse((end, task)));
                self.trace.start[task as usize] = now;
                self.trace.slot[task as usize] = slot;
                self.trace.slot_from[task as usize] = std::mem::replace(&mut self.held[slot as usize], task);
            }
        }
        Some(())
    }

    fn end(&mut self, draft: &Draft, now: u64, task: u32) {
        if let Some(delay) = task.checked_sub(self.problem.first_delay()) {
            return self.release(draft, now, self.problem.delayed[delay as usize].0, NOBODY);
        }
        let Some(&slot) = self.trace.slot.get(task as usize) else {
            let slot = task - self.problem.len as u32;
            return self.free[self.problem.slots[slot as usize].class].push(slot);
        };
        self.free[draft.class(task as usize)].push(slot);
        (self.trace.makespan, self.trace.last) = (now, task);
        for &next in self.problem.after(task as usize) {
            self.release(draft, now, next, task);
        }
    }

    /// One of the things that a task waits for is over.
    fn release(&mut self, draft: &Draft, now: u64, task: u32, by: u32) {
        let waits = &mut self.waits[task as usize];
        *waits -= 1;
        if *waits == 0 {
            (self.trace.ready[task as usize], self.trace.released_by[task as usize]) = (now, by);
            self.queue[draft.class(task as usize)].insert(draft.rank[task as usize]);
        }
    }
}
