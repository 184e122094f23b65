//! First drafts by list scheduling: who takes which task when, decided as slots come free.
//! Never simulates what the executor makes of a draft (that is `evaluate`) and never improves one (that is `climb`).
//! Invariant: every task is on a class that can run it, and none is ranked before a more urgent one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::bound::Prices;
use super::evaluate::Draft;
use super::problem::{NEVER, Problem};
use super::rank_set::RankSet;

/// Which task of a queue goes first: the one with the longest way to the end of the set, …
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Order {
    /// … each task on the way at its mean over all slots that can run it.
    Mean,
    /// … each at its fastest.
    Least,
}

/// How to make a draft. Each class takes the tasks that are cheapest on it at the prices of the bound, in order; with
/// none of those ready it may take another side's.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Recipe {
    order: Order,
    /// Factor on the price of the slow class: moves the border between the sides.
    tilt: f64,
    /// A foreign task is taken if it takes at most this many times what it would wait and run on its own side.
    spill: f64,
}

/// The recipes in the order in which they are tried: chosen greedily from 72 (two orders, nine tilts, four spills) on
/// generated sets (independent, layered, pipelines, fork and join, trees, tiled LU, random), not on the benchmark, so
/// that the benchmark's figure is one of sets the recipes have not seen.
pub(super) const RECIPES: [Recipe; 6] = [
    // The border sits on some task's own ratio: one side has to take all tasks of that ratio, and 5 % decides which.
    Recipe { order: Order::Mean, tilt: 1.05, spill: 1.0 },
    // More to the slow class.
    Recipe { order: Order::Least, tilt: 0.7, spill: 0.5 },
    // Nearly all to the fast class as long as nothing waits long for it: for sets that are as long as their chain.
    Recipe { order: Order::Least, tilt: 4.0, spill: 1.0 },
    Recipe { order: Order::Mean, tilt: 0.7, spill: 1.0 },
    Recipe { order: Order::Least, tilt: 1.05, spill: 1.5 },
    Recipe { order: Order::Mean, tilt: 10.0, spill: 0.5 },
];

/// Makes drafts of one problem.
pub(super) struct Drafter<'p> {
    problem: &'p Problem,
    prices: &'p Prices,
    slots: Vec<usize>,
    slow: usize,
    /// For each class its tasks, those that it suits best first.
    suits: Vec<Vec<u32>>,
}

impl<'p> Drafter<'p> {
    pub(super) fn new(problem: &'p Problem, prices: &'p Prices) -> Self {
        let mut slots = vec![0; problem.classes];
        problem.slots.iter().for_each(|slot| slots[slot.class] += 1);
        let suits = (0..problem.classes).map(|class| best_suited(problem, prices, class)).collect();
        Self { problem, prices, slots, slow: slowest(problem), suits }
    }

    pub(super) fn draft(&self, recipe: Recipe) -> Draft {
        let queue = self.in_order(recipe.order);
        Run::new(self, &queue, &self.sides(recipe.tilt), recipe.spill).draft()
    }

    /// The side of each task.
    fn sides(&self, tilt: f64) -> Vec<u8> {
        let mut prices = self.prices.clone();
        if let Some(price) = prices.0.get_mut(self.slow) {
            *price = ((*price as f64 * tilt) as u64).max(1);
        }
        (0..self.problem.len).map(|task| prices.side(self.problem.costs(task)) as u8).collect()
    }

    fn in_order(&self, order: Order) -> Vec<u32> {
        let weight = |task: usize| match order {
            Order::Mean => self.mean(task),
            Order::Least => self.problem.least(task),
        };
        let tail = self.problem.tails(weight);
        let mut queue = self.problem.topological.clone();
        queue.sort_by_cached_key(|&task| {
            let task = task as usize;
            Reverse((self.problem.urgency[task], tail[task].saturating_add(weight(task))))
        });
        queue
    }

