//! The operations: the one table of them, and one file for each.

mod blur;
mod convolve;
mod crop;
mod edges;
mod geometry;
mod planes;
mod sobel;
mod taps;
mod unsharp;

use super::operation::About;

/// Every operation.
pub(super) const ALL: &[About] = &[blur::ABOUT, convolve::ABOUT, crop::ABOUT, sobel::ABOUT, unsharp::ABOUT];
