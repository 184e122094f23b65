//! The operations: the one table of them, and one file for each.

mod blur;
mod convolve;
mod crop;
mod denoise;
mod edges;
mod exp2;
mod geometry;
mod planes;
mod sobel;
mod taps;
mod unsharp;

use super::operation::About;

/// Every operation.
pub(super) const ALL: &[About] =
    &[blur::ABOUT, convolve::ABOUT, crop::ABOUT, denoise::ABOUT, sobel::ABOUT, unsharp::ABOUT];
