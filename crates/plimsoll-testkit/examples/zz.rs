//! x
use plimsoll_testkit::graph::{Graph, Platform};
use plimsoll_testkit::sim::replay::{Costs, Terms, replay};
fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(4);
    let fuzz: u64 = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(0);
    let look: u32 = std::env::args().nth(3).and_then(|s| s.parse().ok()).unwrap_or(256);
    for (label, costs, noise, n) in [("plain", Costs::Known, 0.0, 1), ("known", Costs::Known, 0.3, seeds), ("unknown", Costs::Unknown, 0.3, seeds)] {
        let mut all = 0.0; let mut t = 0.0; let mut worst: f64 = 0.0;
        if seeds == 0 { continue; }
        for (name, graph) in Graph::benchmark() {
            let mut row = String::new();
            for platform in Platform::BENCHMARK {
                let mut l = 0.0;
                for seed in 0..n {
                    let r = replay(&graph, platform, Terms { costs, noise, seed, lookahead: look }).unwrap();
                    l += r.ratio().ln() / n as f64;
                    t += r.deciding.as_secs_f64() / r.tasks as f64;
                    worst = worst.max(r.ratio());
                }
                row += &format!(" {:.3}", l.exp());
                all += l / 16.0;
            }
            println!("{label:8} {name:11} {row}");
        }
        println!("{label:8} MEAN {:.4} worst {worst:.3}  {:.1} us/task", f64::exp(all), t * 1e6 / 16.0 / n as f64);
    }
    for seed in 0..fuzz {
        if let Err(f) = plimsoll_testkit::sim::fuzz::play(seed, None) { println!("seed {seed}: {}", f.broken); }
    }
    println!("fuzz {fuzz} done");
}
