//! Loads every GPU and CPU in the machine to the line, never past it.
//!
//! Describe your work as a [`Workload`]: the [rungs](Rung) it has, what each needs, and how a session does it. Hand tasks
//! to an [`Orchestrator`]; it picks the rung and device that finish first, never promises more memory than there is,
//! steps down when memory runs out, moves work off a device that fails, and learns what everything really costs.
//!
//! ```
//! use plimsoll::{Machine, MachineOptions, Orchestrator, Task, workload};
//!
//! let machine = Machine::open(&MachineOptions::from_env()?);
//! let orchestrator = Orchestrator::builder().devices(machine.devices).build();
//! let shout = orchestrator.register(workload::function("shout", |word: &String| {
//!     Ok::<_, std::io::Error>(word.to_uppercase())
//! }));
//! let words = ["load", "to", "the", "line"].map(|word| Task::new(word.to_owned()));
//! for done in orchestrator.run_all(&shout, words).ordered() {
//!     let done = done?;
//!     println!("{} on {} in {}", done.output, done.report.device, done.report.run);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bench;
pub mod frames;
mod intake;
pub mod machine;
#[cfg(feature = "pack")]
pub mod pack;
pub mod profile;
pub mod score;
mod stop;

pub use machine::{Machine, MachineOptions};
pub use plimsoll_core::balancer::Strategy;
pub use plimsoll_core::event::{Event, What};
pub use plimsoll_core::scheduler::{Candidate, Estimate, Report};
pub use plimsoll_core::task::SessionShape;
pub use plimsoll_core::{
    Attempt, Bytes, Cause, ContentKey, DeviceId, DeviceKind, Fault, Footprint, GrantId, GrantOwner, GrantRefusal,
    GrantRung, Ladder, MemoryMoment, Nanos, Place, Priority, Quality, Refusal, Rung, SequenceId, Setback, Shortfall,
    StepRefusal, SubmitRefusal, TaskError, TaskId,
};
pub use stop::StopSign;

/// Images, their quality metrics, and frame operations.
pub use plimsoll_image as image;
pub use plimsoll_runtime::profile_file::ProfileFile;
pub use plimsoll_runtime::telemetry;
pub use plimsoll_runtime::{
    Access, Backend, Buffer, Builder, Cancellation, Content, Context, Device, DeviceFacts, DeviceStatus, Done, Fence,
    FenceState, Flow, Grant, GrantRequest, Held, Inbox, ItemResult, Kernel, Launch, Listener, NotGranted, OnFailure,
    Orchestrator, Ordered, POISON, PendingGrant, Pipeline, Readback, Recall, Reference, Registered, RunAll,
    RunPipeline, Session, SetMember, SetRefused, Shutdown, Task, TaskFailure, TaskRefused, TaskResult, Ticket, Twin,
    Value, Words, Workload, read_floats, workload,
};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;