    fn mean(&self, task: usize) -> u64 {
        let able = self.problem.costs(task).iter().zip(&self.slots).filter(|&(&cost, _)| cost != NEVER);
        let (sum, count) = able.fold((0u128, 0u128), |(sum, count), (&cost, &slots)| {
            (sum + u128::from(cost) * slots as u128, count + slots as u128)
        });
        (sum / count.max(1)) as u64
    }
}

/// The class on which a task takes longest on average. Not simply the CPU: in a video pipeline it is the GPU.
fn slowest(problem: &Problem) -> usize {
    let mean = |class: usize| {
        let able = (0..problem.len).map(|task| problem.cost(task, class)).filter(|&cost| cost != NEVER);
        let (sum, count) = able.fold((0.0, 0.0), |(sum, count), cost| (sum + cost as f64, count + 1.0));
        sum / f64::max(count, 1.0)
    };
    (0..problem.classes).max_by(|&a, &b| mean(a).total_cmp(&mean(b))).unwrap_or(0)
}

/// The tasks a class can run, by how much dearer they are on it than where they are cheapest.
fn best_suited(problem: &Problem, prices: &Prices, class: usize) -> Vec<u32> {
    let price = |task: usize, class: usize| problem.cost(task, class) as f64 * prices.0[class].max(1) as f64;
    let elsewhere = |task: usize| {
        let others = (0..problem.classes).filter(|&other| other != class && problem.cost(task, other) != NEVER);
        others.map(|other| price(task, other)).fold(f64::INFINITY, f64::min)
    };
    let mut tasks: Vec<(f64, u32)> = (0..problem.len)
        .filter(|&task| problem.cost(task, class) != NEVER)
        .map(|task| (price(task, class) / elsewhere(task), task as u32))
        .collect();
    tasks.sort_by(|a, b| a.0.total_cmp(&b.0));
    tasks.into_iter().map(|(_, task)| task).collect()
}

/// The making of one draft: virtual time passes, and slots take tasks as they come free.
struct Run<'a> {
    drafter: &'a Drafter<'a>,
    /// All tasks in order, and the place of each in it.
    queue: &'a [u32],
    rank: Vec<u32>,
    side: &'a [u8],
    spill: f64,
    /// For each class the place of each task in the order in which it suits.
    suit_rank: Vec<Vec<u32>>,
    /// Ready tasks of each class's own side by rank, and of the other sides by how they suit it.
    own: Vec<RankSet>,
    foreign: Vec<RankSet>,
    /// Work that is ready and not begun, per side.
    backlog: Vec<u64>,
    free: Vec<usize>,
    /// When the busy slots of each class come free, summed.
    ends: Vec<u128>,
    running: BinaryHeap<Reverse<(u64, u32)>>,
    waits: Vec<u32>,
    class: Vec<u8>,
    begun: Vec<u32>,
}

impl<'a> Run<'a> {
    fn new(drafter: &'a Drafter<'a>, queue: &'a [u32], side: &'a [u8], spill: f64) -> Self {
        let problem = drafter.problem;
        let sets = || vec![RankSet::new(problem.len); problem.classes];
        Self {
            drafter,
            queue,
            rank: inverse(queue, problem.len),
            side,
            spill,
            suit_rank: drafter.suits.iter().map(|tasks| inverse(tasks, problem.len)).collect(),
            own: sets(),
            foreign: sets(),
            backlog: vec![0; problem.classes],
            free: vec![0; problem.classes],
            ends: vec![0; problem.classes],
            running: BinaryHeap::with_capacity(problem.slots.len()),
            waits: problem.waits.clone(),
            class: vec![0; problem.len],
            begun: Vec::with_capacity(problem.len),
        }
    }

