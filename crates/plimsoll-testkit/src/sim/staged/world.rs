//! Streams that run beside each other, buffers with content, and the host that hands out steps.
//! Never lets a stage happen at once: it begins, others may move, it ends. Who meets another in a buffer is found then.
//! Invariant: what an item gives is a function of what its stages read, so any stale or torn buffer changes it.

use std::collections::VecDeque;

use plimsoll_core::rng::Rng;
use plimsoll_core::staged::{Checks, EdgeId, Order, Plan, StageId, Step, StreamId, Usage};
use rustc_hash::{FxHashMap, FxHashSet};

use super::sabotage::{Sabotage, Steps};
use super::{Failure, Scenario};

/// How often the scheduler of the simulated machine changes its mind about who goes first. In between it starves the
/// others, which is what shows missing waits.
const CHANGE_OF_MIND: f64 = 0.1;

/// What lies on a stream.
#[derive(Copy, Clone)]
enum Op {
    Wait(EdgeId, u64),
    Work(StageId, u64),
    Record(EdgeId, u64),
}

/// One buffer.
#[derive(Clone, Default)]
struct Cell {
    content: u64,
    readers: u32,
    has_writer: bool,
}

/// A stage that has begun, and what it has read.
#[derive(Copy, Clone)]
struct Begun {
    stage: StageId,
    item: u64,
    read: u64,
}

/// The contents of all pools.
struct Cells<'a> {
    plan: &'a Plan,
    cells: Vec<Vec<Cell>>,
}

impl<'a> Cells<'a> {
    fn new(plan: &'a Plan) -> Self {
        let cells = plan.stages().pool_ids().map(|pool| vec![Cell::default(); plan.count(pool)]).collect();
        Self { plan, cells }
    }

    fn begin(&mut self, stage: StageId, item: u64) -> Result<Begun, Failure> {
        let stages = self.plan.stages();
        let mut read = mix(stage.index() as u64, item);
        for (pool, usage) in &stages[stage].uses {
            let buffers = &mut self.cells[pool.index()];
            let buffer = (item % buffers.len() as u64) as usize;
            let cell = &mut buffers[buffer];
            if cell.has_writer || (cell.readers > 0 && *usage != Usage::Reads) {
                return Err(Failure::Race { stage: stages[stage].name, item, pool: stages[*pool].name });
            }
            if *usage != Usage::Writes {
                read = mix(read, cell.content);
            }
            match usage {
                Usage::Reads => cell.readers += 1,
                Usage::Writes | Usage::Updates => cell.has_writer = true,
            }
        }
        Ok(Begun { stage, item, read })
    }

    /// Gives what the stage made.
    fn end(&mut self, begun: Begun) -> u64 {
        for (pool, usage) in &self.plan.stages()[begun.stage].uses {
            let buffers = &mut self.cells[pool.index()];
            let buffer = (begun.item % buffers.len() as u64) as usize;
            let cell = &mut buffers[buffer];
            match usage {
                Usage::Reads => cell.readers -= 1,
                Usage::Writes | Usage::Updates => {
                    cell.content = mix(begun.read, pool.index() as u64);
                    cell.has_writer = false;
                }
            }
        }
        begun.read
    }
}

fn mix(a: u64, b: u64) -> u64 {
    Rng::new(a.rotate_left(23) ^ b).roll()
}

/// One run.
pub(super) struct World<'a> {
    plan: &'a Plan,
    scenario: &'a Scenario,
    steps: Steps,
    checks: Checks,
    /// One queue for each stream, and one for stages that are off their stream. The host's stays empty.
    queues: Vec<VecDeque<Op>>,
    /// What each has begun and not ended.
    begun: Vec<Option<Begun>>,
    recorded: FxHashSet<(EdgeId, u64)>,
    cells: Cells<'a>,
    /// The step at hand, which the host could not do yet.
    at_hand: Option<Step>,
    fed: u64,
    is_flushed: bool,
    /// What was really run, for the plain loop to do the same.
    ran: FxHashSet<(StageId, u64)>,
    outputs: FxHashMap<u64, u64>,
    failed: FxHashSet<u64>,
    published: Vec<u64>,
    rng: Rng,
    /// Who goes first: the highest that can.
    urgency: Vec<u64>,
}

