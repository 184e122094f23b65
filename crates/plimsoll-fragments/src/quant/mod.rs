//! Nested quantisation: a base of few bits and residual bit planes, so that each level is the one before it and a few bits
//! more, and every level is as good as plain quantisation at its bits.
//!
//! The weights of a group share a scale. Each is the number of a cell among 256 of equal width between minus and plus the
//! scale; a level knows the first bits of that number, so its cells are unions of the next level's. What a cell stands for is
//! not its middle but the mean of the weights in it, in a table for each level and class of groups: groups with one outlier
//! and groups without fill their cells differently.
//!
//! | file | what it owns |
//! |---|---|
//! | `bits.rs` | which bits make a level |
//! | `groups.rs` | scale and class of a group |
//! | `planes.rs` | codes to bit planes and back |
//! | `layout.rs` | where table, scales and planes lie in a level's bytes |
//! | `encode.rs`, `decode.rs` | a piece of a tensor to its levels, and back from those that are there |
//! | `exact.rs` | what the finest level leaves out, so that the last bit comes back |
//! | `measure.rs` | how far a level is from what was packed |

mod bits;
mod decode;
mod encode;
mod exact;
mod groups;
mod layout;
mod measure;
mod planes;

pub use bits::{Bits, ParseBitsError};
pub use decode::{check_level, decode, decode_exact, decode_from};
pub use encode::{Encoded, encode};
pub use exact::differences;
pub(crate) use exact::moved_on;
pub use groups::{class_of, scale_of};
pub use layout::LevelLayout;
pub use measure::Sums;
