//! Bytes out of a device's buffers for any thread, through one staging buffer that all of them share.
//! Never needs a slot: while slots are open the staging buffer is theirs to keep, otherwise it lasts as long as the fetch.
//! Invariant: a life of a device has at most one, and it is charged as long as it is there.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::Fault;
use plimsoll_runtime::gauge::Charge;

use crate::backend::{Home, out_of_memory};
use crate::generation::Generation;
use crate::staging::Download;

/// The staging buffer of one life.
#[derive(Debug)]
pub(crate) struct Fetcher {
    download: Mutex<Download>,
    _charge: Charge,
}

impl Fetcher {
    /// This life's, made now if there is none.
    pub(crate) fn of(generation: &Generation, home: impl FnOnce() -> Home) -> Result<Arc<Self>, Fault> {
        let mut present = generation.fetcher.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fetcher) = present.upgrade() {
            return Ok(fetcher);
        }
        let fetcher = Arc::new(Self::new(generation, &home())?);
        *present = Arc::downgrade(&fetcher);
        Ok(fetcher)
    }

    fn new(generation: &Generation, home: &Home) -> Result<Self, Fault> {
        let bytes = home.sizes.fetch();
        let charge = Charge::new(bytes, home.ceiling, &home.gauge, &Arc::default());
        let charge = charge.ok_or_else(|| out_of_memory(bytes))?;
        Ok(Self { download: Mutex::new(Download::new(generation, bytes.0)?), _charge: charge })
    }

    /// Copies bytes out, in pieces, after all that was handed over before.
    pub(crate) fn fetch(
        &self,
        generation: &Generation,
        source: &wgpu::Buffer,
        mut offset: u64,
        into: &mut [u8],
    ) -> Result<(), Fault> {
        let download = self.download.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in into.chunks_mut(download.size as usize) {
            let mut encoder = generation.encoder()?;
            encoder.copy_buffer_to_buffer(source, offset, &download.buffer, 0, piece.len() as u64);
            let completion = generation.submit(encoder)?;
            download.take(generation, completion.submission, piece)?;
            generation.health.check()?;
            offset += piece.len() as u64;
        }
        Ok(())
    }
}
