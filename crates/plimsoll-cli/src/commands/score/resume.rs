//! What an earlier run has already scored.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use plimsoll::image::decode;
use plimsoll::score::Pair;
use plimsoll_results::rows::{Cell, RowFile};
use xxhash_rust::xxh3::xxh3_64;

use super::columns::{Columns, hash_text};

/// The pairs without a good row, or whose files have changed since, each with its place among all.
pub(super) fn left_to_do(pairs: Vec<Pair>, file: &RowFile, columns: &Columns) -> Vec<(usize, Pair)> {
    let mut hashes = Hashes::default();
    let is_left = |pair: &Pair| {
        let Some(done) = file.done(columns.key(pair)) else { return true };
        let stands = |column: &str| done.text(column).map(str::to_owned);
        stands("reference_hash") != hashes.of(&pair.reference) || stands("hash") != hashes.of(&pair.distorted)
    };
    let mut is_left = is_left;
    pairs.into_iter().enumerate().filter(|(_, pair)| is_left(pair)).collect()
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
