//! The operations: the one table of them, and one file for each.

mod crop;
mod geometry;
mod overlay;
mod warp;

use super::operation::About;

/// Every operation.
pub(super) const ALL: &[About] = &[crop::ABOUT, overlay::ABOUT, warp::ABOUT];
