//! Pretends, so that what rarely happens can be tested every time.

pub mod conformance;
pub mod virtual_device;
