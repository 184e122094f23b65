//! What learning from a task and asking for an estimate cost: part of every task's path, so counted in nanoseconds.
//!
//! `cargo run --release -p plimsoll-runtime --example profile_cost`

use std::hint::black_box;
use std::time::Instant;

use plimsoll_core::Nanos;
use plimsoll_core::profile::Cell;

const ROUNDS: u32 = 15;
const CALLS: u32 = 1_000_000;

fn main() {
    for sizes in [1, 4, 16, 64] {
        let mut cell = Cell::default();
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let samples: Vec<(u64, Nanos)> = (0..4096)
            .map(|_| {
                let units = 1_024_u64 << (next() % sizes * 32 / sizes);
                (units, Nanos(20_000 + units / 2 + next() % (units / 20)))
            })
            .collect();
        samples.iter().for_each(|&(units, took)| cell.learn_run(units, took));
        let mut at = 0;
        let mut sample = || {
            at = (at + 1) % samples.len();
            samples[at]
        };
        let nothing = best(|| {
            black_box(sample());
        });
        let learn = best(|| {
            let (units, took) = sample();
            cell.learn_run(black_box(units), black_box(took));
        });
        let run = best(|| {
            black_box(cell.run(black_box(sample().0 + 7)));
        });
        println!("{sizes:>2} sizes: learn_run {:5.1} ns, run {:5.1} ns", learn - nothing, run - nothing);
    }
}

/// The least ns per call of several rounds: what else the machine does only ever adds.
fn best(mut call: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}
