//! Pretends: virtual devices, a virtual clock, task graphs, a bucket that misbehaves, and the suite every device must pass.

pub mod bucket;
pub mod conformance;
pub mod graph;
pub mod patience;
pub mod sim;
pub mod virtual_device;
