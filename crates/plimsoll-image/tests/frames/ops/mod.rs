//! Each operation: every way agrees, and values from outside where there are some.

mod blur;
mod convolve;
mod crop;
mod denoise;
mod ffmpeg;
mod naive;
mod sobel;
mod unsharp;