    fn draft(mut self) -> Draft {
        let problem = self.drafter.problem;
        for (index, slot) in problem.slots.iter().enumerate() {
            self.running.push(Reverse((slot.free_at, (problem.len + index) as u32)));
            self.ends[slot.class] += u128::from(slot.free_at);
        }
        for (number, &(task, until)) in (problem.first_delay()..).zip(&problem.delayed) {
            self.waits[task as usize] += 1;
            self.running.push(Reverse((until, number)));
        }
        for &root in &problem.topological[..problem.roots] {
            if self.waits[root as usize] == 0 {
                self.release(root as usize);
            }
        }
        while let Some(&Reverse((now, _))) = self.running.peek() {
            while let Some(&Reverse((end, task))) = self.running.peek()
                && end == now
            {
                self.running.pop();
                self.end(now, task as usize);
            }
            for class in 0..problem.classes {
                while self.free[class] > 0
                    && let Some(task) = self.take(class, now)
                {
                    self.begin(task, class, now);
                }
            }
        }
        // What began first ranks first, but never before a more urgent task.
        self.begun.sort_by_key(|&task| Reverse(problem.urgency[task as usize]));
        Draft::new(self.class, self.begun)
    }

    fn take(&mut self, class: usize, now: u64) -> Option<usize> {
        if let Some(rank) = self.own[class].first() {
            return Some(self.queue[rank as usize] as usize);
        }
        let suit = self.foreign[class].first()?;
        let task = self.drafter.suits[class][suit as usize] as usize;
        let side = usize::from(self.side[task]);
        (self.drafter.problem.cost(task, class) as f64 <= self.spill * self.wait_and_run(task, side, now))
            .then_some(task)
    }

    /// How long until the task is done if its own side does everything that is ready there first.
    fn wait_and_run(&self, task: usize, side: usize, now: u64) -> f64 {
        let busy = self.drafter.slots[side] - self.free[side];
        let running = self.ends[side].saturating_sub(u128::from(now) * busy as u128);
        let cost = self.drafter.problem.cost(task, side);
        let before = running as f64 + self.backlog[side].saturating_sub(cost) as f64;
        before / self.drafter.slots[side] as f64 + cost as f64
    }

    fn release(&mut self, task: usize) {
        let side = usize::from(self.side[task]);
        self.backlog[side] = self.backlog[side].saturating_add(self.drafter.problem.cost(task, side));
        self.own[side].insert(self.rank[task]);
        for class in (0..self.foreign.len()).filter(|&class| class != side) {
            if self.drafter.problem.cost(task, class) != NEVER {
                self.foreign[class].insert(self.suit_rank[class][task]);
            }
        }
    }

    fn begin(&mut self, task: usize, class: usize, now: u64) {
        let problem = self.drafter.problem;
        let side = usize::from(self.side[task]);
        self.backlog[side] = self.backlog[side].saturating_sub(problem.cost(task, side));
        self.own[side].remove(self.rank[task]);
        for other in (0..self.foreign.len()).filter(|&other| other != side) {
            if problem.cost(task, other) != NEVER {
                self.foreign[other].remove(self.suit_rank[other][task]);
            }
        }
        let end = now.saturating_add(problem.cost(task, class));
        self.free[class] -= 1;
        self.ends[class] += u128::from(end);
        self.running.push(Reverse((end, task as u32)));
        self.class[task] = class as u8;
        self.begun.push(task as u32);
    }

    fn end(&mut self, now: u64, task: usize) {
        let problem = self.drafter.problem;
        if let Some(delay) = task.checked_sub(problem.first_delay() as usize) {
            return self.no_longer_waits(problem.delayed[delay].0);
        }
        let class = match task.checked_sub(problem.len) {
            Some(slot) => problem.slots[slot].class,
            None => usize::from(self.class[task]),
        };
        self.free[class] += 1;
        self.ends[class] = self.ends[class].saturating_sub(u128::from(now));
        if task < problem.len {
            problem.after(task).iter().for_each(|&next| self.no_longer_waits(next));
        }
    }

    /// One of the things that a task waits for is over.
    fn no_longer_waits(&mut self, task: u32) {
        self.waits[task as usize] -= 1;
        if self.waits[task as usize] == 0 {
            self.release(task as usize);
        }
    }
}

/// The place of each task in `tasks`.
fn inverse(tasks: &[u32], len: usize) -> Vec<u32> {
    let mut places = vec![0; len];
    tasks.iter().enumerate().for_each(|(place, &task)| places[task as usize] = place as u32);
    places
}
