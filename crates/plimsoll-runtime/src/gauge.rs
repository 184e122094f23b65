//! Exact counts of the bytes we allocated ourselves.
//! Never asks a driver: what other programs hold is in [`crate::MemoryReading`].
//! Invariant: a [`Charge`] is added once and taken off once, when dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use plimsoll_core::Bytes;

/// Bytes held now, and the most that were held at once. A statistic: it guards no other memory, so relaxed order does.
#[derive(Debug, Default)]
pub struct Gauge {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Gauge {
    /// Bytes held now.
    pub fn now(&self) -> Bytes {
        Bytes(self.now.load(Relaxed))
    }

    /// The most bytes held at once since the last [`Gauge::reset_peak`].
    pub fn peak(&self) -> Bytes {
        Bytes(self.peak.load(Relaxed))
    }

    /// Starts a new peak from what is held now.
    pub fn reset_peak(&self) {
        self.peak.store(self.now.load(Relaxed), Relaxed);
    }

    /// Adds bytes if the sum stays within `limit`; says whether it did.
    pub fn try_add(&self, bytes: Bytes, limit: Bytes) -> bool {
        let added = self.now.fetch_update(Relaxed, Relaxed, |now| {
            let sum = now.checked_add(bytes.0)?;
            (sum <= limit.0).then_some(sum)
        });
        if let Ok(before) = added {
            self.peak.fetch_max(before + bytes.0, Relaxed);
        }
        added.is_ok()
    }

    fn take_off(&self, bytes: Bytes) {
        self.now.fetch_sub(bytes.0, Relaxed);
    }
}

/// Bytes counted on a device's gauge and on the gauge of whoever they were allocated for, until dropped.
#[derive(Debug)]
pub struct Charge {
    bytes: Bytes,
    device: Arc<Gauge>,
    scope: Arc<Gauge>,
}

impl Charge {
    /// Charges both gauges, or neither if the device's would go past `limit`.
    pub fn new(bytes: Bytes, limit: Bytes, device: &Arc<Gauge>, scope: &Arc<Gauge>) -> Option<Self> {
        if !device.try_add(bytes, limit) {
            return None;
        }
        scope.try_add(bytes, Bytes::MAX);
        Some(Self { bytes, device: Arc::clone(device), scope: Arc::clone(scope) })
    }

    /// From now on they count for somebody else.
    pub(crate) fn move_to(&mut self, scope: &Arc<Gauge>) {
        scope.try_add(self.bytes, Bytes::MAX);
        self.scope.take_off(self.bytes);
        self.scope = Arc::clone(scope);
    }

    /// The bytes charged.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.device.take_off(self.bytes);
        self.scope.take_off(self.bytes);
    }
}
