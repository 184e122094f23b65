//! Each operation: every way agrees, and values from outside where there are some.

mod blur;
mod convert;
mod convolve;
mod crop;
mod denoise;
mod ffmpeg;
mod fit;
mod flip;
mod hue;
mod levels;
mod lut;
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
