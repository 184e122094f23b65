//! Seeded numbers, so that whatever was drawn can be drawn again.
//! Never used for anything that has to be unguessable.
//! Invariant: the same seed gives the same numbers on every machine.

/// SplitMix64: one multiply-xor round per number, and no state to warm up.
///
/// ```
/// use plimsoll_core::rng::Rng;
/// let (mut a, mut b) = (Rng::new(7), Rng::new(7));
/// assert_eq!(a.below(1000), b.below(1000));
/// ```
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.within(0, end as u64) as usize
    }

    /// A number from `start` to just below `end`, which is larger.
    pub fn within(&mut self, start: u64, end: u64) -> u64 {
        debug_assert!(start < end);
        start + ((u128::from(self.roll()) * u128::from(end - start)) >> 64) as u64
    }

    /// True this share of the time.
    pub fn chance(&mut self, share: f64) -> bool {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64 <= share && share > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_come_true_as_often_as_they_say() {
        let mut rng = Rng::new(1);
        for share in [0.0, 0.1, 0.5, 0.9, 1.0] {
            let came_true = (0..10_000).filter(|_| rng.chance(share)).count() as f64 / 10_000.0;
            assert!((came_true - share).abs() < 0.02, "{share}: {came_true}");
        }
    }

    #[test]
    fn numbers_stay_within_their_bounds_and_reach_them() {
        let mut rng = Rng::new(2);
        let drawn: Vec<u64> = (0..1_000).map(|_| rng.within(10, 14)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&10), Some(&13)));
    }
}
