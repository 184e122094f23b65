//! What a writer will need, told before anything is allocated: of the host's memory. What levels take on a GPU is that
//! device's own, and its rungs step down where it does not fit.

use std::sync::Arc;

use plimsoll_arrays::sink::Sink;
use plimsoll_arrays::work::EncodeWork;
use plimsoll_arrays::{Layout, LevelLayout};
use plimsoll_blocks::pool::Pool;
use plimsoll_core::{Bytes, DeviceKind};
use plimsoll_runtime::Orchestrator;

use super::error::ArrayError;
use super::{engine, rows, slabs};

/// The host memory of a writer, and what it is for. Buffers on a GPU are not counted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrayPlan {
    /// Steps along the first dimension that are handled together.
    pub slab_steps: u64,
    /// Bytes of those.
    pub slab: Bytes,
    /// How many slabs of the full resolution there are at once.
    pub slab_count: usize,
    /// Slabs of all levels that are read, made or waiting for their row of chunks to be whole.
    pub slabs: Bytes,
    /// Chunks that are being packed, and packed ones that wait for the store.
    pub chunks: Bytes,
    /// What the codecs keep.
    pub codecs: Bytes,
    /// What the store holds of objects that are being written.
    pub store: Bytes,
    /// The least that it is done in, however fast the store is.
    pub least: Bytes,
}

impl ArrayPlan {
    /// Everything together.
    pub fn memory(&self) -> Bytes {
        self.slabs + self.chunks + self.codecs + self.store
    }

    /// What writing an array of this layout takes on the devices of an orchestrator.
    pub fn new(orchestrator: &Orchestrator, layout: &Arc<Layout>) -> Self {
        let base = &layout.levels()[0];
        let slab_steps = slabs::steps(layout);
        let slab = slab_steps * base.grid.step_bytes();
        // One being filled, one read ahead, those made levels of, one in front of the chunks being packed, each as much as
        // a shard; and as many as a row of chunks needs.
        let in_row = |level: &LevelLayout| level.grid.chunk[0].saturating_mul(level.factor[0]).div_ceil(slab_steps);
        let made = engine::slabs_max(orchestrator) as u64;
        let slab_count = (3 + made) * slabs::in_shard(layout) + in_row(base);
        // Those that wait in front have no levels yet: only those made levels of, cut or being packed.
        let packed =
            3 * engine::batches_max(orchestrator) * rows::chunks_in_batch(&base.grid) * base.grid.chunk_bytes();
        let with_levels = slab_count.min(3 + made + in_row(base) + (packed as u64).div_ceil(slab.max(1)));
        let coarser = |level: &LevelLayout| {
            let steps = slab_steps.div_ceil(level.factor[0]);
            with_levels.max(in_row(level) + 1) * steps * level.grid.step_bytes()
        };
        let levels: u64 = layout.levels().iter().skip(1).map(coarser).sum();
        // One being filled, and one in front of the chunks being packed.
        let least = slab.saturating_mul(2 + in_row(base));
        let encode = EncodeWork::new(layout, &Pool::default());
        let batches = (engine::batches_max(orchestrator) * 2 + engine::WRITTEN_AHEAD) as u64;
        let batch = encode.encoded_bytes_max(rows::chunks_in_batch(&base.grid)) as u64;
        let sessions = engine::slots(orchestrator) as u64;
        Self {
            slab_steps,
            slab: Bytes(slab),
            slab_count: slab_count as usize,
            slabs: Bytes(slab_count * slab + levels),
            chunks: Bytes(batches * batch),
            codecs: Bytes(sessions * encode.session_bytes()),
            store: Bytes::ZERO,
            least: Bytes(least),
        }
    }

    /// An error if not even the least of it fits below the line of the host: it would end in the middle of a stream, by the
    /// system's hand.
    pub(super) fn check(&self, orchestrator: &Orchestrator) -> Result<(), ArrayError> {
        let reports = orchestrator.reports();
        let cpus = orchestrator.devices().filter(|(_, facts)| facts.kind == DeviceKind::Cpu);
        let lines = cpus.filter_map(|(id, _)| reports.iter().find(|report| report.device == id));
        match lines.map(|report| report.line).max() {
            Some(line) if self.least > line => Err(ArrayError::NeverFits { least: self.least, line }),
            _ => Ok(()),
        }
    }

    /// The same with what a store holds itself.
    pub fn with_store(self, layout: &Layout, sink: &dyn Sink) -> Self {
        // Objects that lie beside each other are written at once, at every level.
        let beside = |level: &LevelLayout| {
            let sides = level.grid.shape[1..].iter().zip(&level.grid.object()[1..]);
            let objects: u64 = sides.map(|(size, object)| size.div_ceil(*object)).product();
            if level.grid.shard.is_some() { objects } else { 1 }
        };
        let objects: u64 = layout.levels().iter().map(beside).sum();
        Self { store: Bytes(sink.buffer_bytes(objects as usize)), ..self }
    }
}
