//! What an earlier run has already scored, and what of it still holds.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use plimsoll::image::decode;
use plimsoll::image::metrics::Metric;
use plimsoll::score::Pair;
use plimsoll_results::rows::{Row, RowFile, RowsError};
use twox_hash::XxHash3_64;

use super::columns::{Columns, hash_text};

/// Metrics that are missing, and the pairs that lack them, each with its number.
pub(super) type MetricsAndPairs = (Vec<Metric>, Vec<(usize, Pair)>);

/// What is left to do.
#[derive(Default)]
pub(super) struct Left {
    /// The pairs to be scored with each set of metrics, each with its place among all.
    pub(super) sweeps: Vec<MetricsAndPairs>,
    /// Rows that still hold and lack some metrics, by their pair's place.
    pub(super) partial: HashMap<usize, Row>,
    /// Rows that need nothing more.
    pub(super) kept: Vec<(usize, Pair, Row)>,
}

impl Left {
    /// Everything.
    pub(super) fn all(pairs: Vec<Pair>, columns: &Columns) -> Self {
        let sweeps = vec![(columns.metrics().to_vec(), pairs.into_iter().enumerate().collect())];
        Self { sweeps, ..Self::default() }
    }

    /// The pairs without a row that was computed from these very files by this very program, and those whose row lacks a
    /// metric.
    pub(super) fn of(pairs: Vec<Pair>, file: &RowFile, columns: &Columns) -> Result<Self, RowsError> {
        let (mut hashes, mut left) = (Hashes::default(), Self::default());
        let mut sweeps: BTreeMap<Vec<Metric>, Vec<(usize, Pair)>> = BTreeMap::new();
        for (at, pair) in pairs.into_iter().enumerate() {
            let row = match file.schema().key_of(columns.key(&pair)) {
                Some(key) => file.good_row(key)?,
                None => None,
            };
            let known = [&pair.reference, &pair.distorted].map(|path| hashes.of(path));
            let row = match row {
                Some(row) if columns.is_current(&row, &known) => row,
                _ => {
                    sweeps.entry(columns.metrics().to_vec()).or_default().push((at, pair));
                    continue;
                }
            };
            let missing = columns.missing(&row);
            if missing.is_empty() {
                left.kept.push((at, pair, row));
            } else {
                left.partial.insert(at, row);
                sweeps.entry(missing).or_default().push((at, pair));
            }
        }
        left.sweeps = sweeps.into_iter().collect();
        Ok(left)
    }

    /// How many pairs are still to be scored.
    pub(super) fn count(&self) -> usize {
        self.sweeps.iter().map(|(_, pairs)| pairs.len()).sum()
    }
}

/// The content hashes of files, each read once.
#[derive(Default)]
struct Hashes(HashMap<PathBuf, Option<String>>);

impl Hashes {
    fn of(&mut self, path: &Path) -> Option<String> {
        let known = self.0.entry(path.to_owned());
        known.or_insert_with(|| decode::read(path).ok().map(|bytes| hash_text(XxHash3_64::oneshot(&bytes)))).clone()
    }
}
