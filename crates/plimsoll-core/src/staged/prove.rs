//! Proves a declaration before anything runs: at every depth, whatever the streams' speeds, every two uses of a buffer that
//! must not meet are in order; no wait is needless; nobody waits for himself.
//! Never looks at kinds of edges: it reads the very steps that `order.rs` gives, so what is proved is what is done.
//! Invariant: a wait that can be left out without a hazard is refused, so the simulator has a mutation to catch for each.

use std::sync::Arc;

use super::declare::{EdgeKind, Stage, Stages, Usage};
use super::error::StagesError;
use super::ids::{EdgeId, PoolId, StageId, StreamId};
use super::order::{Order, Step, Use};
use super::select::{Facts, Plan};

/// Two uses of one buffer that nothing keeps apart.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Hazard {
    pool: PoolId,
    before: StageId,
    after: StageId,
    items: u64,
}

/// Refuses stages that could meet, and waits that nobody needs.
pub(super) fn at_every_depth(stages: &Arc<Stages>) -> Result<(), StagesError> {
    let plans: Vec<Plan> = ways(stages).collect();
    for plan in &plans {
        let order = HappensBefore::of(plan, None);
        order.check_cycles(plan)?;
        if let Some(hazard) = order.hazards(stages).first() {
            return Err(hazard.error(plan));
        }
    }
    // What goes wrong without an edge, over all depths.
    let without = |edge: EdgeId| -> Vec<Hazard> {
        plans.iter().flat_map(|plan| HappensBefore::of(plan, Some(edge)).hazards(stages)).collect()
    };
    for id in stages.edge_ids() {
        let edge = &stages[id];
        match edge.kind {
            EdgeKind::Event | EdgeKind::Generation if without(id).is_empty() => {
                return Err(StagesError::NotNeeded(edge.name));
            }
            EdgeKind::AliasOf(of) => {
                let is_its =
                    |hazard: &Hazard| (hazard.pool, hazard.before, hazard.after) == (edge.guards, edge.from, edge.to);
                if !without(of).iter().any(is_its) {
                    return Err(StagesError::NoAlias { edge: edge.name, of: stages[of].name });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Every way in which the stages may run.
fn ways(stages: &Arc<Stages>) -> impl Iterator<Item = Plan> {
    let deep = (1..=stages.depth_max()).map(|depth| Facts { depth, sharers: 1, has_gates: true });
    let shared = Facts { depth: 1, sharers: 2, has_gates: true };
    deep.chain([shared]).map(|facts| Plan::select(stages, facts))
}

impl Hazard {
    fn error(&self, plan: &Plan) -> StagesError {
        let stages = plan.stages();
        StagesError::NotOrdered {
            pool: stages[self.pool].name,
            before: stages[self.before].name,
            after: stages[self.after].name,
            items: self.items,
            depth: plan.depth(),
        }
    }
}

/// A stage of an item: a node of the graph.
#[derive(Copy, Clone, Debug)]
struct Node {
    stage: StageId,
    item: u64,
}

/// What happens before what in a run long enough for every edge to be waited for, drawn from its steps.
struct HappensBefore {
    nodes: Vec<Node>,
    /// For each node, those right before it.
    before: Vec<Vec<usize>>,
    /// Every use of a buffer, and by which node.
    uses: Vec<(usize, Use)>,
}

impl HappensBefore {
    /// Leaves out the waits for one edge, if it is told to.
    fn of(plan: &Plan, without: Option<EdgeId>) -> Self {
        let steps = steps(plan);
        let nodes: Vec<Node> = steps
            .iter()
            .filter_map(|step| match *step {
                Step::Run { stage, item, .. } => Some(Node { stage, item }),
                _ => None,
            })
            .collect();
        let node = |stage: StageId, item: u64| {
            nodes
                .iter()
                .position(|node| (node.stage, node.item) == (stage, item))
                .expect("each stage of each item runs")
        };
        let mut before = vec![Vec::new(); nodes.len()];
        let mut last = vec![None; plan.stages().streams().len()];
        let mut uses = Vec::new();
        for step in &steps {
            match *step {
                Step::Wait { edge, record, item, .. } if without != Some(edge) => {
                    let edge = &plan.stages()[edge];
                    before[node(edge.to, item)].push(node(edge.from, record));
                }
                Step::Run { stage, item, stream } => {
                    let this = node(stage, item);
                    // What the host did is done before it queues anything else.
                    let host: Option<usize> = last[StreamId::HOST.index()];
                    before[this].extend(host.into_iter().chain(last[stream.index()]));
                    last[stream.index()] = Some(this);
                }
                Step::Acquire(of) => uses.push((node(of.stage, of.item), of)),
                _ => {}
            }
        }
        Self { nodes, before, uses }
    }

    /// Every node that happens before this one.
    fn all_before(&self, node: usize) -> Vec<bool> {
        let mut found = vec![false; self.nodes.len()];
        let mut open = self.before[node].clone();
        while let Some(next) = open.pop() {
            if !std::mem::replace(&mut found[next], true) {
                open.extend(&self.before[next]);
            }
        }
        found
    }

    /// A cycle is a deadlock: somebody waits for what comes after him on his own stream.
    fn check_cycles(&self, plan: &Plan) -> Result<(), StagesError> {
        let stages = plan.stages();
        let on_cycle: Vec<usize> = (0..self.nodes.len()).filter(|at| self.all_before(*at)[*at]).collect();
        let Some(first) = on_cycle.first() else { return Ok(()) };
        let stage = |at: &usize| &stages[self.nodes[*at].stage];
        let is_kicked_on =
            |stream| on_cycle.iter().map(stage).any(|kicked| !kicked.is_drain && kicked.stream == stream);
        let is_stuck_copy =
            |stage: &&Stage| stage.is_drain && stage.stream != StreamId::HOST && is_kicked_on(stage.stream);
        let copy = on_cycle.iter().map(stage).find(is_stuck_copy);
        Err(match (copy, stages.gate()) {
            (Some(copy), Some(gate)) => StagesError::DrainBehindGate { stage: copy.name, edge: gate.name },
            _ => StagesError::Cycle(stage(first).name),
        })
    }

    /// Every two uses of a buffer, not both to read it, of which nothing says that the earlier happens first.
    fn hazards(&self, stages: &Stages) -> Vec<Hazard> {
        let place = |of: &Use| (of.item, of.stage);
        let mut hazards = Vec::new();
        for (after, second) in &self.uses {
            let known = self.all_before(*after);
            let conflicts = self.uses.iter().filter(|(_, first)| {
                let is_same = (first.pool, first.buffer) == (second.pool, second.buffer);
                is_same && place(first) < place(second) && (writes(stages, first) || writes(stages, second))
            });
            hazards.extend(conflicts.filter(|(before, _)| !known[*before]).map(|(_, first)| Hazard {
                pool: first.pool,
                before: first.stage,
                after: second.stage,
                items: second.item - first.item,
            }));
        }
        hazards
    }
}

fn writes(stages: &Stages, of: &Use) -> bool {
    stages[of.stage].usage(of.pool) != Some(Usage::Reads)
}

/// All steps of a run in which every buffer is used three times and every slot too.
fn steps(plan: &Plan) -> Vec<Step> {
    let stages = plan.stages();
    let longest = stages.pool_ids().map(|pool| plan.count(pool)).max().unwrap_or(1).max(plan.depth());
    let mut order = Order::new(plan.clone());
    for _ in 0..2 * longest + 1 {
        order.feed();
    }
    order.flush();
    std::iter::from_fn(|| order.step()).collect()
}
