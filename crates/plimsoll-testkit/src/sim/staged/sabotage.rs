//! What can be switched off in a run, made by going through the declarations, and how the steps look without it.
//! Never touches the order itself: it sits between the order and whoever carries the steps out.
//! Invariant: every acquire, release, edge and gate of a plan has a mutation (`tests::every_part_has_its_mutation`).

use std::collections::VecDeque;

use plimsoll_core::staged::{EdgeId, EdgeKind, Mode, Order, Plan, PoolId, StageId, Stages, Step, StreamId, Use};

/// One thing that is left out or done wrong.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A stage uses a buffer without having acquired it: no wait, no hold.
    NotAcquired(StageId, PoolId),
    /// A stage does not release a buffer: no record, and it keeps it.
    NotReleased(StageId, PoolId),
    /// An edge does not hold. Its waits are left out; or a stage is off its stream; or the gate of the host is open, so that
    /// a slot is filled before it was drained.
    NotOrdered(EdgeId),
    /// An edge is not recorded.
    NotRecorded(EdgeId),
    /// The copy of a drain goes through the stream that holds the next kick's wait for the host.
    DrainBehindGate(StageId),
    /// A rule of the order is broken.
    Rule(BrokenRule),
}

/// How the order of whole items can be wrong.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BrokenRule {
    /// Of two items the newer is drained first.
    NewestFirst,
    /// Each item is drained twice.
    DrainsTwice,
    /// One item is not drained.
    DrainsNever,
    /// Each item is published twice.
    PublishesTwice,
    /// One item is not published.
    PublishesNever,
    /// A failed item is published as done.
    ClaimsSuccess,
}

impl BrokenRule {
    const ALL: [Self; 6] = [
        Self::NewestFirst,
        Self::DrainsTwice,
        Self::DrainsNever,
        Self::PublishesTwice,
        Self::PublishesNever,
        Self::ClaimsSuccess,
    ];
}

impl Sabotage {
    /// All that makes a difference to this plan.
    pub fn all(plan: &Plan) -> Vec<Self> {
        let stages = plan.stages();
        let mut all = Vec::new();
        for stage in stages.stage_ids() {
            for (pool, _) in &stages[stage].uses {
                all.extend([Self::NotAcquired(stage, *pool), Self::NotReleased(stage, *pool)]);
            }
            let is_copy = stages[stage].is_drain && stages[stage].stream != StreamId::HOST;
            let has_gate = plan.mode() == Mode::Pipelined && stages.gate().is_some();
            all.extend((is_copy && has_gate).then_some(Self::DrainBehindGate(stage)));
        }
        for edge in stages.edge_ids() {
            all.extend(is_kept(plan, edge).then_some(Self::NotOrdered(edge)));
            all.extend(plan.records(edge).then_some(Self::NotRecorded(edge)));
        }
        // One slot has no newer item.
        let rules = BrokenRule::ALL.into_iter().filter(|rule| *rule != BrokenRule::NewestFirst || plan.depth() > 1);
        all.extend(rules.map(Self::Rule));
        all
    }

    /// Whether it goes wrong by itself, without anybody who looks at the steps.
    pub fn is_of_order(self) -> bool {
        matches!(self, Self::NotOrdered(_) | Self::NotRecorded(_) | Self::DrainBehindGate(_))
    }

    /// What is switched off, in words.
    pub fn name(self, stages: &Stages) -> String {
        match self {
            Self::NotAcquired(stage, pool) => {
                format!("'{}' does not acquire '{}'", stages[stage].name, stages[pool].name)
            }
            Self::NotReleased(stage, pool) => {
                format!("'{}' does not release '{}'", stages[stage].name, stages[pool].name)
            }
            Self::NotOrdered(edge) => format!("edge '{}' does not hold", stages[edge].name),
            Self::NotRecorded(edge) => format!("edge '{}' is not recorded", stages[edge].name),
            Self::DrainBehindGate(stage) => format!("'{}' lies behind the next kick's gate", stages[stage].name),
            Self::Rule(rule) => format!("{rule:?}"),
        }
    }

    /// Whether this stage of this item is off its stream: one of two, so that it also overtakes itself.
    pub(super) fn is_stray(self, plan: &Plan, stage: StageId, item: u64) -> bool {
        let Self::NotOrdered(edge) = self else { return false };
        let declared = &plan.stages()[edge];
        let strays = match declared.kind {
            EdgeKind::StreamOrder => declared.to,
            EdgeKind::HostRule if !drains_late(plan.stages(), edge) => declared.from,
            _ => return false,
        };
        strays == stage && item % 2 == 1
    }

    fn is_of_use(self, stages: &Stages, edge: EdgeId, stage: StageId) -> bool {
        let (Self::NotAcquired(of, pool) | Self::NotReleased(of, pool)) = self else { return false };
        of == stage && stages[edge].guards == pool
    }

