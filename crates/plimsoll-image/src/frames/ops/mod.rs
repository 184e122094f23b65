//! The operations: the one table of them, and one file for each.

mod crop;
mod depth;
mod gamma;
mod geometry;
mod levels;
mod mono;
mod rgb;
mod yuv;

use super::operation::About;

/// Every operation.
pub(super) const ALL: &[About] =
