//! Images, and what is done with them on every device.
//!
//! [`Image`] holds pixels in memory; [`metrics`] compares images. Each metric is a
//! [`Workload`](plimsoll_runtime::Workload): hand its tasks to an orchestrator, and they run whole or in strips on a
//! GPU, or on the CPU, with the same answer.

#![warn(missing_debug_implementations)]

#[cfg(feature = "decode")]
pub mod decode;
#[cfg(feature = "encode")]
pub mod encode;
mod feed;
mod footprint;
pub mod frames;
mod image;
mod kernels;
pub mod metrics;
mod part;
mod planes;
mod power;
mod run;
mod shrink;
mod transfer;

pub use image::{Image, MakeImageError, SampleKind, Samples, Shape, Size};
