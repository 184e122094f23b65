//! Each operation: every way agrees, and values from outside where there are some.

mod blur;
mod convert;
mod crop;
mod levels;
mod naive;
#[cfg(feature = "decode")]
mod overlay;
mod tonemap;
mod warp;
