//! Uses of fragments as a program made them, read from what it printed:
//! `cargo run --release -p plimsoll --example layer_trace -- dense 96 > crates/plimsoll-fragments/tests/placement/recorded/dense.txt`
//! and the same with `experts`.

use crate::traces::{Step, Trace};

fn parsed(name: &'static str, text: &str, share: f64) -> Trace {
    let numbers = |line: &str| line.split(' ').map(|word| word.parse::<u64>().unwrap()).collect::<Vec<u64>>();
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(numbers);
    let sizes = lines.next().unwrap();
    let steps: Vec<Step> = lines.flatten().map(|key| Step::Use(key as usize)).collect();
    assert!(steps.len() > 1_000 && sizes.len() > 50, "{} uses of {} fragments", steps.len(), sizes.len());
    Trace { name, capacity: (sizes.iter().sum::<u64>() as f64 * share) as u64, sizes, steps }
}

pub(crate) fn dense(share: f64) -> Trace {
    parsed("recorded, dense", include_str!("recorded/dense.txt"), share)
}

pub(crate) fn experts(share: f64) -> Trace {
    parsed("recorded, experts", include_str!("recorded/experts.txt"), share)
}
