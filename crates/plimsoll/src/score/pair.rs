//! A pair of files, and what came of it.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_core::scheduler::{Candidate, Report};
use plimsoll_image::Image;
use plimsoll_image::metrics::{HeatMap, Metric, Score, SizesDiffer};
use plimsoll_runtime::TaskFailure;

use super::load::{LoadError, Loaded};

/// A distorted image and what it is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// The file of the reference.
    pub reference: PathBuf,
    /// The file of the distorted image.
    pub distorted: PathBuf,
}

/// A pair and what came of it.
#[derive(Debug)]
pub struct Scored {
    /// Its place among the pairs, from 0.
    pub at: usize,
    /// The pair.
    pub pair: Pair,
    /// Its scores.
    pub outcome: Result<PairScores, PairError>,
}

/// The scores of a pair.
#[derive(Debug)]
pub struct PairScores {
    /// The reference's file.
    pub reference: Arc<Loaded>,
    /// The distorted image's file. Its pixels are gone by now, unless pictures were asked for.
    pub distorted: FileFacts,
    /// A score for each metric, in the order in which they were asked for.
    pub scores: Vec<MetricScore>,
    /// The distorted image, if pictures were asked for.
    pub picture: Option<Image>,
    /// Where the images differ, if pictures were asked for.
    pub heat_map: Option<HeatMap>,
}

/// What is known of a file whose pixels are no longer held.
#[derive(Clone, Debug)]
pub struct FileFacts {
    /// Bytes of the file.
    pub bytes: u64,
    /// A hash of its content.
    pub hash: u64,
    /// The crate that decoded it, and its version.
    pub decoder: &'static str,
    /// The format's name.
    pub format: String,
}

/// What one metric said.
#[derive(Debug)]
pub struct MetricScore {
    /// Which.
    pub metric: Metric,
    /// The score.
    pub score: Score,
    /// Where, how and how long.
    pub report: Report,
    /// Every rung on every device as it stood when the task was handed in, if that was asked for.
    pub why: Vec<Candidate>,
}

/// Why a pair has no scores.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// A file gave no image.
    #[error(transparent)]
    Load(Arc<LoadError>),
    /// The images are not of one size.
    #[error(transparent)]
    Sizes(#[from] SizesDiffer),
    /// A metric could not be computed.
    #[error("{metric}: {}", failure.error)]
    Metric {
        /// Which.
        metric: Metric,
        /// Why.
        failure: Arc<TaskFailure>,
    },
    /// A file was not even looked at: the orchestrator takes no more work.
    #[error("{}", .0.error)]
    NotLoaded(Arc<TaskFailure>),
}
