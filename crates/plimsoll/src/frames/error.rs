//! Why a stream of frames ended before its input did.

use plimsoll_image::frames::PlanError;
use plimsoll_runtime::TaskFailure;

/// Why a stream of frames ended early. All frames before the one that is named were delivered. Numbers
/// count from 0; messages, as people do, from 1.
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
    #[error("the input panicked at frame {}: {message}", number + 1)]
    InputPanicked {
        /// The frame that did not come.
        number: u64,
        /// The panic's message.
        message: String,
    },
    /// The chain cannot be done to frames of this format.
    #[error("frame {}: {cause}", number + 1)]
    Plan {
        /// The frame.
        number: u64,
        /// Which operation, and why.
        cause: PlanError,
    },
    /// The frame's task gave no result on any device.
    #[error("frame {}: {failure}", number + 1)]
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
