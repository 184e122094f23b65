//! Freed buffers of a device whose memory is the host's, to be written again where they lie. Forty levels of 0.8 MB come to a
//! software GPU's new buffers at 2.8 GB/s, because wgpu and the system clear every page first, and to these at 9.
//! Never keeps a buffer that recorded work names, and never waits for one that the device still uses.
//! Invariant: what lies here is at most what is charged for it, which is a part of the device's overhead.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::gauge::Charge;

use crate::backend::{Home, out_of_memory};
use crate::generation::Generation;
use crate::staging::map_idle;

/// Buffers kept at most: a longer list would take longer to look through than a small buffer to make.
pub(crate) const KEPT_MAX: usize = 256;

/// Those of one life of a device.
#[derive(Debug)]
pub(crate) struct Spares {
    kept: Mutex<Kept>,
    limit: Bytes,
    _charge: Charge,
}

/// The one that was freed first is in front.
#[derive(Debug, Default)]
struct Kept {
    buffers: VecDeque<wgpu::Buffer>,
    bytes: Bytes,
}

impl Kept {
    fn remove(&mut self, at: usize) -> Option<wgpu::Buffer> {
        let buffer = self.buffers.remove(at)?;
        self.bytes -= Bytes(buffer.size());
        Some(buffer)
    }
}

impl Spares {
    /// This life's, with room for as much as its home has for them.
    pub(crate) fn of(generation: &Generation, home: impl FnOnce() -> Home) -> Result<Arc<Self>, Fault> {
        let mut present = generation.spares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(spares) = present.upgrade() {
            return Ok(spares);
        }
        let home = home();
        let limit = home.sizes.spares();
        let charge = Charge::new(limit, home.ceiling, &home.gauge, &Arc::default());
        let charge = charge.ok_or_else(|| out_of_memory(limit))?;
        let spares = Arc::new(Self { kept: Mutex::default(), limit, _charge: charge });
        *present = Arc::downgrade(&spares);
        Ok(spares)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a buffer; others go for it, the oldest first. Gives the bytes that were let go, which may be this one's.
    pub(crate) fn keep(&self, buffer: wgpu::Buffer) -> Bytes {
        let bytes = Bytes(buffer.size());
        if bytes > self.limit {
            return bytes;
        }
        let mut let_go = Vec::new();
        let mut kept = self.kept();
        while kept.bytes + bytes > self.limit || kept.buffers.len() >= KEPT_MAX {
            let_go.extend(kept.remove(0));
        }
        kept.bytes += bytes;
        kept.buffers.push_back(buffer);
        drop(kept);
        let_go.iter().map(|buffer| Bytes(buffer.size())).sum()
    }

    /// A buffer of this very size, mapped. One that the device still uses is let go.
    pub(crate) fn take(&self, generation: &Generation, bytes: Bytes) -> Result<Option<wgpu::Buffer>, Fault> {
        let mut kept = self.kept();
        // The oldest: the device is done with it, if with any.
        let at = kept.buffers.iter().position(|buffer| buffer.size() == bytes.0);
        let Some(buffer) = at.and_then(|at| kept.remove(at)) else { return Ok(None) };
        drop(kept);
        if map_idle(generation, &buffer)? {
            return Ok(Some(buffer));
        }
        generation.unreclaimed.fetch_add(bytes.0, Relaxed);
        Ok(None)
    }

    /// Lets all go: memory is short.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.kept());
        // Outside the lock.
        drop(all);
    }
}
