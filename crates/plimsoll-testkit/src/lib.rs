//! Pretends: virtual devices, a virtual clock, and the suite every device must pass.

pub mod sim;
