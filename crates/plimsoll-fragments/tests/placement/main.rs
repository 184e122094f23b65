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
            Step::Use(key) => {
                moved += if tier.has(key) { 0 } else { trace.sizes[*key] };
                tier.used(*key, trace.sizes[*key], 1.0);
                assert!(tier.held() <= trace.capacity);
            }
        }
    }
    moved
}

#[test]
fn fewer_bytes_move_than_with_lru_or_lfu_and_hardly_more_than_at_best() {
    let (mut all_ours, mut all_best) = (0.0, 0.0);
    for trace in traces::all() {
        let (ours, lru, lfu, best) = (ours(&trace), rivals::lru(&trace), rivals::lfu(&trace), rivals::belady(&trace));
        let of_best = |moved: u64| moved as f64 / best as f64;
        println!(
            "{:<22} {:>6} uses, {:>5.1} MB moved at best; ours {:.3} x, LRU {:.3} x, LFU {:.3} x",
            trace.name,
            trace.uses(),
            best as f64 / 1e6,
            of_best(ours),
            of_best(lru),
            of_best(lfu)
        );
        assert!(ours < lru && ours < lfu, "{}: {ours} beside {lru} and {lfu}", trace.name);
        assert!(of_best(ours) <= 1.25, "{}: {} times the optimum", trace.name, of_best(ours));
        (all_ours, all_best) = (all_ours + ours as f64, all_best + best as f64);
    }
    println!("all together           {:.3} x", all_ours / all_best);
}
