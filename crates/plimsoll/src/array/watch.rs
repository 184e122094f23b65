//! How far it is, for another thread to show; and the sign to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stop::StopSign;

/// Follows an array while it is written; a handle that is cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ArrayWatch {
    counts: Arc<Counts>,
    sign: StopSign,
}

#[derive(Debug, Default)]
struct Counts {
    taken: AtomicU64,
    prepared: AtomicU64,
    packed: AtomicU64,
    whole: AtomicU64,
    stored: AtomicU64,
}

/// How far a writer is, in bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrayProgress {
    /// Taken in.
    pub taken: u64,
    /// Of the full resolution, through what is done before packing: levels made, and cut or shuffled if a GPU does so.
    pub prepared: u64,
    /// Of the full resolution, packed; as they were before.
    pub packed: u64,
    /// Of the full resolution, handed to the store as they were before packing.
    pub written: u64,
    /// Handed to the store, packed, of all levels.
    pub stored: u64,
}

impl ArrayWatch {
    /// One that ends the work when the sign is raised.
    pub fn stopped_by(sign: &StopSign) -> Self {
        Self { counts: Arc::default(), sign: sign.clone() }
    }

    /// How far it is.
    pub fn progress(&self) -> ArrayProgress {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { taken, prepared, packed, whole, stored } = &*self.counts;
        let (taken, prepared, packed) = (of(taken), of(prepared), of(packed));
        ArrayProgress { taken, prepared, packed, written: of(whole), stored: of(stored) }
    }

    pub(super) fn take(&self, bytes: u64) {
        self.counts.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn prepare(&self, bytes: u64) {
        self.counts.prepared.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn pack(&self, raw: u64, level: usize) {
        if level == 0 {
            self.counts.packed.fetch_add(raw, Ordering::Relaxed);
        }
    }

    pub(super) fn add(&self, raw: u64, stored: u64, level: usize) {
        if level == 0 {
            self.counts.whole.fetch_add(raw, Ordering::Relaxed);
        }
        self.counts.stored.fetch_add(stored, Ordering::Relaxed);
    }

    pub(super) fn sign(&self) -> &StopSign {
        &self.sign
    }
}
