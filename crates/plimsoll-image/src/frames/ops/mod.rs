//! The operations: the one table of them, and one file for each.

mod blur;
mod crop;
mod depth;
mod edges;
mod gamma;
mod geometry;
mod levels;
mod mono;
mod overlay;
mod rgb;
mod tonemap;
mod warp;
mod yuv;

use super::operation::About;

/// Every operation.
pub(super) const ALL: &[About] = &[
    blur::ABOUT,
    crop::ABOUT,
    depth::ABOUT,
    gamma::ABOUT,
    levels::ABOUT,
    mono::ABOUT,
    overlay::ABOUT,
    rgb::ABOUT,
    tonemap::ABOUT,
    warp::ABOUT,
    yuv::ABOUT,
];
