//! Weights to test with, seeded, and plain quantisers to compare with.

use plimsoll_fragments::data_type::Float;

/// Numbers from a seed, the same everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// From 0 to 1, neither included.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn gaussian(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// What weights look like.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As after initialisation.
    Gaussian,
    /// Tails as trained weights have them: Student's t with 5 degrees of freedom.
    HeavyTails,
    /// Trained weights as layers of language models have them: rows of different size, heavy tails, and one input channel in
    /// 128 that is twenty times as large.
    OutlierChannels,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Gaussian, Self::HeavyTails, Self::OutlierChannels];

    pub(crate) fn weights(self, count: usize, seed: u64) -> Vec<f32> {
        let mut dice = Dice::new(seed);
        let mut row_size = 1.0;
        (0..count)
            .map(|at| {
                if at % 1024 == 0 {
                    row_size = (0.5 * dice.gaussian()).exp();
                }
                let x = match self {
                    Self::Gaussian => dice.gaussian(),
                    Self::HeavyTails => student(&mut dice),
                    Self::OutlierChannels => {
                        let channel = if at % 128 == 77 { 20.0 } else { 1.0 };
                        student(&mut dice) * row_size * channel
                    }
                };
                (0.02 * x) as f32
            })
            .collect()
    }
}

fn student(dice: &mut Dice) -> f64 {
    const DEGREES: usize = 5;
    let chi: f64 = (0..DEGREES).map(|_| dice.gaussian().powi(2)).sum();
    dice.gaussian() / (chi / DEGREES as f64).sqrt()
}

pub(crate) fn to_bytes(weights: &[f32], float: Float) -> Vec<u8> {
    let mut bytes = vec![0; weights.len() * float.bytes()];
    float.from_f32(weights, &mut bytes);
    bytes
}

/// Quantisers of one level, with the same 64 weights to a scale.
pub(crate) mod plain {
    use plimsoll_fragments::limits::GROUP;

    type Quantise = fn(&[f32], u8) -> Vec<f32>;

    pub(crate) const ALL: [(&str, Quantise); 2] = [("symmetric", symmetric), ("mid-rise", mid_rise)];

    fn by_group(weights: &[f32], mut each: impl FnMut(f32, f32) -> f32) -> Vec<f32> {
        let of_group = |group: &[f32]| {
            let largest = group.iter().fold(0_f32, |a, x| a.max(x.abs()));
            group.iter().map(|x| if largest > 0.0 { each(x / largest, largest) } else { 0.0 }).collect::<Vec<_>>()
        };
        weights.chunks(GROUP).flat_map(of_group).collect()
    }

    /// As int8 and int4 files have it: zero, and equally many steps on both sides up to the largest weight.
    fn symmetric(weights: &[f32], bits: u8) -> Vec<f32> {
        let steps = ((1_u32 << (bits - 1)) - 1).max(1) as f32;
        by_group(weights, |y, largest| (y * steps).round() / steps * largest)
    }

    /// All codes used, no code for zero.
    fn mid_rise(weights: &[f32], bits: u8) -> Vec<f32> {
        let half = (1_u32 << (bits - 1)) as f32;
        by_group(weights, |y, largest| ((y * half).floor().clamp(-half, half - 1.0) + 0.5) / half * largest)
    }
}
