//! What an earlier run has already scored.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use plimsoll::image::decode;
use plimsoll::score::Pair;
use plimsoll_results::rows::{RowFile, RowsError};
use xxhash_rust::xxh3::xxh3_64;

use super::columns::{Columns, hash_text};

/// The pairs without a good row, or whose files have changed since, each with its place among all.
pub(super) fn left_to_do(pairs: Vec<Pair>, file: &RowFile, columns: &Columns) -> Result<Vec<(usize, Pair)>, RowsError> {
    let mut hashes = Hashes::default();
    let mut left = Vec::new();
    for (at, pair) in pairs.into_iter().enumerate() {
        let row = match file.schema().key_of(columns.key(&pair)) {
            Some(key) => file.good_row(key)?,
            None => None,
        };
        if row.is_none_or(|row| columns.hashes(&row) != [hashes.of(&pair.reference), hashes.of(&pair.distorted)]) {
            left.push((at, pair));
        }
    }
    Ok(left)
}

/// The content hashes of files, each read once.
#[derive(Default)]
struct Hashes(HashMap<PathBuf, Option<String>>);

impl Hashes {
    fn of(&mut self, path: &Path) -> Option<String> {
        let known = self.0.entry(path.to_owned());
        known.or_insert_with(|| decode::read(path).ok().map(|bytes| hash_text(xxh3_64(&bytes)))).clone()
    }
}
