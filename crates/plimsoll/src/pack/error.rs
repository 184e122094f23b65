//! Why a file was not packed or unpacked.

use std::io;

use plimsoll_blocks::UnpackError;
use plimsoll_core::{SubmitErrorKind, TaskError};
use plimsoll_runtime::RunError;

/// Why a file was not packed or unpacked. What was written before it is as good as `Packer::unpack` says. What caused it, if
/// something else did, is its `source`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// The input cannot be read.
    #[error("the input cannot be read")]
    Input(#[source] io::Error),
    /// Whoever gives the input panicked.
    #[error("reading the input panicked: {0}; please report this")]
    InputPanicked(String),
    /// The output cannot be written.
    #[error("the output cannot be written")]
    Output(#[source] io::Error),
    /// The packed bytes are not right.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// A block could not be done.
    #[error("block {number} failed")]
    Block {
        /// Which one, from 0.
        number: u64,
        /// Why.
        #[source]
        failure: RunError,
    },
    /// A block could not be done on the caller's thread.
    #[error("block {number} failed: {reason}")]
    BlockHere {
        /// Which one, from 0.
        number: u64,
        /// Why.
        reason: String,
    },
    /// The recipe is of stages, and there is no scheduler to run them.
    #[error("the staged method needs a scheduler; pack it by a `Packer`")]
    NeedsScheduler,
    /// A block was not taken in.
    #[error("block {number} was not taken in: {reason}")]
    Refused {
        /// Which one, from 0.
        number: u64,
        /// Why.
        reason: SubmitErrorKind,
    },
    /// A stage is to run on a GPU, and there is none.
    #[error("the {stage} stage is to run on a GPU, and there is none; `plimsoll devices` lists what there is")]
    NoGpu {
        /// Which stage.
        stage: &'static str,
    },
    /// Packing what comes after the last block failed.
    #[error("the end of the file could not be packed: {0}")]
    End(String),
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}

impl PackError {
    /// What is wrong with the packed bytes, if that is what it is.
    pub fn damage(&self) -> Option<&UnpackError> {
        match self {
            Self::Unpack(error) => Some(error),
            Self::Block { failure: RunError { error: TaskError::WorkFailed(cause), .. }, .. } => {
                cause.error().downcast_ref()
            }
            _ => None,
        }
    }

    /// A block failed. What is wrong with packed bytes says so itself.
    pub(super) fn of_block(number: u64, failure: RunError) -> Self {
        Self::Block { number, failure }
    }
}
