//! The coarsest level, a few pixels large: done on the host in double precision, the same for every rung.

use super::model::{CONTRAST_MAX, DARKEST, EPSILON, Plan, root_of_mean};

/// What stays of a reference's coarsest level.
pub(super) struct BaseReference {
    contrasts: Vec<f32>,
    sensitivity: [f64; 3],
}

impl BaseReference {
    /// From its three channels, one plane after the other.
    pub(super) fn new(plan: &Plan, planes: &[f32]) -> Self {
        let luminance = mean_luminance(planes);
        let contrasts = planes.iter().map(|&value| contrast(value, luminance) as f32).collect();
        Self { contrasts, sensitivity: plan.base_sensitivity(luminance) }
    }

    /// The pooled difference of each channel.
    pub(super) fn differences(&self, planes: &[f32]) -> [f64; 3] {
        let luminance = mean_luminance(planes);
        let count = planes.len() / 3;
        std::array::from_fn(|channel| {
            let pixels = channel * count..(channel + 1) * count;
            let pairs = planes[pixels.clone()].iter().zip(&self.contrasts[pixels]);
            let square = |(&value, &wanted): (&f32, &f32)| {
                // Rounded as the reference's were, so that equal images have no difference.
                let apart = f64::from(contrast(value, luminance) as f32 - wanted).abs() * self.sensitivity[channel];
                apart * (apart + 2.0 * EPSILON)
            };
            root_of_mean(pairs.map(square).sum(), count as u64)
        })
    }
}

fn contrast(value: f32, luminance: f64) -> f64 {
    (f64::from(value) / luminance).min(f64::from(CONTRAST_MAX))
}

fn mean_luminance(planes: &[f32]) -> f64 {
    let luminance = &planes[..planes.len() / 3];
    luminance.iter().map(|&value| f64::from(value.max(DARKEST))).sum::<f64>() / luminance.len() as f64
}
