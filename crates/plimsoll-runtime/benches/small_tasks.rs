//! Many tasks of a given length beside rayon: how much longer the whole takes, and how often a thread is switched.
//!
//! `cargo bench -p plimsoll-runtime --bench small_tasks`
//!
//! Both have two workers and do the same arithmetic; rounds are interleaved, the best of each counts. Rayon chooses,
//! reserves and learns nothing.

use std::hint::black_box;
use std::time::{Duration, Instant};

use plimsoll_runtime::{Orchestrator, Task, workload};

const ROUNDS: usize = 7;
/// Tasks, and how long each takes.
const CASES: [(u64, Duration); 4] = [
    (20, Duration::from_millis(50)),
    (2_000, Duration::from_micros(200)),
    (10_000, Duration::from_micros(20)),
    (50_000, Duration::from_micros(2)),
];

/// Arithmetic that no compiler shortens.
fn work(steps: u64) -> u64 {
    (0..steps).fold(1, |sum: u64, step| black_box(sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step))
}

/// Steps that take this long here.
fn steps_of(span: Duration) -> u64 {
    const MANY: u64 = 20_000_000;
    let began = Instant::now();
    black_box(work(MANY));
    (span.as_secs_f64() / began.elapsed().as_secs_f64() * MANY as f64) as u64
}

/// How long it took, and how often a thread of this process was switched.
fn measured(run: impl FnOnce()) -> (Duration, u64) {
    let (switched, began) = (switches(), Instant::now());
    run();
    (began.elapsed(), switches() - switched)
}

fn plimsoll(orchestrator: &Orchestrator, tasks: u64, steps: u64) -> (Duration, u64) {
    let function = workload::function("work", move |n: &u64| Ok::<_, std::convert::Infallible>(work(steps) ^ n));
    let registered = orchestrator.register(function);
    measured(|| {
        let mut done = 0;
        for result in orchestrator.run_all(&registered, (0..tasks).map(Task::new)) {
            black_box(result.expect("it never fails").output);
            done += 1;
        }
        assert_eq!(done, tasks);
    })
}

fn rayon(pool: &rayon::ThreadPool, tasks: u64, steps: u64) -> (Duration, u64) {
    measured(|| {
        pool.scope(|scope| {
            for n in 0..tasks {
                scope.spawn(move |_| {
                    black_box(work(steps) ^ n);
                });
            }
        });
    })
}

/// Of all threads of this process, those that have ended included.
fn switches() -> u64 {
    let folder = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let threads = folder.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    let counts = |status: String| -> u64 {
        let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
        lines.filter_map(|line| line.rsplit(char::is_whitespace).next()?.parse::<u64>().ok()).sum()
    };
    threads.map(counts).sum()
}

fn main() {
    let orchestrator = Orchestrator::builder().cpu(2).build();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    println!(
        "{:<18} {:>12} {:>12} {:>8} {:>10} {:>10}",
        "tasks", "plimsoll ms", "rayon ms", "ratio", "switches", "rayon's"
    );
    let mut product = 1.0;
    for (tasks, span) in CASES {
        let steps = steps_of(span);
        let mut best = [(Duration::MAX, 0); 2];
        for _ in 0..ROUNDS {
            let rounds = [plimsoll(&orchestrator, tasks, steps), rayon(&pool, tasks, steps)];
            for (best, round) in best.iter_mut().zip(rounds) {
                *best = (*best).min(round);
            }
        }
        let [(ours, switched), (theirs, theirs_switched)] = best;
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        product *= ratio;
        let (ours, theirs) = (ours.as_secs_f64() * 1e3, theirs.as_secs_f64() * 1e3);
        let name = format!("{tasks} of {span:?}");
        println!("{name:<18} {ours:>12.1} {theirs:>12.1} {ratio:>8.3} {switched:>10} {theirs_switched:>10}");
    }
    println!("geometric mean of the ratios: {:.3}", f64::powf(product, 1.0 / CASES.len() as f64));
}
