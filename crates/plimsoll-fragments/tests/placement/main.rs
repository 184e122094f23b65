//! Placement beside LRU, LFU and Belady's optimum: bytes that move, over seeded traces of uses.
//! `cargo test -p plimsoll-fragments --test placement -- --nocapture` prints the table.

mod rivals;
mod traces;
#[path = "../weights/mod.rs"]
#[expect(dead_code, reason = "only its dice are of use here")]
mod weights;

use plimsoll_fragments::placement::Placement;
use traces::{Step, Trace};

fn ours(trace: &Trace) -> u64 {
    let mut tier = Placement::new(trace.capacity);
    let mut moved = 0;
    for step in &trace.steps {
        match step {
            Step::Hint(keys) => tier.hint(keys.iter().map(|key| (*key, trace.sizes[*key], 1.0))),
            Step::Withdraw(keys) => tier.withdraw(keys.iter().copied()),
            Step::Use(key) => {
                moved += if tier.has(key) { 0 } else { trace.sizes[*key] };
                tier.used(*key, trace.sizes[*key], 1.0);
                assert!(tier.held() <= trace.capacity);
            }
        }
    }
    moved
}

/// How many times the bytes of the optimum move: with ours, LRU and LFU.
fn ratios(trace: &Trace) -> [f64; 3] {
    let best = rivals::belady(trace);
    let ratios = [ours(trace), rivals::lru(trace), rivals::lfu(trace)].map(|moved| moved as f64 / best as f64);
    let [ours, lru, lfu] = ratios;
    println!(
        "{:<22} {:>6} uses, {:>5.1} MB moved at best; ours {ours:.3} x, LRU {lru:.3} x, LFU {lfu:.3} x",
        trace.name,
        trace.uses(),
        best as f64 / 1e6,
    );
    ratios
}

#[test]
fn fewer_bytes_move_than_with_lru_or_lfu_and_hardly_more_than_at_best() {
    for trace in traces::all() {
        let [ours, lru, lfu] = ratios(&trace);
        assert!(ours < lru && ours < lfu, "{}: {ours} beside {lru} and {lfu}", trace.name);
        assert!(ours <= 1.25, "{}: {ours} times the optimum", trace.name);
    }
}

/// What comes by chance, with chances that change, nobody can foresee: here LRU is better than we are.
#[test]
fn what_comes_by_chance_is_still_ahead_of_lfu() {
    let [ours, _, lfu] = ratios(&traces::experts());
    assert!(ours < lfu && ours < 2.0, "{ours} beside {lfu}");
}
