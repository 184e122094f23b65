//! Pretends: virtual devices, a virtual clock, task graphs, and the suite every device must pass.

pub mod conformance;
pub mod graph;
pub mod patience;
pub mod sim;
pub mod virtual_device;
