//! Each operation: every way agrees, and values from outside where there are some.

mod blur;
mod convert;
mod convolve;
mod crop;
mod denoise;
mod ffmpeg;
mod flip;
mod levels;
mod naive;
#[cfg(feature = "decode")]
pub(crate) mod overlay;
mod pad;
mod rotate;
mod scale;
mod sobel;
mod tonemap;
mod unsharp;
mod warp;
