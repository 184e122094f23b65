//! Why a stream of frames ended before its input did.

use plimsoll_image::frames::PlanError;
use plimsoll_runtime::TaskFailure;

/// Why a stream of frames ended early. Frames count from 0; all before the one that is named were delivered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError<E> {
    /// The input gave an error where this frame should have been.
    #[error("{cause}")]
    Input {
        /// The frame that did not come.
        number: u64,
        /// What the input said.
        cause: E,
    },
    /// The input panicked where this frame should have been.
    #[error("the input panicked at frame {number}: {message}")]
    InputPanicked {
        /// The frame that did not come.
        number: u64,
        /// The panic's message.
        message: String,
    },
    /// The chain cannot be done to frames of this format.
    #[error("frame {number}: {cause}")]
    Plan {
        /// The frame.
        number: u64,
        /// Which operation, and why.
        cause: PlanError,
    },
    /// The frame's task gave no result on any device.
    #[error("frame {number}: {failure}")]
    Failed {
        /// The frame.
        number: u64,
        /// Why.
        failure: TaskFailure,
    },
}

impl<E> FrameError<E> {
    /// The frame that is missing, counted from 0.
    pub fn number(&self) -> u64 {
        match self {
            Self::Input { number, .. }
            | Self::InputPanicked { number, .. }
            | Self::Plan { number, .. }
            | Self::Failed { number, .. } => *number,
        }
    }
}
