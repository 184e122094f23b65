//! Improves a draft by moves along the chain of tasks that makes it as long as it is.
//! Never breaks the order of urgency, and never keeps a move that makes the plan longer.
//! Invariant: `trace` is what the executor makes of `draft`.

use smallvec::SmallVec;

use super::Step;
use super::evaluate::{Draft, NOBODY, Simulator, Trace};
use super::problem::{NEVER, Problem};
use crate::Nanos;
use crate::rng::Rng;

/// Of 100 moves, those that let a task on the chain overtake one it waited for …
const OVERTAKE: usize = 40;
/// … those that send it to another class; the rest trade places with a neighbour.
const REHOME: usize = 35;
/// How far in rank a neighbour is: near, so that a trade stays a small change.
const NEAR: usize = 16;
/// Moves tried per simulation allowed. Some change nothing (the class picked is the task's own) and cost nothing, but
/// in a set where none changes anything the search has to end too.
const TRIES: u32 = 8;

/// What a move changed, so that it can be taken back.
#[derive(Copy, Clone, Debug)]
enum Change {
    Class { task: u32, was: u8 },
    Rank { from: u32, to: u32 },
}

/// A draft on its way up.
pub(super) struct Climb<'p> {
    problem: &'p Problem,
    simulator: Simulator<'p>,
    rng: Rng,
    draft: Draft,
    trace: Trace,
    /// The tasks that make the plan as long as it is, the last one first: each could not start before the next ended.
    chain: Vec<u32>,
    /// What the move under trial changed.
    changes: SmallVec<[Change; 4]>,
}

impl<'p> Climb<'p> {
    pub(super) fn new(problem: &'p Problem, simulator: Simulator<'p>, draft: Draft, trace: Trace, seed: u64) -> Self {
        let rng = Rng::new(seed);
        let mut climb = Self { problem, simulator, rng, draft, trace, chain: Vec::new(), changes: SmallVec::new() };
        climb.find_chain();
        climb
    }

    pub(super) fn makespan(&self) -> u64 {
        self.trace.makespan
    }

    /// The draft as steps: each task on the device whose slot it had.
    pub(super) fn steps(&self) -> Vec<Step> {
        let device = |task: usize| self.problem.slots[self.trace.slot[task] as usize].device;
        (0..self.problem.len).map(|task| Step { device: device(task), rank: self.draft.rank[task] }).collect()
    }

    /// When each task ends.
    pub(super) fn ends(&self) -> Vec<Nanos> {
        let end = |task: usize| {
            let cost = self.problem.cost(task, self.draft.class(task));
            Nanos(self.trace.start[task].saturating_add(cost))
        };
        (0..self.problem.len).map(end).collect()
    }

    /// Tries moves until the makespan is at most `goal` or the simulations are used up; returns how many were used.
    ///
    /// A move that leaves the makespan as it is stays: it changes which tasks are on the chain, which is how the climb
    /// crosses plains.
    pub(super) fn run(&mut self, simulations: u32, goal: u64) -> u32 {
        let mut used = 0;
        for _ in 0..simulations.saturating_mul(TRIES) {
            if used == simulations || self.trace.makespan <= goal {
                break;
            }
            self.change();
            if self.changes.is_empty() {
                continue;
            }
            used += 1;
            match self.simulator.play(&self.draft, self.trace.makespan) {
                Some(_) => self.keep(),
                None => self.take_back(),
            }
        }
        used
    }

    fn keep(&mut self) {
        std::mem::swap(&mut self.trace, &mut self.simulator.trace);
        self.changes.clear();
        self.find_chain();
    }

    fn take_back(&mut self) {
        while let Some(change) = self.changes.pop() {
            match change {
                Change::Class { task, was } => self.draft.class[task as usize] = was,
                Change::Rank { from, to } => self.draft.shift(to, from),
            }
        }
    }

    fn find_chain(&mut self) {
        self.chain.clear();
        let mut link = self.trace.last;
        while link != NOBODY {
            self.chain.push(link);
            let task = link as usize;
            let held_up_by = if self.trace.waited(task) { &self.trace.slot_from } else { &self.trace.released_by };
            link = held_up_by[task];
        }
    }

    /// One move at a random place of the chain; sometimes none.
    fn change(&mut self) {
        let Some(&task) = self.chain.get(self.rng.below(self.chain.len())) else { return };
        let task = task as usize;
        let throw = self.rng.below(100);
        if throw < OVERTAKE && self.trace.waited(task) {
            self.overtake(task);
        } else if throw < OVERTAKE + REHOME {
            self.rehome(task);
        } else {
            self.trade(task);
        }
    }

    /// Ahead of the task that had the slot before, or of one further back that also began while this one waited.
    fn overtake(&mut self, task: usize) {
        let mut ahead_of = self.trace.slot_from[task];
        while ahead_of != NOBODY && self.rng.below(2) == 0 {
            let further = self.trace.slot_from[ahead_of as usize];
            if further == NOBODY || self.trace.start[further as usize] < self.trace.ready[task] {
                break;
            }
            ahead_of = further;
        }
        if ahead_of != NOBODY {
            self.take_rank_of(task, ahead_of as usize);
        }
    }

    /// To another class, half of the time with a rank from nearby.
    fn rehome(&mut self, task: usize) {
        let class = self.rng.below(self.problem.classes);
        if class == self.draft.class(task) || self.problem.cost(task, class) == NEVER {
            return;
        }
        self.set_class(task, class);
        if self.rng.below(2) == 0 {
            let neighbour = self.neighbour(task);
            self.take_rank_of(task, neighbour);
        }
    }

    /// Swaps classes with a task of about the same rank, or takes the rank of one in the same class.
    fn trade(&mut self, task: usize) {
        let other = self.neighbour(task);
        let (here, there) = (self.draft.class(task), self.draft.class(other));
        if here == there {
            self.take_rank_of(task, other);
        } else if self.problem.cost(task, there) != NEVER && self.problem.cost(other, here) != NEVER {
            self.set_class(task, there);
            self.set_class(other, here);
        }
    }

    fn neighbour(&mut self, task: usize) -> usize {
        let rank = self.draft.rank[task] as usize;
        let (from, to) = (rank.saturating_sub(NEAR), (rank + NEAR + 1).min(self.problem.len));
        self.draft.order[from + self.rng.below(to - from)] as usize
    }

    fn set_class(&mut self, task: usize, class: usize) {
        let was = std::mem::replace(&mut self.draft.class[task], class as u8);
        self.changes.push(Change::Class { task: task as u32, was });
    }

    fn take_rank_of(&mut self, task: usize, other: usize) {
        let (from, to) = (self.draft.rank[task], self.draft.rank[other]);
        if from != to && self.problem.urgency[task] == self.problem.urgency[other] {
            self.draft.shift(from, to);
            self.changes.push(Change::Rank { from, to });
        }
    }
}