    /// Whether a step is left out.
    fn omits(self, stages: &Stages, step: &Step) -> bool {
        let is_first = |item: u64| item == 0;
        match *step {
            Step::Wait { edge, .. } => match self {
                Self::NotAcquired(..) => self.is_of_use(stages, edge, stages[edge].to),
                Self::NotOrdered(off) => off == edge || stages[off].kind == EdgeKind::AliasOf(edge),
                _ => false,
            },
            Step::Record { edge, .. } => match self {
                Self::NotReleased(..) => self.is_of_use(stages, edge, stages[edge].from),
                _ => self == Self::NotRecorded(edge),
            },
            Step::Acquire(Use { stage, pool, .. }) => self == Self::NotAcquired(stage, pool),
            Step::Release(Use { stage, pool, .. }) => self == Self::NotReleased(stage, pool),
            Step::Drain { item } => self == Self::Rule(BrokenRule::DrainsNever) && is_first(item),
            Step::Publish { item, .. } => self == Self::Rule(BrokenRule::PublishesNever) && is_first(item),
            _ => false,
        }
    }

    fn drains_late(self, stages: &Stages) -> bool {
        matches!(self, Self::NotOrdered(edge) if drains_late(stages, edge))
    }

    fn doubles(self, step: &Step) -> bool {
        match step {
            Step::Drain { .. } => self == Self::Rule(BrokenRule::DrainsTwice),
            Step::Publish { .. } => self == Self::Rule(BrokenRule::PublishesTwice),
            _ => false,
        }
    }
}

/// Whether an edge is kept by draining a slot before it is filled again. The other rules of the host are kept by doing what
/// it does at once.
fn drains_late(stages: &Stages, edge: EdgeId) -> bool {
    let declared = &stages[edge];
    declared.kind == EdgeKind::HostRule && declared.is_to_later_item() && !stages[declared.to].is_drain
}

/// Whether anything depends on an edge at this depth. What is further apart than the items under way is in order anyway, and
/// so is what comes behind a gate: it waits for the drain of the item before.
fn is_kept(plan: &Plan, edge: EdgeId) -> bool {
    let (lag, depth) = (plan.lag(edge), plan.depth() as u64);
    match plan.stages()[edge].kind {
        EdgeKind::Event | EdgeKind::Generation => plan.records(edge),
        EdgeKind::AliasOf(of) => plan.records(of),
        EdgeKind::StreamOrder => lag < depth,
        EdgeKind::HostRule => lag == 0 || (lag == depth && !is_behind_gate(plan, edge)),
    }
}

fn is_behind_gate(plan: &Plan, edge: EdgeId) -> bool {
    let stages = plan.stages();
    plan.mode() == Mode::Pipelined && stages.gate().is_some_and(|gate| stages[edge].to >= gate.to)
}

/// The steps of an order, as they are with something switched off.
pub(super) struct Steps {
    pub(super) order: Order,
    sabotage: Option<Sabotage>,
    ready: VecDeque<Step>,
    /// Drains that come too late.
    late: VecDeque<Step>,
}

impl Steps {
    pub(super) fn new(order: Order, sabotage: Option<Sabotage>) -> Self {
        Self { order, sabotage, ready: VecDeque::new(), late: VecDeque::new() }
    }

    /// The next step. With `is_last` whatever was put off comes now.
    pub(super) fn next(&mut self, is_last: bool) -> Option<Step> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Some(step);
            }
            match self.order.step() {
                Some(step) => self.take(step),
                None if is_last && !self.late.is_empty() => self.ready.append(&mut self.late),
                None => return None,
            }
        }
    }

    /// Puts a step where the sabotage wants it.
    fn take(&mut self, step: Step) {
        let Some(sabotage) = self.sabotage else { return self.ready.push_back(step) };
        match step {
            Step::Drain { .. } if sabotage.drains_late(self.order.plan().stages()) => {
                let drain = self.whole_drain(step);
                self.late.extend(drain);
            }
            Step::Kick { .. } => {
                self.ready.push_back(step);
                self.ready.append(&mut self.late);
            }
            Step::Drain { .. } if sabotage == Sabotage::Rule(BrokenRule::NewestFirst) => {
                let first = self.whole_drain(step);
                if let Some(next) = self.order.step() {
                    let next = if matches!(next, Step::Drain { .. }) { self.whole_drain(next) } else { [next].into() };
                    self.ready.extend(next);
                }
                self.ready.extend(first);
            }
            Step::Publish { item, .. } if sabotage == Sabotage::Rule(BrokenRule::ClaimsSuccess) => {
                self.ready.push_back(Step::Publish { item, is_done: true });
            }
            step => {
                let stages = self.order.plan().stages();
                if !sabotage.omits(stages, &step) {
                    self.ready.extend(std::iter::repeat_n(step, 1 + usize::from(sabotage.doubles(&step))));
                }
            }
        }
    }

    fn whole_drain(&mut self, begin: Step) -> VecDeque<Step> {
        let mut drain = VecDeque::from([begin]);
        while let Some(step) = self.order.step() {
            drain.push_back(step);
            if matches!(step, Step::Publish { .. }) {
                break;
            }
        }
        drain
    }
}
