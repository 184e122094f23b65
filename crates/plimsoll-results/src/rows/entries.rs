//! Which row counts for each key. Knows where rows lie, never what is in them: 32 bytes a row, however long it is.
//! Invariant: the row that came last counts, a failed one too: what was found out earlier may not be true any more.

use std::collections::HashMap;

use super::journal::Place;
use super::key::Key;

/// The row that counts for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) failed: bool,
}

/// The rows that count.
#[derive(Debug, Default)]
pub(super) struct Entries {
    by_key: HashMap<Key, Entry>,
    failed: usize,
}

impl Entries {
    /// Notes a row that came later than all others.
    pub(super) fn enter(&mut self, key: Key, entry: Entry) {
        let earlier = self.by_key.insert(key, entry);
        self.failed += usize::from(entry.failed);
        self.failed -= usize::from(earlier.is_some_and(|earlier| earlier.failed));
    }

    /// Whether any row of this key is there, unless it is a failed one and this one is not.
    pub(super) fn has_as_good(&self, key: Key, failed: bool) -> bool {
        self.by_key.get(&key).is_some_and(|entry| failed || !entry.failed)
    }

    /// Whether a good row of this key is there.
    pub(super) fn is_done(&self, key: Key) -> bool {
        self.by_key.get(&key).is_some_and(|entry| !entry.failed)
    }

    /// The row that counts for a key.
    pub(super) fn find(&self, key: Key) -> Option<Entry> {
        self.by_key.get(&key).copied()
    }

    /// All of them, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, Entry)> {
        self.by_key.iter().map(|(key, entry)| (*key, *entry))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// How many of them failed.
    pub(super) fn failed(&self) -> usize {
        self.failed
    }
}
