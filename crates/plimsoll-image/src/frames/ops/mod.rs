//! The operations: the one table of them, and one file for each.

mod colour_value;
mod crop;
mod flip;
mod geometry;
mod pad;
mod rotate;
mod scale;

use super::operation::About;

/// Every operation.
pub(super) const ALL: &[About] = &[scale::ABOUT, crop::ABOUT, pad::ABOUT, flip::ABOUT, rotate::ABOUT];
