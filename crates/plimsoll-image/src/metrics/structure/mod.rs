//! What the structural similarities have in common: luma, the Gaussian window, and similarity at every place of it.
//!
//! Similarity is computed from the difference of the two images, which f32 takes much better than the usual covariance:
//!
//! ```text
//! structure = (2 cov(x, y) + C2) / (var x + var y + C2)
//!           = 1 - var(x - y) / (var x + var y + C2)
//! luminance = (2 mean x mean y + C1) / (mean² x + mean² y + C1)
//!           = 1 - mean²(x - y) / (mean² x + mean² y + C1)
//! ```
//!
//! What rounding does to a variance is then multiplied by how far the images are apart: equal images give exactly 1.
//! The window is only put where it lies inside the image, so nothing here knows of edges.

pub(super) mod device;
pub(super) mod halve;
pub(super) mod luma;
pub(super) mod rows;
pub(super) mod scales;
pub(super) mod still;
pub(super) mod window;

/// What a comparison at one scale is made with.
#[derive(Copy, Clone, Debug)]
pub(super) struct Terms {
    /// Keeps the luminance term from dividing by nothing.
    pub(super) c1: f32,
    /// Keeps the contrast term from dividing by nothing.
    pub(super) c2: f32,
    /// The middle of the values: variances are taken of what is left without it, where f32 is at its best.
    pub(super) middle: f32,
    /// Whether the luminance term counts.
    pub(super) luminance: bool,
}

impl Terms {
    /// The published constants, K1 = 0.01 and K2 = 0.03, for samples from 0 to `peak`.
    pub(super) fn for_peak(peak: f32, luminance: bool) -> Self {
        let square = |k: f32| (k * peak) * (k * peak);
        Self { c1: square(0.01), c2: square(0.03), middle: peak / 2.0, luminance }
    }
}
