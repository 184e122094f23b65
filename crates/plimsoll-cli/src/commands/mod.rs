//! One file for each command: what can be typed after it, what it does, how that looks.

#[cfg(feature = "array")]
pub(crate) mod array;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod devices;
#[cfg(feature = "fragments")]
pub(crate) mod fragments;
#[cfg(feature = "frames")]
pub(crate) mod frames;
#[cfg(feature = "pack")]
pub(crate) mod pack;
pub(crate) mod profile;
#[cfg(feature = "score")]
pub(crate) mod score;
#[cfg(all(feature = "serve", unix))]
pub(crate) mod share;
pub(crate) mod sim;
