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
//!
//! | feature | what it adds |
//! |---|---|
//! | `gpu` | GPUs through Vulkan, Metal and DX12; without it there is the CPU |
//! | `metrics` | quality metrics of images in memory: [`image`] |
//! | `score` | scores of image files: [`score`] |
//! | `frames` | operations on video frames: [`frames`] |
//! | `pack` | zstd and gzip files, packed and unpacked side by side: [`pack`] |
//! | `array` | streams of frames as Zarr v3 arrays: [`mod@array`] |
//! | `fragments` | models in fragments, held where they are needed: [`fragments`] |
//!
//! All are on unless said otherwise; the scheduler alone needs none of them.

#![warn(missing_debug_implementations)]

#[cfg(feature = "array")]
pub mod array;
pub mod bench;
pub mod device;
#[cfg(feature = "fragments")]
pub mod fragments;
#[cfg(feature = "frames")]
pub mod frames;
mod gpus;
#[cfg(any(feature = "pack", feature = "array"))]
mod in_order;
#[cfg(any(feature = "frames", feature = "pack", feature = "array"))]
mod intake;
pub mod machine;
#[cfg(feature = "pack")]
pub mod pack;
pub mod profile;
pub mod regret;
#[cfg(feature = "score")]
pub mod score;
#[cfg(any(feature = "pack", feature = "array"))]
mod stage_choice;
#[cfg(any(feature = "score", feature = "frames", feature = "pack", feature = "array", feature = "fragments"))]
mod stop;

pub use device::{Backend, Buffer, Device, DeviceFacts, DeviceStatus};
pub use machine::{Machine, MachineOptions};
pub use plimsoll_core::balancer::{ParseStrategyError, Strategy};
pub use plimsoll_core::event::{End, Event, FaultKind, GrantEdge, GrantEnd, What};
pub use plimsoll_core::grant::Portions;
pub use plimsoll_core::scheduler::{Candidate, Estimate, Report, Undrained};
pub use plimsoll_core::task::SessionShape;
pub use plimsoll_core::{
    Ailment, Attempt, Bytes, Cause, ContentKey, DeviceId, DeviceKind, DeviceSet, Fault, Footprint, GrantError, GrantId,
    GrantKind, GrantOwner, GrantPhase, GrantRung, GrantStatus, Ladder, MemoryMoment, Moment, Nanos, ParseBytesError,
    Place, Priority, Quality, Refusal, Remedy, Rung, SequenceId, SessionId, Setback, ShortfallError, StepError,
    SubmitErrorKind, TaskError, TaskId, UnixSeconds, UnknownNameError, ValueId, WorkloadId,
};
#[cfg(any(feature = "score", feature = "frames", feature = "pack", feature = "array", feature = "fragments"))]
pub use stop::StopSign;

/// Images, their quality metrics, and frame operations.
#[cfg(feature = "metrics")]
pub use plimsoll_image as image;
/// How orchestrators of this user share the memory of devices, in one process and in many.
pub use plimsoll_runtime::book;
pub use plimsoll_runtime::profile_file::{ProfileFile, ProfileFileError};
pub use plimsoll_runtime::telemetry;

/// Work in stages on the buffers of one session: declared as data, ordered in one place.
pub mod staged {
    pub use plimsoll_core::staged::*;
    pub use plimsoll_runtime::staged::*;
}

pub use plimsoll_runtime::{
    Access, Builder, Cancellation, Content, Context, Done, FanOut, Flow, Gathered, Grant, GrantRequest, GrantWaitError,
    Held, Inbox, ItemResult, Kernel, Launch, Listener, LockTimes, OnFailure, Orchestrator, Ordered, PendingGrant,
    Pipeline, Recall, Reference, ReferencePinner, Registered, ResultStream, RunAll, RunError, RunPipeline, Session,
    SetMember, Shutdown, SubmitAsync, SubmitError, SubmitSetError, Task, TaskResult, Ticket, Twin, Value, WaitError,
    Words, Workload, read_floats, workload,
};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/workloads.md")]
struct WorkloadsExamples;
