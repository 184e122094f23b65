//! Holds what the lookahead reaches on the four graphs × four platforms that StarPU's schedulers were measured on.

use plimsoll_core::lookahead::{Budget, lower_bound, plan};
use plimsoll_testkit::graph::Graph;

/// Makespan ÷ lower bound, as the geometric mean over all cells.
fn geometric_mean(budget: Budget) -> f64 {
    let ratios: Vec<f64> = Graph::cells()
        .map(|(_, graph, platform)| {
            let (tasks, devices) = graph.known(platform);
            let plan = plan(&tasks, &devices, budget).expect("a set that can be planned");
            plan.makespan.as_secs_f64() / plan.lower_bound.as_secs_f64()
        })
        .collect();
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

#[test]
fn the_lower_bound_is_the_one_starpu_was_measured_against() {
    for (name, graph, platform) in Graph::cells() {
        let (tasks, devices) = graph.known(platform);
        let cell = format!("{name}\t{platform}\tLB=");
        let line = include_str!("../peers/starpu.tsv").lines().find_map(|line| line.strip_prefix(&cell));
        let theirs: f64 = line.and_then(|rest| rest.split('\t').next()?.parse().ok()).expect("a figure for each cell");
        let ours = lower_bound(&tasks, &devices).as_secs_f64() * 1e6;
        // Theirs is in whole microseconds.
        assert!((ours - theirs).abs() <= 0.6, "{name} {platform}: {ours} instead of {theirs}");
    }
}

#[test]
fn one_simulation_beats_starpus_best() {
    let mean = geometric_mean(Budget { simulations: 1, seed: 0 });
    assert!(mean <= 1.130, "{mean:.4}; StarPU's dmdas is at 1.160");
}

// The figures below hold for any of 100 seeds (20 at a thousand simulations), not only for one that came out well:
// medians are 1.067 at 64, 1.056 at the default, 1.053 at 1000.

#[test]
fn the_default_budget_holds_its_figure() {
    for seed in 0..4 {
        let mean = geometric_mean(Budget { seed, ..Budget::default() });
        assert!(mean <= 1.065, "seed {seed}: {mean:.4}");
    }
}

#[test]
fn sixty_four_and_a_thousand_simulations_hold_theirs() {
    let few = geometric_mean(Budget { simulations: 64, seed: 0 });
    let many = geometric_mean(Budget { simulations: 1000, seed: 0 });
    assert!(few <= 1.074 && many <= 1.056, "64: {few:.4}, 1000: {many:.4}");
}
