//! One file for each command: what can be typed after it, what it does, how that looks.

pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod devices;
pub(crate) mod frames;
pub(crate) mod pack;
pub(crate) mod profile;
pub(crate) mod score;
pub(crate) mod sim;
