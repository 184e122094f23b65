//! The operations: the one table of them, and one file for each.

mod crop;
mod geometry;
mod scale;

use super::operation::About;

/// Every operation.
pub(super) const ALL: &[About] = &[scale::ABOUT, crop::ABOUT];
