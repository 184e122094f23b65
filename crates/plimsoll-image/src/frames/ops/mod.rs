//! The operations: the one table of them, and one file for each.

mod blur;
mod crop;
mod depth;
mod gamma;
mod edges;
mod geometry;
mod levels;
mod mono;
mod rgb;
mod tonemap;
mod yuv;

use super::operation::About;

/// Every operation.
pub(super) const ALL: &[About] = &[blur::ABOUT, crop::ABOUT, depth::ABOUT, gamma::ABOUT, levels::ABOUT, mono::ABOUT, rgb::ABOUT, tonemap::ABOUT, yuv::ABOUT];
