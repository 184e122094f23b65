//! Does what `plimsoll-core` decides.

mod backend;
mod builder;
mod clock;
mod completions;
pub mod cpu;
mod device;
mod fence;
pub mod gauge;
mod inbox;
mod job;
mod kernel;
mod learnt;
mod lease;
mod memory_reader;
pub mod misuse;
mod monitor;
mod opening;
mod orchestrator;
mod origin;
pub mod probe;
pub mod profile_file;
mod readback;
mod run_all;
mod shared;
mod sync;
mod task;
mod task_path;
pub mod telemetry;
mod ticket;
mod wait;
mod watchdog;
pub mod workload;

pub use backend::{Backend, Buffer, Launch, POISON, read_floats};
pub use builder::Builder;
pub use clock::today;
pub use device::{Device, DeviceFacts, MemoryReading, Nature};
pub use fence::{Fence, FenceState, KICKS_LIMIT, Kicks};
pub use inbox::Inbox;
pub use job::{Done, TaskFailure, TaskResult};
pub use kernel::{Access, Kernel, Twin, Words};
pub use learnt::SOFTWARE;
pub use lease::Lease;
pub use orchestrator::{DeviceStatus, Orchestrator, Registered, SetRefused, Shutdown, TaskRefused};
pub use origin::Origin;
pub use probe::check;
pub use readback::{Readback, Staged};
pub use run_all::{Ordered, RunAll};
pub use shared::Listener;
pub use task::{Reference, SetMember, Task};
pub use ticket::Ticket;
pub use workload::{Cancellation, Content, Context, Prepared, Session, Workload};

/// The scheduler as the runtime drives it.
pub(crate) type Core = plimsoll_core::Scheduler<job::Runtime>;
