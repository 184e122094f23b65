//! The model's numbers, and the plan of a pyramid for one display and size: its levels, their sensitivities, and how
//! differences become a score. Constants are those published with ColorVideoVDP 0.5.7 (`cvvdp_parameters.json`).
//! Never touches a pixel of more than the coarsest level.

use super::castle::{FREQUENCY, LUMINANCE, SENSITIVITY, STEPS};
use super::display::Display;
use crate::image::Size;

/// The exponent of a masked difference.
pub(super) const MASK_P: f32 = 2.264_355_2;
/// The exponent of each channel's mask.
pub(super) const MASK_Q: [f32; 3] = [1.302_622_7, 2.888_590_8, 3.680_771_4];
/// A mask's weight, in log10.
pub(super) const MASK_C: f32 = -0.795_497_1;
/// Differences saturate here, in log10.
pub(super) const DIFFERENCE_MAX: f32 = 2.564_245_5;
/// How much each channel (row) masks each channel (column), in log2.
pub(super) const MASKED_BY: [[f32; 3]; 3] = [
    [-0.189_501_05, -5.962_151, -4.318_346],
    [2.565_559_4, 0.344_067_13, -2.719_646_5],
    [3.811_837_2, -1.005_170_6, -0.519_337_65],
];
/// The standard deviation of the blur of masks, and its reach: in smaller levels there is none.
pub(super) const DILATE: f32 = 3.0;
pub(super) const REACH: u32 = 6;
/// Powers are taken of `x + EPSILON`, and what that makes of zero is taken off again.
pub(super) const EPSILON: f64 = 1e-5;
/// No background is darker, in cd/m².
pub(super) const DARKEST: f32 = 0.01;
/// No contrast is higher.
pub(super) const CONTRAST_MAX: f32 = 1000.0;

/// The weights of the channels before they mask each other.
const CHANNEL_GAIN: [f64; 3] = [1.0, 1.45, 1.0];
/// All sensitivities, in decibels.
const CORRECTION: f64 = -0.279_742_33;
/// The weights of the channels in the coarsest level.
const BASE_WEIGHT: [f64; 3] = [0.003_633_448_6, 1.662_772_4, 4.118_745_3];
/// The exponents over levels and over channels.
const BETA: f64 = 4.0;
const IMAGE: f64 = 0.577_918_3;
const JOD_A: f64 = 0.043_956_94;
const JOD_EXPONENT: f64 = 0.930_204_3;
/// Below this, the score is a straight line.
const STRAIGHT: f64 = 0.1;
/// Levels of lower frequencies than this, in cycles per degree, add nothing.
const FREQUENCY_MIN: f64 = 0.2;
/// The frequency that the coarsest level counts as.
const BASE_FREQUENCY: f64 = 0.1;

/// One level of the pyramid but the coarsest.
pub(super) struct Level {
    pub(super) size: Size,
    /// For each channel, log2 of the sensitivity times the channel's and the level's weight, by luminance.
    pub(super) sensitivity: [[f32; STEPS]; 3],
}

/// The pyramid of images of one size on one display.
pub(super) struct Plan {
    /// Finest first.
    pub(super) levels: Vec<Level>,
    /// The coarsest level's size.
    pub(super) base: Size,
    base_sensitivity: [[f32; STEPS]; 3],
}

impl Plan {
    pub(super) fn new(display: Display, size: Size) -> Self {
        let frequency = |level: u32| {
            let share = if level == 0 { 1.0 } else { 0.3228 * 0.5_f64.powi(level as i32 - 1) };
            share * display.pixels_per_degree() / 2.0
        };
        let last = (0..15).find(|&level| frequency(level) <= FREQUENCY_MIN).unwrap_or(15);
        let count = (last + 1).min(size.width.min(size.height).ilog2() - 1);
        let mut base = size;
        let mut levels = Vec::new();
        for level in 0..count {
            let gain = if level == 0 { 1.0 } else { 2.0 };
            let weights = CHANNEL_GAIN.map(|channel| channel * gain);
            levels.push(Level { size: base, sensitivity: sensitivities(frequency(level), weights) });
            base = halved(base);
        }
        Self { levels, base, base_sensitivity: sensitivities(BASE_FREQUENCY, [1.0; 3]) }
    }

    /// The size of a level; that after the last is the coarsest.
    pub(super) fn size(&self, level: usize) -> Size {
        self.levels.get(level).map_or(self.base, |level| level.size)
    }

    /// How sensitive each channel is in the coarsest level.
    pub(super) fn base_sensitivity(&self, luminance: f64) -> [f64; 3] {
        let [low, high] = LUMINANCE.map(f64::log10);
        let at = ((luminance.log10() - low) / (high - low)).clamp(0.0, 1.0) * (STEPS - 1) as f64;
        let (below, share) = (at as usize, at.fract());
        self.base_sensitivity.map(|channel| {
            let above = channel[(below + 1).min(STEPS - 1)];
            (f64::from(channel[below]) * (1.0 - share) + f64::from(above) * share).exp2()
        })
    }
}

/// Half as many pixels in each direction, rounded up.
pub(super) fn halved(size: Size) -> Size {
    Size { width: size.width.div_ceil(2), height: size.height.div_ceil(2) }
}

/// log2 of each channel's sensitivity at a frequency, times a weight, by luminance.
fn sensitivities(frequency: f64, weights: [f64; 3]) -> [[f32; STEPS]; 3] {
    let [low, high] = FREQUENCY.map(f64::log10);
    let at = (frequency.log10() - low) / (high - low) * (STEPS - 1) as f64;
    // Beyond the table, its last straight piece goes on.
    let below = at.clamp(0.0, (STEPS - 2) as f64) as usize;
    let share = at - below as f64;
    std::array::from_fn(|channel| {
        let constant = weights[channel].log2() + CORRECTION / 20.0 * 10.0_f64.log2();
        std::array::from_fn(|luminance| {
            let row = &SENSITIVITY[channel][luminance];
            let (one, other) = (f64::from(row[below]), f64::from(row[below + 1]));
            ((one + (other - one) * share) * 10.0_f64.log2() + constant) as f32
        })
    })
}

/// The mean of the squares of differences as one number.
pub(super) fn root_of_mean(squares: f64, count: u64) -> f64 {
    safe_root(squares / count as f64, 2.0)
}

/// The score in JOD, from the pooled differences of each level, finest first, the coarsest last.
pub(super) fn score(differences: &[[f64; 3]]) -> f64 {
    let last = differences.len() - 1;
    let channel = |channel: usize| {
        let weighted = differences
            .iter()
            .enumerate()
            .map(|(level, differences)| differences[channel] * if level == last { BASE_WEIGHT[channel] } else { 1.0 });
        norm(weighted)
    };
    let all = norm((0..3).map(channel)) * IMAGE;
    if all <= STRAIGHT {
        10.0 - JOD_A * STRAIGHT.powf(JOD_EXPONENT - 1.0) * all.max(0.0)
    } else {
        10.0 - JOD_A * all.powf(JOD_EXPONENT)
    }
}

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    let sum = values.map(|value| (value + EPSILON).powf(BETA) - EPSILON.powf(BETA)).sum();
    safe_root(sum, BETA)
}

fn safe_root(sum: f64, power: f64) -> f64 {
    (sum.max(0.0) + EPSILON).powf(1.0 / power) - EPSILON.powf(1.0 / power)
}
