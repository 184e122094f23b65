//! Chunks of one object, cut out of slabs and packed.
//! Invariant: a packed chunk depends on its elements and the layout alone, never on what its session packed before.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_blocks::pool::{Pool, PooledBytes};
use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use super::Slab;
use crate::codec::{ChunkCodec, Codec, Scratch};
use crate::layout::Layout;

/// What the contexts of the codecs take at the most, at their highest levels.
const CONTEXT_BYTES: u64 = 100 << 20;
/// The same of those that keep little.
const CONTEXT_BYTES_SMALL: u64 = 8 << 20;

/// Chunks of one object whose elements are all there.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The level of the object.
    pub level: usize,
    /// Its coordinates among objects.
    pub object: Vec<u64>,
    /// Which of its chunks, by their numbers in it.
    pub chunks: Range<usize>,
    /// Where their elements lie, in order.
    pub slabs: Arc<[Arc<Slab>]>,
}

impl Batch {
    /// The first step that is not there.
    fn end(&self) -> u64 {
        self.slabs.last().map_or(0, |slab| slab.end())
    }
}

/// Packed chunks, one behind the other.
#[derive(Debug)]
pub struct Encoded {
    /// Their bytes.
    pub bytes: PooledBytes,
    /// Each one's number in its object and how many bytes it has. Those that hold nothing but the fill value are not
    /// there.
    pub chunks: Vec<(usize, usize)>,
    /// Bytes before packing, as far as the array reaches.
    pub raw: u64,
}

/// Cuts chunks out of slabs, and packs them.
#[derive(Debug)]
pub struct EncodeWork {
    layout: Arc<Layout>,
    codec: ChunkCodec,
    pool: Pool,
}

impl EncodeWork {
    /// For arrays of this layout.
    pub fn new(layout: &Arc<Layout>, pool: &Pool) -> Self {
        Self { layout: Arc::clone(layout), codec: layout.chunk_codec(), pool: pool.clone() }
    }

    /// Bytes that a session keeps from batch to batch.
    pub fn session_bytes(&self) -> u64 {
        let chunk = self.codec.chunk_bytes() as u64;
        let context = match self.codec.codec() {
            Codec::None => 0,
            Codec::Zstd { level } if level > 9 => CONTEXT_BYTES,
            Codec::Zstd { .. } | Codec::Gzip { .. } | Codec::Blosc { .. } => CONTEXT_BYTES_SMALL,
        };
        3 * chunk + context
    }

    /// Bytes that so many packed chunks can have.
    pub fn encoded_bytes_max(&self, chunks: usize) -> usize {
        chunks * self.codec.encoded_bytes_max()
    }
}

impl Workload for EncodeWork {
    type Input = Batch;
    type Reference = ();
    type Prepared = ();
    type Output = Encoded;

    fn name(&self) -> &str {
        match self.codec.codec() {
            Codec::None => "array-plain",
            Codec::Zstd { .. } => "array-zstd",
            Codec::Gzip { .. } => "array-gzip",
            Codec::Blosc { .. } => "array-blosc",
        }
    }

    fn units(&self, batch: &Batch) -> u64 {
        (batch.chunks.len() * self.codec.chunk_bytes()) as u64
    }

    fn ladder(&self, batch: &Batch) -> Ladder {
        let footprint = Footprint {
            session: Bytes(self.session_bytes()),
            task: Bytes(self.encoded_bytes_max(batch.chunks.len()) as u64),
            reference: Bytes::ZERO,
        };
        Ladder::from(vec![Rung::new("cpu", Place::On(DeviceKind::Cpu), footprint)])
    }

    fn open(&self, _: &Rung, _: &Batch, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(EncodeSession {
            layout: Arc::clone(&self.layout),
            codec: self.codec,
            pool: self.pool.clone(),
            scratch: Scratch::default(),
            chunk: Vec::new(),
            stored: Vec::new(),
        }))
    }
}

struct EncodeSession {
    layout: Arc<Layout>,
    codec: ChunkCodec,
    pool: Pool,
    scratch: Scratch,
    /// A chunk as it lies in the array, and in storage order.
    chunk: Vec<u8>,
    stored: Vec<u8>,
}

impl Session<EncodeWork> for EncodeSession {
    fn run(&mut self, batch: &Batch, context: &mut Context<'_, EncodeWork>) -> Result<Encoded, Fault> {
        let mut bytes = self.pool.take(batch.chunks.len() * self.codec.encoded_bytes_max());
        let (mut chunks, mut raw) = (Vec::with_capacity(batch.chunks.len()), 0);
        for number in batch.chunks.clone() {
            context.check_cancelled()?;
            let begin = bytes.len();
            raw += self.encode(batch, number, bytes.vec_mut())?;
            if bytes.len() > begin {
                chunks.push((number, bytes.len() - begin));
            }
        }
        Ok(Encoded { bytes, chunks, raw })
    }
}

impl EncodeSession {
    /// Appends a packed chunk, unless it holds nothing; says how many bytes of the array it holds.
    fn encode(&mut self, batch: &Batch, number: usize, out: &mut Vec<u8>) -> Result<u64, Fault> {
        let layout = Arc::clone(&self.layout);
        let grid = &layout.levels()[batch.level].grid;
        let start = grid.chunk_start(&batch.object, number);
        let mut extent = inner_extent(&grid.shape, &grid.chunk, &start);
        extent[0] = batch.end().saturating_sub(start[0]).min(grid.chunk[0]);
        let elements: u64 = extent.iter().product();
        if elements == 0 {
            return Ok(0);
        }
        let chunk_bytes = self.codec.chunk_bytes();
        self.chunk.resize(chunk_bytes, 0);
        if elements as usize * grid.element_bytes() < chunk_bytes {
            layout.fill().fill(&mut self.chunk);
        }
        for slab in batch.slabs.iter() {
            slab.copy_into(&mut self.chunk, grid, &start, &extent);
        }
        if !layout.fill().is_all(&self.chunk) {
            self.pack(batch.level, out)?;
        }
        Ok(elements * grid.element_bytes() as u64)
    }

    fn pack(&mut self, level: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        let (grid, order) = (&self.layout.levels()[level].grid, self.layout.order());
        let stored = if order.is_own() {
            &self.chunk
        } else {
            self.stored.clear();
            order.store(&self.chunk, &grid.chunk, grid.element_bytes(), &mut self.stored);
            &self.stored
        };
        self.codec.encode(stored, &mut self.scratch, out).map_err(Fault::work)
    }
}

/// Elements of a chunk that lie in the array along all dimensions but the first.
fn inner_extent(shape: &[u64], chunk: &[u64], start: &[u64]) -> Vec<u64> {
    let along = shape.iter().zip(chunk).zip(start);
    along.map(|((size, chunk), start)| size.saturating_sub(*start).min(*chunk)).collect()
}
