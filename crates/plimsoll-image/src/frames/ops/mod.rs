//! The operations: the one table of them, and one file for each.

mod blur;
mod colour_value;
mod convolve;
mod crop;
mod denoise;
mod depth;
mod edges;
mod exp2;
mod flip;
mod gamma;
mod geometry;
mod levels;
mod mono;
mod overlay;
mod pad;
mod planes;
mod rgb;
mod rotate;
mod scale;
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
    flip::ABOUT,
    gamma::ABOUT,
    levels::ABOUT,
    mono::ABOUT,
    overlay::ABOUT,
    pad::ABOUT,
    rgb::ABOUT,
    rotate::ABOUT,
    scale::ABOUT,
    sobel::ABOUT,
    tonemap::ABOUT,
    unsharp::ABOUT,
    warp::ABOUT,
    yuv::ABOUT,
];
