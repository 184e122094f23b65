//! The operations: the one table of them, and one file for each.

mod blur;
mod convolve;
mod crop;
mod denoise;
mod depth;
mod edges;
mod exp2;
mod gamma;
mod geometry;
mod levels;
mod mono;
mod overlay;
mod planes;
mod rgb;
mod sobel;
mod taps;
mod tonemap;
mod unsharp;
mod warp;
mod yuv;

use super::operation::About;

/// Every operation.
pub(super) const ALL: &[About] = &[
    blur::ABOUT,
    convolve::ABOUT,
    crop::ABOUT,
    denoise::ABOUT,
    depth::ABOUT,
    gamma::ABOUT,
    levels::ABOUT,
    mono::ABOUT,
    overlay::ABOUT,
    rgb::ABOUT,
    sobel::ABOUT,
    tonemap::ABOUT,
    unsharp::ABOUT,
    warp::ABOUT,
    yuv::ABOUT,
];
