//! Chunks of one object, cut out of slabs and packed.
//! Invariant: a packed chunk depends on its elements and the layout alone, never on what its session packed before.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_blocks::pool::{Pool, PooledBytes};
use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use super::{Form, Slab};
use crate::codec::{ChunkCodec, Codec, Scratch};
use crate::layout::Layout;

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
    /// How slabs come: what is left to do, and so what it costs, differs.
    form: Form,
}

impl EncodeWork {
    /// For arrays of this layout.
    pub fn new(layout: &Arc<Layout>, pool: &Pool) -> Self {
        Self { layout: Arc::clone(layout), codec: layout.chunk_codec(), pool: pool.clone(), form: Form::Steps }
    }

    /// For slabs of which most come in this form. All are packed; what it costs is learnt for this one.
    pub fn of_slabs(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// Bytes that a session keeps from batch to batch.
    pub fn session_bytes(&self) -> u64 {
        3 * self.codec.chunk_bytes() as u64 + self.codec.context_bytes()
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
        let names = match self.codec.codec() {
            Codec::None => ["array-plain", "array-plain-cut", "array-plain-cut"],
            Codec::Zstd { .. } => ["array-zstd", "array-zstd-cut", "array-zstd-cut"],
            Codec::Gzip { .. } => ["array-gzip", "array-gzip-cut", "array-gzip-cut"],
            Codec::Blosc { .. } => ["array-blosc", "array-blosc-cut", "array-blosc-shuffled"],
        };
        match self.form {
            Form::Steps => names[0],
            Form::Chunks { is_shuffled: false } => names[1],
            Form::Chunks { is_shuffled: true } => names[2],
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
            filled: Vec::new(),
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
    /// What a shuffled chunk of nothing but the fill value is; empty before it was asked for.
    filled: Vec<u8>,
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
        let raw = elements * grid.element_bytes() as u64;
        if let Some((chunk, is_shuffled)) = batch.slabs.iter().find_map(|slab| slab.chunk(grid, &start)) {
            return self.pack_cut(batch.level, chunk, is_shuffled, out).map(|()| raw);
        }
        // What is not packed is cut where it is to lie.
        let is_plain = self.codec.codec() == Codec::None && layout.order().is_own();
        let mut own = std::mem::take(&mut self.chunk);
        let begin = if is_plain { out.len() } else { 0 };
        let into = if is_plain { &mut *out } else { &mut own };
        into.truncate(begin);
        if !batch.slabs.iter().any(|slab| slab.append_chunk(into, grid, &start)) {
            into.resize(begin + self.codec.chunk_bytes(), 0);
            let chunk = &mut into[begin..];
            if elements as usize * grid.element_bytes() < chunk.len() {
                layout.fill().fill(chunk);
            }
            for slab in batch.slabs.iter() {
                slab.copy_into(chunk, grid, &start, &extent);
            }
        }
        let chunk = &into[begin..];
        let is_filled = layout.fill().is_all(chunk);
        let packed = match (is_filled, is_plain) {
            (true, true) => {
                out.truncate(begin);
                Ok(())
            }
            (false, false) => self.pack(batch.level, &own, out),
            _ => Ok(()),
        };
        self.chunk = own;
        packed.map(|()| raw)
    }

    /// Appends a chunk that was cut out, and perhaps shuffled, before.
    fn pack_cut(&mut self, level: usize, chunk: &[u8], is_shuffled: bool, out: &mut Vec<u8>) -> Result<(), Fault> {
        if !is_shuffled {
            return if self.layout.fill().is_all(chunk) { Ok(()) } else { self.pack(level, chunk, out) };
        }
        if self.filled.is_empty() {
            self.filled = shuffled_fill(&self.layout, &self.codec);
        }
        if self.filled == chunk {
            return Ok(());
        }
        self.codec.encode_shuffled(chunk, &mut self.scratch, out).map_err(Fault::work)
    }

    fn pack(&mut self, level: usize, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let (grid, order) = (&self.layout.levels()[level].grid, self.layout.order());
        let stored = if order.is_own() {
            chunk
        } else {
            self.stored.clear();
            order.store(chunk, &grid.chunk, grid.element_bytes(), &mut self.stored);
            &self.stored
        };
        self.codec.encode(stored, &mut self.scratch, out).map_err(Fault::work)
    }
}

/// A chunk of nothing but the fill value, shuffled as the codec wants it.
fn shuffled_fill(layout: &Layout, codec: &ChunkCodec) -> Vec<u8> {
    let mut chunk = vec![0; codec.chunk_bytes()];
    layout.fill().fill(&mut chunk);
    let mut shuffled = chunk.clone();
    let block = codec.shuffle().map_or(chunk.len(), |(_, block)| block);
    for (from, to) in chunk.chunks(block).zip(shuffled.chunks_mut(block)) {
        if let Some(step) = codec.shuffle_step(from.len()) {
            step.apply_to(from, to);
        }
    }
    shuffled
}

/// Elements of a chunk that lie in the array along all dimensions but the first.
fn inner_extent(shape: &[u64], chunk: &[u64], start: &[u64]) -> Vec<u64> {
    let along = shape.iter().zip(chunk).zip(start);
    along.map(|((size, chunk), start)| size.saturating_sub(*start).min(*chunk)).collect()
}
