//! Pretends: virtual devices, a virtual clock, task graphs, and the suite every device must pass.

pub mod graph;
pub mod sim;
