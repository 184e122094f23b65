//! One fact about what happened. Telemetry, traces, progress and replay are all made from these.
//! Never carries pixels, payloads or text that must be parsed.
//! Invariant: when nobody listens, nothing is built and nothing is kept.

use serde::Serialize;

use crate::{Ailment, Bytes, DeviceId, GrantId, GrantOwner, MemoryMoment, Moment, Nanos, TaskId, WorkloadId};

/// A fact and when it was so.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// When.
    pub at: Moment,
    /// What.
    pub what: What,
}

/// Why an attempt failed, without its text.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Out of memory, at this moment.
    OutOfMemory(MemoryMoment),
    /// The device went away.
    DeviceLost,
    /// The device answered wrongly.
    WrongAnswer,
    /// The device did not answer.
    Stalled,
    /// The device where a value lay that the task takes is gone.
    SourceLost,
    /// The device cannot do this rung.
    Unsupported,
    /// Stopped by the caller or the deadline.
    Cancelled,
    /// The work panicked.
    Panicked,
    /// The work failed.
    WorkFailed,
    /// It gave a result, but its device could not be trusted while it ran.
    Distrusted,
}

/// How a task ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With a result.
    Done,
    /// Without one.
    Failed,
    /// Stopped by the caller.
    Cancelled,
    /// Its deadline passed.
    DeadlinePassed,
}

/// How a grant ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantEnd {
    /// It was held, and its bytes are free.
    Returned,
    /// It was never given.
    Refused,
    /// Its owner no longer wanted it.
    Cancelled,
}

/// What happened to a grant.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantEdge {
    /// Somebody asked for it.
    Asked {
        /// Who.
        owner: GrantOwner,
    },
    /// It was given.
    Given {
        /// Which rung of its ladder; the best is 0.
        rung: u8,
        /// On all devices together.
        bytes: Bytes,
    },
    /// Its owner was asked to step down.
    Recalled {
        /// To which rung; `None` to leave.
        to: Option<u8>,
        /// Until when.
        until: Moment,
    },
    /// The time of its recall is over, and its owner has not stepped down.
    Overdue,
    /// Its owner has not left in time and is to be stopped.
    Stop {
        /// When it should be gone.
        until: Moment,
    },
    /// Its owner is on another rung.
    Stepped {
        /// Which rung.
        rung: u8,
    },
    /// Its owner was told that a better rung fits.
    MayRise {
        /// Which rung.
        rung: u8,
    },
    /// Its owner has left; its bytes are free when they are known to be.
    Left,
    /// Bytes that a program gave back were not seen to be free in time: from now on what the driver says is believed.
    Unseen {
        /// Where.
        device: DeviceId,
        /// How many.
        bytes: Bytes,
    },
    /// It is over.
    Ended(GrantEnd),
}

/// What happened.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// A task was taken in.
    Submitted {
        /// Which.
        task: TaskId,
        /// Of which workload.
        workload: WorkloadId,
        /// How much of it.
        units: u64,
    },
    /// A rung and a device were chosen for it.
    Placed {
        /// Which task.
        task: TaskId,
        /// The rung.
        rung: &'static str,
        /// The device.
        device: DeviceId,
        /// When it is expected to finish.
        finish: Moment,
    },
    /// A device that had nothing to do took it over.
    Moved {
        /// Which task.
        task: TaskId,
        /// From here.
        from: DeviceId,
        /// To here.
        to: DeviceId,
    },
    /// It started on a device.
    Started {
        /// Which task.
        task: TaskId,
        /// The rung.
        rung: &'static str,
        /// The device.
        device: DeviceId,
        /// How long it waited since it could first have started.
        waited: Nanos,
        /// Bytes promised to it, its session and its references included.
        bytes: Bytes,
        /// Bytes promised on the device to all, this one included.
        promised: Bytes,
        /// Whether it found a warm session.
        warm: bool,
        /// References found prepared.
        hits: u16,
        /// References it has to prepare.
        misses: u16,
    },
    /// One attempt at it succeeded.
    Ran {
        /// Which task.
        task: TaskId,
        /// Of which workload.
        workload: WorkloadId,
        /// The rung.
        rung: &'static str,
        /// The device.
        device: DeviceId,
        /// How much of it there was.
        units: u64,
        /// Time to prepare references.
        bring: Nanos,
        /// Time to open the session.
        open: Nanos,
        /// Time to run.
        run: Nanos,
        /// The most bytes it held.
        peak: Bytes,
    },
    /// One attempt at it failed.
    AttemptFailed {
        /// Which task.
        task: TaskId,
        /// The rung.
        rung: &'static str,
        /// The device.
        device: DeviceId,
        /// Why.
        fault: FaultKind,
    },
    /// Its slot did not come to it and gave it back: it was not started after all.
    PutBack {
        /// Which task.
        task: TaskId,
        /// The rung that it had been started on.
        rung: &'static str,
        /// On which device.
        device: DeviceId,
        /// The references that it had found prepared.
        hits: u16,
    },
    /// It ended.
    Ended {
        /// Which task.
        task: TaskId,
        /// How.
        end: End,
    },
    /// Something idle was evicted, to free memory.
    Evicted {
        /// On this device.
        device: DeviceId,
        /// Sessions closed.
        sessions: u16,
        /// References evicted.
        references: u16,
    },
    /// A device was put into quarantine.
    Quarantined {
        /// Which.
        device: DeviceId,
        /// Why.
        ailment: Ailment,
    },
    /// A device proved itself and takes work.
    Returned {
        /// Which.
        device: DeviceId,
    },
    /// A device is given up on.
    Gone {
        /// Which.
        device: DeviceId,
    },
    /// Another number of a device's slots is used at once from now on.
    WidthChanged {
        /// Which.
        device: DeviceId,
        /// How many.
        slots: u16,
    },
    /// A device's line moved, or is told for the first time since the device takes work.
    LineMoved {
        /// Which.
        device: DeviceId,
        /// Where it is now.
        line: Bytes,
        /// What is promised.
        promised: Bytes,
    },
    /// Something happened to a grant.
    Grant {
        /// Which.
        grant: GrantId,
        /// What.
        edge: GrantEdge,
    },
}

impl From<&crate::Fault> for FaultKind {
    fn from(fault: &crate::Fault) -> Self {
        use crate::Fault;
        match fault {
            Fault::OutOfMemory { moment, .. } => Self::OutOfMemory(*moment),
            Fault::DeviceLost { .. } => Self::DeviceLost,
            Fault::WrongAnswer { .. } => Self::WrongAnswer,
            Fault::Stalled { .. } => Self::Stalled,
            Fault::Unsupported { .. } => Self::Unsupported,
            Fault::SourceLost { .. } => Self::SourceLost,
            Fault::Cancelled => Self::Cancelled,
            Fault::Panicked { .. } => Self::Panicked,
            Fault::WorkFailed(_) => Self::WorkFailed,
        }
    }
}
