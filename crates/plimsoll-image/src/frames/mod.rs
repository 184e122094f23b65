//! Video frames through chains of operations, on every device.
//!
//! A [`Chain`] is read from text. For frames of one [`Format`] it is planned into a graph of passes over planes; each
//! pass is a WGSL kernel whose CPU twin computes the same rows. [`ChainWorkload`] gives it two rungs: `gpu` launches the
//! kernels over whole planes that stay on the device, `cpu` pulls rows through the twins.
//!
//! | file | what it owns |
//! |---|---|
//! | `format.rs`, `frame.rs`, `spare.rs` | what samples stand for; a frame in memory; memory that another had before |
//! | `chain/` | text to operations and their arguments |
//! | `operation.rs`, `ops/` | what an operation is; one file for each, and the one table of them |
//! | `picture.rs`, `graph/`, `plan.rs` | operations to passes over planes |
//! | `carry.rs` | what a stream says about its frames, after a chain |
//! | `convert/` | passes between colour models, ranges, depths and chroma samples |
//! | `samples.rs`, `packed.rs` | codes to numbers and back |
//! | `device.rs` | the passes as kernels on a device |
//! | `host/` | the passes as rows on the CPU |
//! | `stream/` | frames from streams and files, and back |
//! | `planned.rs` | plans by format, and what each part of a chain needs |
//! | `first_part.rs`, `workload.rs` | the parts of a chain as workloads |
//! | `tests/` | both ways to run passes, beside whole planes computed one by one |

mod carry;
mod chain;
mod convert;
mod device;
mod first_part;
mod format;
mod frame;
mod graph;
mod host;
mod operation;
mod ops;
mod packed;
mod picture;
mod plan;
mod planned;
mod samples;
mod spare;
pub mod stream;
#[cfg(test)]
mod tests;
mod workload;

pub use self::carry::Carried;
pub use self::chain::{Chain, ChainError};
pub use self::first_part::FirstPart;
pub use self::format::{Colour, Format, FormatError, Matrix, Range, Sampling, Siting, Yuv};
pub use self::frame::{Frame, MakeFrameError};
pub use self::operation::{About, OperationError};
pub use self::plan::PlanError;
pub use self::workload::{ChainInput, ChainWorkload, RUNGS};
