//! A pair of files, and what came of it.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_core::Bytes;
use plimsoll_core::scheduler::Report;
use plimsoll_image::metrics::{HeatMap, Metric, Score, SizesDifferError};
use plimsoll_runtime::RunError;

use super::draw::Drawn;
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
    /// The distorted image's file. Its pixels are gone by now.
    pub distorted: FileFacts,
    /// A score for each metric, in the order in which they were asked for, or why there is none: a metric that fails costs
    /// the others nothing.
    pub scores: Vec<Result<MetricScore, MetricError>>,
    /// Small pictures, if they were asked for.
    pub drawn: Option<Drawn>,
    /// Where every pixel differs, or why that is not known; if it was asked for.
    pub heat_map: Option<Result<HeatMap, RunError>>,
}

impl PairScores {
    /// The scores that there are.
    pub fn good(&self) -> impl Iterator<Item = &MetricScore> {
        self.scores.iter().flatten()
    }

    /// Why some are missing, as one text.
    pub fn failures(&self) -> Option<String> {
        let failures: Vec<String> =
            self.scores.iter().filter_map(|score| Some(score.as_ref().err()?.to_string())).collect();
        (!failures.is_empty()).then(|| failures.join("; "))
    }
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
    /// Where, how and how long; and why there, if that was asked for.
    pub report: Report,
}

/// A metric that could not be computed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{metric}: {}", failure.error)]
pub struct MetricError {
    /// Which.
    pub metric: Metric,
    /// Why.
    pub failure: RunError,
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
    Sizes(#[from] SizesDifferError),
    /// The images and what decoding them takes are more than the line.
    #[error(
        "both images and what decoding takes need {needed}, the line of the CPU is at {line}; raise the memory limit to \
         {needed} and what the metrics need, or crop the images"
    )]
    DoesNotFit {
        /// What they need.
        needed: Bytes,
        /// What there is.
        line: Bytes,
    },
    /// A file was not loaded: there is no memory for it, or the orchestrator takes no more work.
    #[error("not loaded: {}", .0.error)]
    NotLoaded(Arc<RunError>),
}
