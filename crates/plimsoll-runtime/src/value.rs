//! Values: outputs that stay on the device where they were made, and the handles that name them to later tasks.
//! Never moves one by a workload's hand: a task that reads a value elsewhere finds a copy of it at hand.
//! Invariant: a handle is either spent on a task or gives its claim up when it is dropped, never both.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use plimsoll_core::{Bytes, DeviceId, Fault, TaskId, ValueId};

use crate::backend::{Backend, Buffer};
use crate::device::Device;
use crate::gauge::Gauge;
use crate::shared::Shared;

/// Bytes that are copied from one device to another at a time: what lies in between in host memory.
const PIECE: usize = 1 << 20;

/// An output that stays where it was made: the claim to read it, also before it is made
/// ([`Orchestrator::submit_for_value`](crate::Orchestrator::submit_for_value)). It keeps its bytes until the last task that
/// takes it has ended and every claim was given up. If its device is lost, it is made again for whoever reads it.
#[derive(Debug)]
pub struct Value {
    id: ValueId,
    shared: Weak<Shared>,
    /// A task has it now.
    spent: AtomicBool,
}

impl Value {
    /// Its name.
    pub fn id(&self) -> ValueId {
        self.id
    }

    /// The claim that came with the submission of this task.
    pub(crate) fn claimed(task: TaskId, shared: &Arc<Shared>) -> Self {
        Self { id: ValueId::of(task), shared: Arc::downgrade(shared), spent: AtomicBool::new(false) }
    }

    fn claim(id: ValueId, shared: &Arc<Shared>) -> Self {
        let mut state = shared.lock();
        state.scheduler.share_value(id);
        shared.release(state);
        Self { id, shared: Arc::downgrade(shared), spent: AtomicBool::new(false) }
    }

    /// Another claim to the same value, for another task to take.
    #[must_use]
    pub fn share(&self) -> Self {
        match self.shared.upgrade() {
            Some(shared) => Self::claim(self.id, &shared),
            None => Self { id: self.id, shared: Weak::clone(&self.shared), spent: AtomicBool::new(false) },
        }
    }

    /// A task that takes it was taken in: the scheduler counts that task from now on.
    pub(crate) fn spend(&self) {
        self.spent.store(true, Ordering::Relaxed);
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        if self.spent.load(Ordering::Relaxed) {
            return;
        }
        if let Some(shared) = self.shared.upgrade() {
            let mut state = shared.lock();
            let now = shared.now();
            state.scheduler.drop_value(now, self.id);
            shared.release(state);
        }
    }
}

/// The buffers of a value, on their device.
#[derive(Clone, Debug)]
pub(crate) struct KeptBuffers(pub(crate) Arc<Vec<Buffer>>);

/// What a run has at hand of values: those it takes, and the one that it may keep.
pub(crate) struct AtHand<'a> {
    pub(crate) taken: &'a [KeptBuffers],
    pub(crate) kept: Option<KeptBuffers>,
    /// What it is called.
    pub(crate) value: ValueId,
    pub(crate) shared: &'a Arc<Shared>,
}

impl AtHand<'_> {
    /// Keeps buffers as the value of this run.
    pub(crate) fn keep(&mut self, mut buffers: Vec<Buffer>) -> Result<Value, Fault> {
        if self.kept.is_some() {
            return Err(Fault::work("a task keeps one value; keep all its buffers at once"));
        }
        let gauge = Arc::new(Gauge::default());
        buffers.iter_mut().for_each(|buffer| buffer.charge_to(&gauge));
        self.kept = Some(KeptBuffers(Arc::new(buffers)));
        Ok(Value::claim(self.value, self.shared))
    }
}

/// Copies a value to the device of a backend. That its own device is gone is not the fault of this one.
pub(crate) fn copy(
    source: &dyn Device,
    from: DeviceId,
    value: &KeptBuffers,
    backend: &mut dyn Backend,
) -> Result<KeptBuffers, Fault> {
    let mut copies = Vec::with_capacity(value.0.len());
    let mut piece = Vec::new();
    for buffer in value.0.iter() {
        let copy = backend.allocate(buffer.bytes())?;
        let total = buffer.bytes().0 as usize;
        for offset in (0..total).step_by(PIECE) {
            piece.resize(PIECE.min(total - offset), 0);
            let offset = Bytes(offset as u64);
            source.fetch(buffer, offset, &mut piece).map_err(|fault| of_source(from, fault))?;
            backend.write(&copy, offset, &piece)?;
        }
        copies.push(copy);
    }
    Ok(KeptBuffers(Arc::new(copies)))
}

fn of_source(device: DeviceId, fault: Fault) -> Fault {
    match fault {
        Fault::DeviceLost { .. } | Fault::Stalled { .. } | Fault::WrongAnswer { .. } => {
            Fault::SourceLost { device, detail: fault.to_string() }
        }
        other => other,
    }
}
