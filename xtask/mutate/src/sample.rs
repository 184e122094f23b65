//! A random sample that is the same for the same seed on every machine.

/// So many of these, each at most once, in their own order.
pub(crate) fn sample<T: Copy + Ord>(all: &[T], count: usize, seed: u64) -> Vec<T> {
    let mut dice = seed;
    let mut left = all.to_vec();
    let mut drawn = Vec::new();
    while drawn.len() < count && !left.is_empty() {
        let at = (next(&mut dice) % left.len() as u64) as usize;
        drawn.push(left.swap_remove(at));
    }
    drawn.sort_unstable();
    drawn
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn a_seed_draws_the_same_sample_and_nothing_twice() {
    let all: Vec<u32> = (0..100).collect();
    let drawn = sample(&all, 30, 1);
    assert_eq!(drawn, sample(&all, 30, 1));
    assert_ne!(drawn, sample(&all, 30, 2));
    assert!(drawn.len() == 30 && drawn.is_sorted_by(|a, b| a < b));
    assert_eq!(sample(&all, 200, 1), all);
}
