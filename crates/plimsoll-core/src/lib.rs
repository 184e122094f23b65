//! Decides. Facts go in, with the time as an argument; decisions come out.
//!
//! **Invariant:** nothing here starts a thread, reads a clock, opens a file, names a GPU API or draws an unseeded
//! random number (`tidy::core_is_pure`).

mod fault;
mod ids;
pub mod lookahead;
mod rung;
mod units;

pub use fault::{Cause, Fault, MemoryMoment, Remedy};
pub use ids::{ContentKey, DeviceId, DeviceSet, SessionId, TaskId, WorkloadId};
pub use rung::{DeviceKind, Footprint, Ladder, Place, Rung};
pub use units::{Bytes, Moment, Nanos, ParseBytesError, Quality, UnixSeconds};