impl<'a> World<'a> {
    pub(super) fn new(plan: &'a Plan, scenario: &'a Scenario) -> Self {
        let queues = plan.stages().streams().len() + 1;
        let mut rng = Rng::new(scenario.seed);
        Self {
            plan,
            scenario,
            steps: Steps::new(Order::new(plan.clone()), scenario.sabotage),
            checks: Checks::new(plan.clone()),
            queues: vec![VecDeque::new(); queues],
            begun: vec![None; queues],
            recorded: FxHashSet::default(),
            cells: Cells::new(plan),
            at_hand: None,
            fed: 0,
            is_flushed: false,
            ran: FxHashSet::default(),
            outputs: FxHashMap::default(),
            failed: FxHashSet::default(),
            published: vec![0; scenario.items as usize],
            urgency: (0..queues).map(|_| rng.roll()).collect(),
            rng,
        }
    }

    pub(super) fn run(mut self) -> Result<(), Failure> {
        loop {
            self.fetch_step();
            let can_go = (0..self.queues.len()).filter(|queue| self.can_go(*queue));
            match can_go.max_by_key(|queue| self.urgency[*queue]) {
                Some(host) if host == StreamId::HOST.index() => self.advance_host()?,
                Some(queue) => self.advance(queue)?,
                None if self.is_over() => return self.judge(),
                None => return Err(Failure::Deadlock),
            }
            if self.rng.chance(CHANGE_OF_MIND) {
                let queue = self.rng.below(self.urgency.len());
                self.urgency[queue] = self.rng.roll();
            }
        }
    }

    /// Feeds and flushes as an owner does, so that the host has a step at hand if there is one.
    fn fetch_step(&mut self) {
        while self.at_hand.is_none() {
            self.at_hand = self.steps.next(self.is_flushed);
            match (self.at_hand, self.is_flushed) {
                (None, false) if self.fed < self.scenario.items => self.fed = self.steps.order.feed() + 1,
                (None, false) => {
                    self.steps.order.flush();
                    self.is_flushed = true;
                }
                _ => return,
            }
        }
    }

    fn is_over(&self) -> bool {
        self.at_hand.is_none() && self.is_flushed && self.queues.iter().all(VecDeque::is_empty)
    }

    fn can_go(&self, queue: usize) -> bool {
        if self.begun[queue].is_some() {
            return true;
        }
        if queue == StreamId::HOST.index() {
            return match self.at_hand {
                Some(Step::Wait { edge, record, item, .. })
                    if self.route(self.plan.stages()[edge].to, item) == queue =>
                {
                    self.recorded.contains(&(edge, record))
                }
                step => step.is_some(),
            };
        }
        match self.queues[queue].front() {
            Some(Op::Wait(edge, record)) => self.recorded.contains(&(*edge, *record)),
            op => op.is_some(),
        }
    }

    /// The queue on which a stage of an item really lies.
    fn route(&self, stage: StageId, item: u64) -> usize {
        let stages = self.plan.stages();
        match (self.scenario.sabotage, stages.gate()) {
            (Some(sabotage), _) if sabotage.is_stray(self.plan, stage, item) => self.queues.len() - 1,
            (Some(Sabotage::DrainBehindGate(copy)), Some(gate)) if copy == stage => stages[gate.to].stream.index(),
            _ => stages[stage].stream.index(),
        }
    }

