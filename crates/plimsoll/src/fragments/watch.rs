//! How far it is, for another thread to show; and the sign to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stop::StopSign;

/// Follows packing or restoring; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct FragmentsWatch {
    done: Arc<AtomicU64>,
    sign: StopSign,
}

impl FragmentsWatch {
    /// One that ends the work when the sign is raised.
    pub fn stopped_by(sign: &StopSign) -> Self {
        Self { done: Arc::default(), sign: sign.clone() }
    }

    /// Bytes of tensors that are done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.sign.is_raised()
    }
}
