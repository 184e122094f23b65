//! How far it is, for another thread to show; and the sign to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stop::StopSign;

/// Follows one file while it is packed or unpacked; a handle that is cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct PackWatch {
    counts: Arc<Counts>,
    sign: StopSign,
}

#[derive(Debug, Default)]
struct Counts {
    raw: AtomicU64,
    packed: AtomicU64,
}

impl PackWatch {
    /// One that ends the work when the sign is raised.
    pub fn stopped_by(sign: &StopSign) -> Self {
        Self { counts: Arc::default(), sign: sign.clone() }
    }

    /// Bytes done so far: not packed, and packed.
    pub fn done(&self) -> (u64, u64) {
        (self.counts.raw.load(Ordering::Relaxed), self.counts.packed.load(Ordering::Relaxed))
    }

    pub(super) fn add(&self, raw: u64, packed: u64) {
        self.counts.raw.fetch_add(raw, Ordering::Relaxed);
        self.counts.packed.fetch_add(packed, Ordering::Relaxed);
    }

    pub(super) fn sign(&self) -> &StopSign {
        &self.sign
    }
}