    /// One small step of a stream.
    fn advance(&mut self, queue: usize) -> Result<(), Failure> {
        if let Some(begun) = self.begun[queue].take() {
            self.end(begun);
            self.queues[queue].pop_front();
            return Ok(());
        }
        match self.queues[queue].front().copied() {
            Some(Op::Work(stage, item)) => self.begun[queue] = Some(self.cells.begin(stage, item)?),
            Some(Op::Record(edge, item)) => {
                self.recorded.insert((edge, item));
                self.queues[queue].pop_front();
            }
            Some(Op::Wait(..)) => {
                self.queues[queue].pop_front();
            }
            None => {}
        }
        Ok(())
    }

    fn end(&mut self, begun: Begun) {
        let made = self.cells.end(begun);
        if self.plan.stages().stage_ids().next_back() == Some(begun.stage) {
            self.outputs.insert(begun.item, made);
        }
    }

    /// One small step of the host.
    fn advance_host(&mut self) -> Result<(), Failure> {
        let host = StreamId::HOST.index();
        if let Some(begun) = self.begun[host].take() {
            self.end(begun);
            return Ok(());
        }
        let Some(step) = self.at_hand.take() else { return Ok(()) };
        if self.scenario.has_checks {
            self.checks.step(&step).map_err(Failure::Broken)?;
        }
        let stages = self.plan.stages();
        match step {
            Step::Wait { edge, record, item, .. } => {
                let queue = self.route(stages[edge].to, item);
                if queue != host {
                    self.queues[queue].push_back(Op::Wait(edge, record));
                }
            }
            Step::Record { edge, item, .. } => {
                let queue = self.route(stages[edge].from, item);
                if queue == host {
                    self.recorded.insert((edge, item));
                } else {
                    self.queues[queue].push_back(Op::Record(edge, item));
                }
            }
            Step::Run { stage, item, .. } => self.start(stage, item)?,
            Step::Publish { item, is_done } => self.publish(item, is_done)?,
            Step::Acquire(_) | Step::Release(_) | Step::Kick { .. } | Step::Drain { .. } | Step::Complete => {}
        }
        Ok(())
    }

    /// Hands a stage to its stream, begins it if it is the host's, or fails.
    fn start(&mut self, stage: StageId, item: u64) -> Result<(), Failure> {
        let lot = mix(mix(self.scenario.seed, item), stage.index() as u64);
        if Rng::new(lot).chance(self.scenario.fault_chance) {
            self.steps.order.failed(item);
            self.checks.failed(item);
            self.failed.insert(item);
            return Ok(());
        }
        self.ran.insert((stage, item));
        let queue = self.route(stage, item);
        if queue == StreamId::HOST.index() {
            self.begun[queue] = Some(self.cells.begin(stage, item)?);
        } else {
            self.queues[queue].push_back(Op::Work(stage, item));
        }
        Ok(())
    }

    fn publish(&mut self, item: u64, is_done: bool) -> Result<(), Failure> {
        self.published[item as usize] += 1;
        let is_right = is_done != self.failed.contains(&item);
        is_right.then_some(()).ok_or(Failure::WrongOutcome(item))
    }

    /// Whether all items left once, with what a plain loop gives.
    fn judge(self) -> Result<(), Failure> {
        if let Some((item, times)) = (0..).zip(&self.published).find(|(_, times)| **times != 1) {
            return Err(Failure::Published(item, *times));
        }
        let mut plain = Cells::new(self.plan);
        for item in 0..self.scenario.items {
            let mut made = None;
            for stage in self.plan.stages().stage_ids().filter(|stage| self.ran.contains(&(*stage, item))) {
                let begun = plain.begin(stage, item)?;
                made = Some(plain.end(begun));
            }
            if !self.failed.contains(&item) && self.outputs.get(&item) != made.as_ref() {
                return Err(Failure::WrongBytes(item));
            }
        }
        let report = self.checks.report();
        let is_tidy = !self.scenario.has_checks || report.is_clean();
        is_tidy.then_some(()).ok_or_else(|| Failure::Untidy(report.to_string()))
    }
}
