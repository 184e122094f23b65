//! No seed fails as declared; every seed block fails with anything switched off.

use plimsoll_core::staged::EdgeKind;

use super::*;

#[test]
fn every_seed_is_clean_with_and_without_faults() {
    for stages in samples::all() {
        assert_eq!(first_failure(&stages, 2_000), None);
    }
}

#[test]
fn every_mutation_is_noticed_every_time() {
    for stages in samples::all() {
        for round in 0..3 {
            assert_eq!(survivors(&stages, round), [""; 0], "round {round}");
        }
    }
}

#[test]
fn every_part_has_its_mutation() {
    for stages in samples::all() {
        let all: Vec<Sabotage> = ways(&stages).iter().flat_map(Sabotage::all).collect();
        for edge in stages.edge_ids() {
            assert!(all.contains(&Sabotage::NotOrdered(edge)), "{}", stages[edge].name);
            let is_recorded = matches!(stages[edge].kind, EdgeKind::Event | EdgeKind::Generation);
            assert_eq!(is_recorded, all.contains(&Sabotage::NotRecorded(edge)), "{}", stages[edge].name);
        }
        for stage in stages.stage_ids() {
            for (pool, _) in &stages[stage].uses {
                assert!(all.contains(&Sabotage::NotAcquired(stage, *pool)));
                assert!(all.contains(&Sabotage::NotReleased(stage, *pool)));
            }
        }
    }
}

#[test]
fn a_drain_behind_the_next_kicks_gate_is_a_deadlock_in_every_seed() {
    let stages = samples::gated();
    let plan = ways(&stages).into_iter().max_by_key(Plan::depth).expect("there are ways");
    let copy = stages.stage_ids().find(|stage| stages[*stage].name == "copy").expect("it is declared");
    for seed in 0..200 {
        let scenario = Scenario { has_checks: false, ..Scenario::new(seed, 0.0) };
        assert_eq!(run(&plan, &scenario), Ok(()));
        let behind = Scenario { sabotage: Some(Sabotage::DrainBehindGate(copy)), ..scenario };
        assert_eq!(run(&plan, &behind), Err(Failure::Deadlock), "seed {seed}");
    }
}

#[test]
fn a_fault_at_every_stage_of_every_item_costs_that_item_alone() {
    for stages in samples::all() {
        for plan in ways(&stages) {
            for seed in 0..300 {
                let failure = run(&plan, &Scenario::new(seed, 0.4));
                assert_eq!(failure, Ok(()), "{plan}; seed {seed}");
            }
            assert_eq!(run(&plan, &Scenario::new(0, 1.0)), Ok(()), "{plan}: all fail");
        }
    }
}
