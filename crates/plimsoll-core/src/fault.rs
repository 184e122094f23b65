//! What can go wrong with an attempt, typed, and what to do about it.
//! Never decides where the task goes next: that is `scheduler::recover`.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, Nanos};

/// When memory ran out.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMoment {
    /// Before anything was allocated: the footprint does not fit under the line.
    Predicted,
    /// While the session was opened or a reference prepared.
    Open,
    /// While the task ran.
    Run,
}

impl fmt::Display for MemoryMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Predicted => "as predicted",
            Self::Open => "while opening",
            Self::Run => "while running",
        })
    }
}

/// The error of the work itself, shared so that every report of it names the same first cause.
#[derive(Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl Cause {
    /// Wraps the caller's error.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Arc::from(error.into()))
    }

    /// The caller's error, to look at or downcast.
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Why one attempt at a task ended without a result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The device had no memory left. The next rung down, or another device, may do.
    #[error("out of memory {moment}: wanted {wanted}")]
    OutOfMemory {
        /// When it ran out.
        moment: MemoryMoment,
        /// The allocation that failed, or the predicted footprint.
        wanted: Bytes,
    },
    /// The device is gone: reset, unplugged, driver crash. The work can move.
    #[error("device lost: {detail}")]
    DeviceLost {
        /// What the driver said.
        detail: String,
    },
    /// The device answered, wrongly. It must not be trusted again before it passes its known-answer check.
    #[error("wrong answer: {detail}")]
    WrongAnswer {
        /// What gave it away.
        detail: String,
    },
    /// The device cannot do this rung at all, such as a kernel that its driver does not compile. The next rung down, or
    /// another device, may do.
    #[error("not supported by this device: {detail}")]
    Unsupported {
        /// What the driver said.
        detail: String,
    },
    /// The device did not answer in time. The work can move.
    #[error("no answer for {after}")]
    Stalled {
        /// How long it was waited for.
        after: Nanos,
    },
    /// A value that the task takes could not be copied from the device where it lies: that device is gone. The value is
    /// made again, and the task done after that.
    #[error("{device}, from which a value was to be copied, is lost: {detail}")]
    SourceLost {
        /// Where the value lay.
        device: DeviceId,
        /// What the driver said.
        detail: String,
    },
    /// The caller, or its deadline, stopped the task.
    #[error("cancelled")]
    Cancelled,
    /// The work panicked. Trying elsewhere would panic again.
    #[error("panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The work itself failed. Trying elsewhere would fail again.
    #[error("{0}")]
    WorkFailed(Cause),
}

impl Fault {
    /// The work itself failed, with the caller's error.
    pub fn work(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::WorkFailed(Cause::new(error))
    }

    /// What to do about it.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::OutOfMemory { .. } | Self::Unsupported { .. } => Remedy::StepDown,
            Self::DeviceLost { .. } | Self::WrongAnswer { .. } | Self::Stalled { .. } | Self::SourceLost { .. } => {
                Remedy::Move
            }
            Self::Cancelled | Self::Panicked { .. } | Self::WorkFailed(_) => Remedy::Report,
        }
    }
}

/// What to do about a fault.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Remember the failure, try a rung or device that needs less.
    StepDown,
    /// Quarantine the device, try another.
    Move,
    /// Give the caller the error.
    Report,
}
