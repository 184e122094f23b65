//! Scores of image files: pairs of files in, rows of scores out, every device busy.
//!
//! Reading and decoding files are tasks of the same orchestrator as the scoring, so that the next images are decoded
//! while others are scored, and neither takes a core from the other behind the scheduler's back.

mod load;
mod pair;
mod references;
mod sweep;

pub use crate::stop::StopSign;
pub use load::{LoadError, Loaded};
pub use pair::{MetricScore, Pair, PairError, PairScores, Scored};
pub use sweep::{Sweep, SweepOptions};
