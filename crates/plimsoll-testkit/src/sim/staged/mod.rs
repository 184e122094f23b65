//! Staged work on streams that really run beside each other: any order of their steps that the waits allow may happen, and
//! a seed says which. A missing wait shows as two stages in one buffer or as wrong bytes, a missing record as a deadlock.
//! Never asks the proof in `plimsoll_core::staged`: it finds out by running.
//!
//! | file | what it is |
//! |---|---|
//! | `world.rs` | streams, buffers and the host, one small step at a time |
//! | `sabotage.rs` | what can be switched off, made from the declarations: whoever declares an edge has declared its mutation |
//! | `samples.rs` | three declarations that have every kind of edge between them |
//!
//! Invariant: a run is a function of plan and scenario.

mod sabotage;
pub mod samples;
#[cfg(test)]
mod tests;
mod world;

use std::sync::Arc;

use plimsoll_core::staged::{Facts, Plan, Stages, Violation};

pub use sabotage::{BrokenRule, Sabotage};

/// Items of a run: every slot and buffer is used several times at any depth that is tried.
const ITEMS: u64 = 8;
/// Seeds after which a mutation counts as not noticed. The one of the samples that shows the least shows in every second.
const SEEDS_TO_NOTICE: u64 = 64;

/// One run.
#[derive(Copy, Clone, Debug)]
pub struct Scenario {
    /// Says how the streams interleave, and which stages fail.
    pub seed: u64,
    /// How many items are fed.
    pub items: u64,
    /// How likely each stage of each item is to fail.
    pub fault_chance: f64,
    /// Whether `plimsoll_core::staged::Checks` looks at every step. Without it only what really goes wrong is noticed.
    pub has_checks: bool,
    /// What is switched off.
    pub sabotage: Option<Sabotage>,
}

impl Scenario {
    /// Eight items, nothing switched off, everything looked at.
    pub fn new(seed: u64, fault_chance: f64) -> Self {
        Self { seed, items: ITEMS, fault_chance, has_checks: true, sabotage: None }
    }
}

/// What went wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Two stages were in one buffer at once, one of them writing.
    #[error("stage '{stage}' of item {item} met another in a buffer of pool '{pool}'")]
    Race {
        /// The later of the two.
        stage: &'static str,
        /// Its item.
        item: u64,
        /// Whose buffer it is.
        pool: &'static str,
    },
    /// An item's output is not what a plain loop gives.
    #[error("item {0} has wrong bytes")]
    WrongBytes(u64),
    /// Nobody could go on.
    #[error("a deadlock: everybody waits")]
    Deadlock,
    /// An item was not published once.
    #[error("item {0} was published {1} times")]
    Published(u64, u64),
    /// A failed item was published as done, or a done one as failed.
    #[error("item {0} was published with the wrong outcome")]
    WrongOutcome(u64),
    /// A step broke a rule.
    #[error("{0}")]
    Broken(Violation),
    /// The report at the end was not clean.
    #[error("at the end: {0}")]
    Untidy(String),
}

/// Runs a plan once.
///
/// # Errors
/// What went wrong first.
pub fn run(plan: &Plan, scenario: &Scenario) -> Result<(), Failure> {
    world::World::new(plan, scenario).run()
}

/// Every way in which stages may run: each depth, alone and beside others, with gates and without.
pub fn ways(stages: &Arc<Stages>) -> Vec<Plan> {
    let facts = |depth, sharers, has_gates| Facts { depth, sharers, has_gates };
    let deep = (1..=stages.depth_max()).map(|depth| facts(depth, 1, true));
    let without_gates = stages.gate().map(|_| facts(stages.depth_max(), 1, false));
    let all = deep.chain([facts(1, 3, true)]).chain(without_gates);
    all.map(|facts| Plan::select(stages, facts)).collect()
}

/// Runs stages in every way with many seeds, every other one with faults. Gives the first failure, with its seed.
pub fn first_failure(stages: &Arc<Stages>, seeds: u64) -> Option<String> {
    ways(stages).iter().find_map(|plan| {
        (0..seeds).find_map(|seed| {
            let scenario = Scenario::new(seed, if seed % 2 == 0 { 0.0 } else { 0.1 });
            run(plan, &scenario).err().map(|failure| format!("{plan}; seed {seed}: {failure}"))
        })
    })
}

/// Switches off each acquire, release, edge, gate and rule of these stages in turn, in every way they may run. Names those
/// that were not noticed: there should be none. `round` picks the seeds.
pub fn survivors(stages: &Arc<Stages>, round: u64) -> Vec<String> {
    let mut survivors = Vec::new();
    for plan in &ways(stages) {
        for sabotage in Sabotage::all(plan) {
            // What only looks wrong in the books is noticed by who looks at them; the rest has to go wrong by itself.
            let has_checks = !sabotage.is_of_order();
            let is_noticed = (0..SEEDS_TO_NOTICE).any(|seed| {
                let seed = round * SEEDS_TO_NOTICE + seed;
                let sabotage = Some(sabotage);
                run(plan, &Scenario { has_checks, sabotage, ..Scenario::new(seed, sabotage_faults(sabotage)) }).is_err()
            });
            if !is_noticed {
                survivors.push(format!("{}: {plan}", sabotage.name(stages)));
            }
        }
    }
    survivors
}

/// A false claim can only be made of an item that failed.
fn sabotage_faults(sabotage: Option<Sabotage>) -> f64 {
    if sabotage == Some(Sabotage::Rule(BrokenRule::ClaimsSuccess)) { 0.1 } else { 0.0 }
}
