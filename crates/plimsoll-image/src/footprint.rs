//! What a metric holds on a device, found by letting it do its work on a device that only counts.
//! Never computes anything: the bytes come from the very code that will allocate them, so they cannot drift from it.
//! Invariant: what is counted here is what every backend charges (`tests/metrics/footprints.rs`).

use std::sync::Arc;

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::gauge::{Charge, Gauge};
use plimsoll_runtime::{Backend, Buffer, Launch};

/// A device that gives memory without end and does nothing with it.
#[derive(Default)]
pub(crate) struct CountingBackend {
    gauge: Arc<Gauge>,
}

impl CountingBackend {
    /// Bytes held now.
    pub(crate) fn held(&self) -> Bytes {
        self.gauge.now()
    }

    /// The most bytes held while `work` ran, and what it gave.
    pub(crate) fn peak_of<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (Bytes, T) {
        self.gauge.reset_peak();
        let result = work(self);
        (self.gauge.peak(), result)
    }
}

impl Backend for CountingBackend {
    fn buffer_limit(&self) -> Bytes {
        Bytes::MAX
    }

    fn allocate(&mut self, bytes: Bytes) -> Result<Buffer, Fault> {
        let charge = Charge::new(bytes, Bytes::MAX, &self.gauge, &Arc::default()).expect("there is no limit");
        Ok(Buffer::new(Box::new(()), charge))
    }

    fn poison(&mut self, _: &Buffer) -> Result<(), Fault> {
        Ok(())
    }

    fn write(&mut self, _: &Buffer, _: Bytes, _: &[u8]) -> Result<(), Fault> {
        Ok(())
    }

    fn launch(&mut self, _: &Launch<'_>) -> Result<(), Fault> {
        Ok(())
    }

    /// Every word reads as 1.0, which no computation takes amiss.
    fn read(&mut self, _: &Buffer, _: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        let one = 1.0_f32.to_ne_bytes();
        into.chunks_exact_mut(one.len()).for_each(|word| word.copy_from_slice(&one));
        Ok(())
    }

    /// There is nothing to hand over.
    fn finish(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn abandon(&mut self) {}

    fn charge_to(&mut self, scope: Arc<Gauge>) -> Arc<Gauge> {
        std::mem::replace(&mut self.gauge, scope)
    }
}
