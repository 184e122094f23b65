//! Each operation: every way agrees, and values from outside where there are some.

mod crop;
#[cfg(feature = "decode")]
mod overlay;
mod warp;
