//! Block compression as workloads: standard formats in and out.
//!
//! A file is cut into blocks that are packed by themselves ([`options`]), each by tasks ([`workloads`]), and put together
//! again ([`assemble`]). Packed input is cut into pieces that can be unpacked by themselves, where its format allows
//! ([`scan`]). Nothing here schedules, opens a file or writes one.
//!
//! | module | what it owns |
//! |---|---|
//! | `options` | what a file is to be: format, level, method, blocks |
//! | `zstd`, `gzip` | the formats: headers, checksums, whole frames and members, streams |
//! | `filter` | rearranging typed data before it is packed |
//! | `matches`, `huffman` | the stages of the staged method: kernels and twins |
//! | `scan`, `range` | packed input as pieces, from its beginning or from the middle |
//! | `extent` | packed bytes that stay in their file until they are unpacked |
//! | `assemble` | packed blocks as a file |
//! | `workloads` | the stages as workloads |
//! | `pool` | buffers that are used again |
//! | `draft` | an output that is written piece by piece at their places |
//! | `faults` | where a test can make a stage panic |

pub mod assemble;
pub mod draft;
pub mod error;
mod extent;
pub mod faults;
pub mod filter;
pub mod gzip;
mod huffman;
mod matches;
pub mod options;
pub mod pool;
pub mod range;
pub mod scan;
pub mod workloads;
mod zstd;

pub use error::{DamageError, UnpackError};
pub use options::{Format, Method, OptionsError, PackOptions, Recipe};
