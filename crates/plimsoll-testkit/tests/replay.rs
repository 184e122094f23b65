//! Schedule quality through the real core: makespan ÷ lower bound over the benchmark's graphs and boxes.

use plimsoll_testkit::graph::{Graph, Platform};
use plimsoll_testkit::sim::replay::replay;

const GRAPHS: [(&str, &str); 4] = [
    ("cholesky10", include_str!("../graphs/cholesky10.tsv")),
    ("indep_mix", include_str!("../graphs/indep_mix.tsv")),
    ("layered", include_str!("../graphs/layered.tsv")),
    ("pipeline5", include_str!("../graphs/pipeline5.tsv")),
];

fn geometric_mean(lookahead: u32) -> f64 {
    let mut logs = Vec::new();
    for (name, text) in GRAPHS {
        let graph = Graph::parse(text).unwrap();
        for platform in Platform::BENCHMARK {
            let replay = replay(&graph, platform, lookahead).unwrap();
            println!("{name} {platform:?}: {:.3}", replay.ratio());
            assert!(replay.makespan >= replay.lower_bound, "{name}: faster than any schedule can be");
            logs.push(replay.ratio().ln());
        }
    }
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

/// StarPU's recommended scheduler reaches 1.160 on these cells.
#[test]
fn planned_sets_come_close_to_the_bound() {
    let mean = geometric_mean(plimsoll_core::lookahead::SIMULATIONS_DEFAULT);
    assert!(mean <= 1.065, "geometric mean {mean:.4}");
}

/// Without a plan each task is chosen for as it becomes ready.
#[test]
fn unplanned_tasks_still_go_where_they_finish_first() {
    let mean = geometric_mean(0);
    assert!(mean <= 1.19, "geometric mean {mean:.4}");
}
