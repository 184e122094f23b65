//! What a metric holds on a device, found by letting it do its work on a device that only counts.
//! Never computes anything: the bytes come from the very code that will allocate them, so they cannot drift from it.
//! Invariant: what is counted here is what every backend charges (`tests/metrics/footprints.rs`).

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::gauge::{Charge, Gauge};
use plimsoll_runtime::{Backend, Buffer, Fence, FenceState, Kicks, Launch, Origin, Readback, Staged};

/// A device that gives memory without end and does nothing with it.
pub(crate) struct CountingBackend {
    gauge: Arc<Gauge>,
    kicks: Kicks,
    staged: Staged,
}

impl Default for CountingBackend {
    fn default() -> Self {
        let gauge = Arc::default();
        let origin = Origin::new(&gauge, 0);
        Self { gauge, kicks: Kicks::new(origin.clone()), staged: Staged::new(origin) }
    }
}

/// Every word reads as 1.0, which no computation takes amiss.
fn fill(into: &mut [u8]) {
    let one = 1.0_f32.to_ne_bytes();
    into.chunks_exact_mut(one.len()).for_each(|word| word.copy_from_slice(&one));
}

impl CountingBackend {
    fn charge(&self, bytes: Bytes) -> Charge {
        Charge::new(bytes, Bytes::MAX, &self.gauge, &Arc::default()).expect("there is no limit")
    }

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
        Ok(Buffer::new(Box::new(()), self.charge(bytes)))
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

    fn read(&mut self, _: &Buffer, _: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        fill(into);
        self.kicks.all_drained();
        Ok(())
    }

    /// There is nothing to hand over.
    fn finish(&mut self) -> Result<(), Fault> {
        self.staged.handed_over();
        Ok(())
    }

    fn kick(&mut self) -> Result<Fence, Fault> {
        self.kicks.check_limit()?;
        self.finish()?;
        Ok(self.kicks.fence(()))
    }

    fn wait(&mut self, fence: &Fence, _: Duration) -> Result<FenceState, Fault> {
        self.kicks.work_of::<()>(fence)?;
        Ok(fence.found(FenceState::Done))
    }

    fn stage_read(&mut self, _: &Buffer, _: Bytes, bytes: Bytes) -> Result<Readback, Fault> {
        let charge = self.charge(bytes);
        Ok(self.staged.record((), charge))
    }

    fn collect(&mut self, readback: Readback, into: &mut [u8]) -> Result<(), Fault> {
        self.staged.collect::<()>(readback, into)?;
        fill(into);
        Ok(())
    }

    fn abandon(&mut self) {
        self.staged.abandoned();
    }

    fn charge_to(&mut self, scope: Arc<Gauge>) -> Arc<Gauge> {
        std::mem::replace(&mut self.gauge, scope)
    }
}
