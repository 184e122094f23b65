//! Schedule quality through the real core: makespan ÷ lower bound over the benchmark's graphs and boxes.

use plimsoll_core::lookahead::SIMULATIONS_DEFAULT;
use plimsoll_testkit::graph::Graph;
use plimsoll_testkit::sim::replay::{Costs, Terms, replay};

/// The geometric mean over all cells, and the worst of them.
fn ratios(terms: Terms) -> (f64, f64) {
    let mut logs = Vec::new();
    for (name, graph, platform) in Graph::cells() {
        let replay = replay(&graph, platform, terms).unwrap();
        println!("{name} {platform}: {:.3}", replay.ratio());
        assert!(replay.makespan >= replay.lower_bound, "{name}: faster than any schedule can be");
        logs.push(replay.ratio().ln());
    }
    let worst = logs.iter().copied().fold(0.0, f64::max);
    ((logs.iter().sum::<f64>() / logs.len() as f64).exp(), worst.exp())
}

/// StarPU's recommended scheduler reaches 1.160 on these cells.
#[test]
fn planned_sets_come_close_to_the_bound() {
    let (mean, _) = ratios(Terms::default());
    assert!(mean <= 1.056, "geometric mean {mean:.4}");
}

/// Sets are planned again on the way, with few simulations: that must not cost what the many before the first task gained.
#[test]
fn a_thorough_plan_outlives_the_hurried_ones_on_the_way() {
    let (usual, _) = ratios(Terms::default());
    let (thorough, _) = ratios(Terms { lookahead: 16 * SIMULATIONS_DEFAULT, ..Terms::default() });
    assert!(thorough + 0.005 <= usual, "{usual:.4} usually, {thorough:.4} after sixteen times as many simulations");
}

/// Without a plan each task is chosen for as it becomes ready.
#[test]
fn unplanned_tasks_still_go_where_they_finish_first() {
    let (mean, _) = ratios(Terms { lookahead: 0, ..Terms::default() });
    assert!(mean <= 1.19, "geometric mean {mean:.4}");
}

/// Nothing is known of any kind of task at first, and no two tasks of a kind cost the same.
#[test]
fn what_is_learnt_on_the_way_is_enough_for_a_good_schedule() {
    let terms = Terms { costs: Costs::Unknown, noise: 0.3, lookahead: SIMULATIONS_DEFAULT, seed: 0 };
    let (mut logs, mut worst) = (0.0, 0.0_f64);
    for seed in 0..8 {
        let (mean, worst_of_draw) = ratios(Terms { seed, ..terms });
        println!("draw {seed}: mean {mean:.4}, worst {worst_of_draw:.3}");
        logs += mean.ln() / 8.0;
        worst = worst.max(worst_of_draw);
    }
    let mean = logs.exp();
    assert!(mean <= 1.31 && worst <= 2.3, "geometric mean {mean:.4}, worst {worst:.3}");
}

/// The second time, each kind's average is known from the first.
#[test]
fn what_an_earlier_run_learnt_makes_up_for_most_of_it() {
    let (mean, worst) = ratios(Terms { costs: Costs::Learnt, noise: 0.3, ..Terms::default() });
    assert!(mean <= 1.17 && worst <= 1.5, "geometric mean {mean:.4}, worst {worst:.3}");
}
