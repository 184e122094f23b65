//! Models in fragments on devices: tiers, holders, grants. Needs a Vulkan device: `cargo xtask test` installs one.

mod devices;
mod holders;
mod kernel;
mod model;
mod tiers;
#[path = "../../../plimsoll-fragments/tests/weights/mod.rs"]
#[allow(dead_code, reason = "plain quantisers are compared with elsewhere")]
mod weights;
