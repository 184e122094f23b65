//! Does what `plimsoll-core` decides.

#![warn(missing_debug_implementations)]

mod backend;
pub mod book;
mod builder;
mod clock;
mod completions;
pub mod cpu;
mod delivery;
mod device;
mod fan_out;
mod fence;
mod function;
pub mod gauge;
mod grant;
mod held;
mod inbox;
mod job;
mod keeper;
mod kernel;
pub mod large_pages;
mod learnt;
mod memory_reader;
pub mod misuse;
mod monitor;
mod nested;
mod opening;
mod orchestrator;
mod origin;
mod pinner;
mod pipeline;
pub mod probe;
pub mod profile_file;
mod readback;
mod run_all;
mod shared;
pub mod staged;
mod submission;
mod sync;
mod task;
mod task_path;
pub mod telemetry;
mod ticket;
mod value;
mod wait;
mod watchdog;
pub mod workload;

pub use backend::{Backend, Buffer, Launch, POISON, View, read_floats};
pub use builder::Builder;
pub use clock::today;
pub use device::{Device, DeviceFacts, MemoryReading, Nature};
pub use fan_out::{FanOut, Gathered};
pub use fence::{Fence, FenceState, KICKS_LIMIT, Kicks};
pub use grant::{Grant, GrantRequest, GrantWaitError, PendingGrant, Recall};
pub use held::Held;
pub use inbox::Inbox;
pub use job::{Done, RunError, TaskResult};
pub use kernel::{Access, Kernel, Twin, Words};
pub use learnt::SOFTWARE;
pub use monitor::LockTimes;
pub use orchestrator::{DeviceStatus, Orchestrator, Registered, Shutdown, SubmitError, SubmitSetError};
pub use origin::Origin;
pub use pinner::ReferencePinner;
pub use pipeline::{Closed, Flow, ItemResult, OnFailure, Open, Pipeline, RunPipeline};
pub use probe::check;
pub use readback::{Readback, Staged};
pub use run_all::{Ordered, ResultStream, RunAll};
pub use shared::Listener;
pub use submission::SubmitAsync;
pub use task::{Reference, SetMember, Task};
pub use ticket::{Ticket, WaitError};
pub use value::Value;
pub use workload::{Cancellation, Content, Context, Session, Workload};

/// The scheduler as the runtime drives it.
pub(crate) type Core = plimsoll_core::Scheduler<job::Runtime>;
