//! Kernels that more than one metric uses. Each is WGSL text and the CPU twin of the same name.

pub(crate) mod total;
pub(crate) mod unpack;
