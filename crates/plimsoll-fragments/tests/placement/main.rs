//! Placement beside LRU, LFU and Belady's optimum: bytes that move, over traces of uses: made from seeds, and recorded.
//! `cargo test -p plimsoll-fragments --test placement -- --nocapture` prints the table.

mod recorded;
mod rivals;
mod traces;
#[path = "../weights/mod.rs"]
#[expect(dead_code, reason = "only its dice are of use here")]
mod weights;

use plimsoll_fragments::placement::Placement;
use traces::{Step, Trace};

/// Each kind of trace with other sizes, lengths and capacities.
const SEEDS: std::ops::Range<u64> = 1..7;

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

#[track_caller]
fn is_ahead_and_near_the_best(trace: &Trace) {
    let [ours, lru, lfu] = ratios(trace);
    assert!(ours < lru && ours < lfu, "{}: {ours} beside {lru} and {lfu}", trace.name);
    assert!(ours <= 1.25, "{}: {ours} times the optimum", trace.name);
}

#[test]
fn fewer_bytes_move_than_with_lru_or_lfu_and_hardly_more_than_at_best() {
    SEEDS.flat_map(traces::with_an_order).for_each(|trace| is_ahead_and_near_the_best(&trace));
}

/// Two holders take turns of random length and nobody says so: when a turn ends can only be noticed late.
#[test]
fn turns_that_nobody_tells_of_cost_no_more_than_with_lru() {
    for trace in SEEDS.map(traces::turns_untold) {
        let [ours, lru, lfu] = ratios(&trace);
        assert!(ours < 1.1 * lru && ours < lfu, "{ours} beside {lru} and {lfu}");
    }
}

/// Nobody can foresee what comes by chance: at best one is as good as whichever of LRU and LFU happens to suit.
#[test]
fn what_comes_by_chance_is_as_good_as_the_better_of_lru_and_lfu() {
    let mut all = Vec::new();
    for trace in SEEDS.flat_map(traces::by_chance) {
        let [ours, lru, lfu] = ratios(&trace);
        assert!(ours < 1.05 * lru.min(lfu), "{}: {ours} beside {lru} and {lfu}", trace.name);
        all.push([lru / ours, lfu / ours]);
    }
    let mean = |at: usize| all.iter().map(|each| each[at].ln()).sum::<f64>() / all.len() as f64;
    assert!(mean(0) > 0.05 && mean(1) > 0.05, "ahead of either over all of them");
}

/// Of a draft and a large model as they read their weights, at several sizes of memory.
#[test]
fn recorded_passes_of_a_dense_model_move_hardly_more_than_at_best() {
    [0.3, 0.5, 0.7, 0.9].iter().for_each(|share| is_ahead_and_near_the_best(&recorded::dense(*share)));
}

/// The same with experts that a router picks by the tokens: in part an order, in part chance. Where nearly everything fits, only
/// the chance is left.
#[test]
fn recorded_passes_of_experts_are_ahead_of_lru_and_lfu() {
    [0.3, 0.5, 0.7].iter().for_each(|share| is_ahead_and_near_the_best(&recorded::experts(*share)));
    let [ours, lru, lfu] = ratios(&recorded::experts(0.9));
    assert!(ours < lru && ours < lfu, "{ours} beside {lru} and {lfu}");
}
