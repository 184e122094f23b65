//! Scores of image files: pairs of files in, rows of scores out, every device busy.
//!
//! A pair is an item of a pipeline: its distorted image is loaded after its reference, then fans out into one task for each
//! metric. So the next images are decoded while others are scored, neither takes a core from the other behind the
//! scheduler's back, and pixels are promised bytes like any others.

mod draw;
mod load;
mod pair;
mod references;
mod stream;
mod sweep;

pub use crate::stop::StopSign;
pub use draw::{Detail, Drawn, Pictures};
pub use load::{LoadError, Loaded};
pub use pair::{FileFacts, MetricError, MetricScore, Pair, PairError, PairScores, Scored};
pub use stream::ScoreStream;
pub use sweep::{Sweep, SweepOptions};
