//! Decides. Facts go in, with the time as an argument; decisions come out.
//!
//! **Invariant:** nothing here starts a thread, reads a clock, opens a file, names a GPU API or draws an unseeded
//! random number (`tidy::core_is_pure`).

#![warn(missing_debug_implementations)]

pub mod allotment;
pub mod arbiter;
pub mod balancer;
pub mod error;
pub mod event;
mod fault;
pub mod grant;
pub mod health;
pub mod histogram;
mod ids;
pub mod ledger;
pub mod line;
pub mod lookahead;
mod names;
pub mod profile;
mod queue;
pub mod residency;
pub mod rng;
mod rung;
pub mod scheduler;
mod sessions;
pub mod sharing;
pub mod staged;
pub mod stats;
pub mod task;
mod units;
mod width;
pub mod window;

pub use error::{Attempt, Refusal, Setback, SubmitErrorKind, TaskError};
pub use fault::{Cause, Fault, MemoryMoment, Remedy};
pub use grant::{
    GrantError, GrantId, GrantKind, GrantOwner, GrantPhase, GrantRung, GrantSpec, GrantStatus, GrantWait, StepError,
    WaitReason,
};
pub use health::Ailment;
pub use ids::{ContentKey, DeviceId, DeviceSet, SequenceId, SessionId, TaskId, ValueId, WorkloadId};
pub use ledger::ShortfallError;
pub use names::UnknownNameError;
pub use rung::{DeviceKind, Footprint, Ladder, Place, Rung};
pub use scheduler::Scheduler;
pub use sharing::{Pressure, PressureLevel, SharePolicy, Sharing};
pub use task::{Priority, TaskSpec};
pub use units::{Bytes, Moment, Nanos, ParseBytesError, Quality, UnixSeconds};
