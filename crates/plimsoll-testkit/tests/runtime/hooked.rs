//! A pretended device some of whose calls do what a test says first, and a door to hold them up.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Backend, Buffer, Device, DeviceFacts, MemoryReading};
use plimsoll_testkit::virtual_device::VirtualDevice;

#[derive(Default)]
struct Passing {
    closed: bool,
    /// Who stands before it now.
    held: usize,
    /// Who went through so far.
    passed: u64,
}

/// A door that can be closed and opened again. Who comes while it is closed waits.
#[derive(Clone, Default)]
pub(crate) struct Door(Arc<(Mutex<Passing>, Condvar)>);

impl Door {
    fn state(&self) -> MutexGuard<'_, Passing> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes it until the guard goes, so that nothing hangs on when a test fails.
    #[must_use]
    pub(crate) fn close(&self) -> Closed {
        self.state().closed = true;
        Closed(self.clone())
    }

    pub(crate) fn pass(&self) {
        let mut state = self.state();
        state.held += 1;
        while state.closed {
            state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.held -= 1;
        state.passed += 1;
    }

    pub(crate) fn held(&self) -> usize {
        self.state().held
    }

    pub(crate) fn passed(&self) -> u64 {
        self.state().passed
    }
}

/// Keeps a door closed.
pub(crate) struct Closed(Door);

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.state().closed = false;
        self.0.0.1.notify_all();
    }
}

type Read = Box<dyn Fn(MemoryReading) -> MemoryReading + Send + Sync>;
type Open = Box<dyn Fn() -> Result<(), Fault> + Send + Sync>;

/// The device.
pub(crate) struct Hooked {
    pub(crate) inner: Arc<VirtualDevice>,
    on_memory: Read,
    on_open: Open,
}

impl Hooked {
    pub(crate) fn new(inner: Arc<VirtualDevice>) -> Self {
        Self { inner, on_memory: Box::new(|reading| reading), on_open: Box::new(|| Ok(())) }
    }

    /// Its memory is read, and then this is done with the reading.
    pub(crate) fn on_memory(mut self, act: impl Fn(MemoryReading) -> MemoryReading + Send + Sync + 'static) -> Self {
        self.on_memory = Box::new(act);
        self
    }

    /// Done before a backend is opened.
    pub(crate) fn on_open(mut self, act: impl Fn() -> Result<(), Fault> + Send + Sync + 'static) -> Self {
        self.on_open = Box::new(act);
        self
    }

    /// As an orchestrator takes it.
    pub(crate) fn device(self) -> Arc<dyn Device> {
        Arc::new(self)
    }
}

impl Device for Hooked {
    fn facts(&self) -> &DeviceFacts {
        self.inner.facts()
    }

    fn memory(&self) -> MemoryReading {
        (self.on_memory)(self.inner.memory())
    }

    fn width_first(&self) -> Option<usize> {
        self.inner.width_first()
    }

    fn open_backend(&self) -> Result<Box<dyn Backend>, Fault> {
        (self.on_open)()?;
        self.inner.open_backend()
    }

    fn fetch(&self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        self.inner.fetch(buffer, offset, into)
    }

    fn reopen(&self) -> Result<(), Fault> {
        self.inner.reopen()
    }
}
