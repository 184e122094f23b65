//! A readback on a GPU: a buffer of its own that the device copies into, and the submission that does.
//! Never waits for later work: the copy lies in the queue before it.
//! Invariant: one that is dropped before it was collected counts as unreclaimed, because the device may still write it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use plimsoll_core::Fault;
use wgpu::BufferUsages;

use crate::completion::Completion;
use crate::generation::Generation;
use crate::staging::take;

/// The submission that copies; set when it is submitted.
pub(crate) type CopiedBy = Arc<OnceLock<Arc<Completion>>>;

#[derive(Debug)]
pub(crate) struct GpuReadback {
    pub(crate) raw: wgpu::Buffer,
    pub(crate) copied_by: CopiedBy,
    pub(crate) unreclaimed: Arc<AtomicU64>,
    pub(crate) collected: bool,
}

impl GpuReadback {
    /// How its buffer is used.
    pub(crate) const USAGE: BufferUsages = BufferUsages::MAP_READ.union(BufferUsages::COPY_DST);

    /// Copies out what came.
    pub(crate) fn collect(mut self, generation: &Generation, into: &mut [u8]) -> Result<(), Fault> {
        let copied_by = self.copied_by.get().ok_or_else(|| Fault::work("the readback was never submitted"))?;
        take(generation, &self.raw, copied_by.submission.clone(), into)?;
        self.collected = true;
        Ok(())
    }
}

impl Drop for GpuReadback {
    fn drop(&mut self) {
        if !self.collected {
            self.unreclaimed.fetch_add(self.raw.size(), Relaxed);
        }
    }
}
