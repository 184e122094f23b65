//! Why a stream of frames ended before its input did.

use std::fmt::Display;

use plimsoll_core::{Bytes, DeviceId};
use plimsoll_image::frames::PlanError;
use plimsoll_runtime::RunError;

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
    /// No device holds the frames that a frame looks at.
    #[error(
        "frame {} looks at others, each of which keeps {kept} on its device; that and the work itself take {least}, and \
         the most that a device has free is {most}; scale down before the operation that looks at other frames, let it \
         look at fewer, or raise --memory-limit", number + 1
    )]
    TooLarge {
        /// The frame.
        number: u64,
        /// What each keeps.
        kept: Bytes,
        /// What a device must have.
        least: Bytes,
        /// What the largest has.
        most: Bytes,
    },
    /// The frame's task gave no result on any device.
    #[error("frame {}: {failure}", number + 1)]
    Failed {
        /// The frame.
        number: u64,
        /// Why.
        failure: RunError,
    },
}

impl<E: Display> FrameError<E> {
    /// The error in words, with devices called as whoever opened them calls them.
    pub fn told(&self, name: &dyn Fn(DeviceId) -> String) -> String {
        match self {
            Self::Failed { number, failure } => format!("frame {}: {}", number + 1, failure.error.told(name)),
            other => other.to_string(),
        }
    }
}

impl<E> FrameError<E> {
    /// The frame that is missing, counted from 0.
    pub fn number(&self) -> u64 {
        match self {
            Self::Input { number, .. }
            | Self::InputPanicked { number, .. }
            | Self::Plan { number, .. }
            | Self::TooLarge { number, .. }
            | Self::Failed { number, .. } => *number,
        }
    }
}
