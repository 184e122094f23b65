//! Why an array was not written.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_arrays::SpecError;
use plimsoll_arrays::read::StoreError;
use plimsoll_arrays::shard::ShardError;
use plimsoll_arrays::sink::SinkError;
use plimsoll_core::{Bytes, SubmitErrorKind};
use plimsoll_runtime::RunError;

/// Why an array was not written. What was published before it is whole. What caused it, if something else did, is its
/// `source`.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The array cannot be as it was described.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// There is something at the place of the array.
    #[error("there is something in the store already ('{key}'); resume it, or say that it is to be replaced")]
    Exists {
        /// What was found.
        key: String,
    },
    /// What is there is no array to be replaced.
    #[error("'{key}' is in the store, which is no Zarr array or group; remove it yourself if it is not needed")]
    NotOurs {
        /// What was found.
        key: String,
    },
    /// What is there cannot be gone on with.
    #[error("the array that is there cannot be gone on with: {why}")]
    NotResumable {
        /// What is different.
        why: String,
    },
    /// There is not enough memory for it.
    #[error(
        "this takes at least {least} of memory at once, and {line} may be used; smaller steps, or chunks of fewer steps, take less"
    )]
    NeverFits {
        /// The least that it takes.
        least: Bytes,
        /// What may be used of the host's memory now.
        line: Bytes,
    },
    /// The input cannot be read.
    #[error("the input cannot be read; what came before is written")]
    Input(#[source] Arc<io::Error>),
    /// The store cannot be read.
    #[error("the store cannot be read")]
    Store(#[source] Arc<StoreError>),
    /// The store cannot be written.
    #[error("the store cannot be written")]
    Sink(#[source] Arc<SinkError>),
    /// A shard cannot be put together.
    #[error("the shard '{key}' cannot be put together; please report this")]
    Shard {
        /// Its key.
        key: String,
        /// Why.
        #[source]
        reason: ShardError,
    },
    /// More steps came than the array has.
    #[error("the array has {steps} steps along its first dimension, and more came; make it longer, or let it grow (0)")]
    TooMany {
        /// Its length.
        steps: u64,
    },
    /// Less came than there was before.
    #[error(
        "{steps} steps came, and the array has {there} already; it is left as it was, give its input from the beginning"
    )]
    Shorter {
        /// How many came, those that were not asked for again included.
        steps: u64,
        /// How many there are.
        there: u64,
    },
    /// The input ended within a step.
    #[error("the input ended within a step: its last {rest} bytes are no whole step of {step} bytes and were left out")]
    PartOfStep {
        /// Bytes of the last step that came.
        rest: u64,
        /// Bytes of a step.
        step: u64,
    },
    /// The store took too long.
    #[error("nothing could be taken in for {waited:?}: the store is slower than the input; {taken} bytes were taken")]
    Busy {
        /// How long it was waited.
        waited: Duration,
        /// Bytes of this append that were taken.
        taken: usize,
    },
    /// A piece of work failed.
    #[error("{what} failed")]
    Work {
        /// What it was.
        what: String,
        /// Why.
        #[source]
        failure: Arc<RunError>,
    },
    /// A piece of work was not taken in.
    #[error("{what} was not taken in: {reason}")]
    Refused {
        /// What it was.
        what: String,
        /// Why.
        reason: SubmitErrorKind,
    },
    /// A stage is to run on a GPU, and there is none.
    #[error("the {stage} stage is to run on a GPU, and there is none; `plimsoll devices` lists what there is")]
    NoGpu {
        /// Which stage.
        stage: &'static str,
    },
    /// A stage is to run on a GPU, which would not give the same bytes.
    #[error("the {stage} stage cannot run on a GPU: {what} would not get the same bytes there; let it run anywhere")]
    NotForGpu {
        /// Which stage.
        stage: &'static str,
        /// What was asked for.
        what: String,
    },
    /// The device was lost again and again.
    #[error("{what} failed: the device was lost {times} times")]
    SessionsLost {
        /// What it was.
        what: String,
        /// How often.
        times: usize,
    },
    /// A thread of the writer panicked.
    #[error("writing panicked: {0}; please report this")]
    Panicked(String),
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}

impl From<SinkError> for ArrayError {
    fn from(error: SinkError) -> Self {
        Self::Sink(Arc::new(error))
    }
}

impl From<StoreError> for ArrayError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}
