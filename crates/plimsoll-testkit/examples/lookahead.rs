//! Prints makespan ÷ lower bound of every graph on every platform, for the budgets given as arguments.
//!
//! `cargo run --release -p plimsoll-testkit --example lookahead -- 1 64 256 1000 10000`

use std::time::{Duration, Instant};

use plimsoll_core::lookahead::{Budget, SIMULATIONS_DEFAULT, plan};
use plimsoll_testkit::graph::{Graph, Platform};

fn main() {
    let mut budgets: Vec<u32> = std::env::args().skip(1).filter_map(|budget| budget.parse().ok()).collect();
    if budgets.is_empty() {
        budgets = vec![1, 64, SIMULATIONS_DEFAULT, 1000, 10_000];
    }
    for simulations in budgets {
        print_table(Budget { simulations, ..Budget::default() });
    }
}

fn print_table(budget: Budget) {
    println!("{} simulations", budget.simulations);
    let mut logs = 0.0;
    let mut times = Vec::new();
    for (name, graph) in Graph::benchmark() {
        print!("  {name:<11}");
        for platform in Platform::BENCHMARK {
            let (ratio, time) = measure(&graph, platform, budget);
            logs += f64::ln(ratio);
            times.push(time);
            print!("  {platform} {ratio:.3} {:5.2} ms", time.as_secs_f64() * 1e3);
        }
        println!();
    }
    let cells = times.len() as f64;
    let mean = times.iter().sum::<Duration>().as_secs_f64() * 1e3 / cells;
    println!("  geometric mean {:.4}, plan time {mean:.2} ms on average", (logs / cells).exp());
}

/// Makespan ÷ lower bound, and the shortest plan time of five.
fn measure(graph: &Graph, platform: Platform, budget: Budget) -> (f64, Duration) {
    let (tasks, devices) = graph.known(platform);
    let once = || {
        let start = Instant::now();
        let plan = plan(&tasks, &devices, budget).expect("a set that can be planned");
        (plan.makespan.as_secs_f64() / plan.lower_bound.as_secs_f64(), start.elapsed())
    };
    let (ratio, first) = once();
    (ratio, (0..4).map(|_| once().1).fold(first, Duration::min))
}
