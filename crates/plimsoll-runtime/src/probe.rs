//! Real kernels that try a device: do its answers hold, how fast is it, how much memory does it take?
//! Never chooses where they run. Invariant: every kernel here passes the conformance suite on every device.

pub mod blur;
pub mod check;
pub mod known_answer;
pub mod sum;
pub mod workloads;

pub use blur::{Blur, blur_full, blur_strip};
pub use sum::{sum, sum_bytes};
