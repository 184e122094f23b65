//! What there is to know of a metric before using it.

use std::ops::RangeInclusive;

/// Which way a score is better.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Better {
    /// A higher score is closer to the reference.
    Higher,
    /// A lower score is closer to the reference.
    Lower,
}

/// What there is to know of a metric.
#[derive(Clone, Debug)]
pub struct About {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    /// Scores it can give. A score outside is taken for a device's mistake.
    pub range: RangeInclusive<f64>,
    /// The score of an image that equals its reference.
    pub perfect: f64,
    /// Which way is better.
    pub better: Better,
    /// How far apart its rungs may be: two scores `a` and `b` of one pair differ by at most
    /// `tolerance * max(1, |a|, |b|)`.
    pub tolerance: f64,
    /// Pixels that each side needs; smaller images are extended by repeating their last row and column.
    pub side_min: u32,
    /// Pixels that each side needs for all that it looks at: smaller images are seen on fewer scales, or filled up.
    pub side_full: u32,
    /// Where its CPU rung comes from, and the licence of that code.
    pub source: &'static str,
    /// The rungs it has, best first.
    pub rungs: &'static [&'static str],
}
