//! The operations: the one table of them, and one file for each.

mod blur;
mod crop;
mod edges;
mod geometry;

use super::operation::About;

/// Every operation.
pub(super) const ALL: &[About] = &[blur::ABOUT, crop::ABOUT];
