//! One object of a store: its index, and its chunks one after the other.
//! Invariant: no more memory is taken than the object has bytes and one chunk has.

use std::ops::Range;

use super::{FaultError, Level};
use crate::codec::Scratch;
use crate::metadata::ArrayMetadata;
use crate::shard::{ShardError, ShardIndex, index_bytes};
use crate::sink::{Sink, SinkError};

/// Bytes beyond our own bound that an encoded chunk of somebody else's may have.
const SLACK: u64 = 64 << 10;

/// An object that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredObject {
    /// The level that it belongs to.
    pub level: usize,
    /// Its key.
    pub key: String,
    /// Its bytes.
    pub bytes: u64,
}

/// Reads chunks of one level, with buffers that are used again.
pub(super) struct ChunkReader<'a> {
    sink: &'a dyn Sink,
    metadata: &'a ArrayMetadata,
    stored: Vec<u8>,
    pub(super) chunk: Vec<u8>,
}

impl<'a> ChunkReader<'a> {
    pub(super) fn new(sink: &'a dyn Sink, level: &'a Level) -> Self {
        Self { sink, metadata: &level.metadata, stored: Vec::new(), chunk: Vec::new() }
    }

    /// Where the chunks of an object of so many bytes lie; without shards it is one chunk.
    pub(super) fn index(&self, key: &str, bytes: u64) -> Result<ShardIndex, FaultError> {
        let chunks = self.metadata.grid.chunks_in_object();
        if self.metadata.grid.shard.is_none() {
            return Ok(ShardIndex::whole(bytes));
        }
        let index = index_bytes(chunks) as u64;
        let begin = bytes.checked_sub(index).ok_or(ShardError::TooShort { bytes, index })?;
        Ok(ShardIndex::parse(&self.sink.get(key, begin..bytes)?, chunks, bytes)?)
    }

    /// Decodes a chunk as it is stored: in storage order.
    pub(super) fn decode(&mut self, key: &str, place: Range<u64>, scratch: &mut Scratch) -> Result<(), FaultError> {
        let codec = self.metadata.chunk_codec();
        let (bytes, most) = (place.end - place.start, codec.encoded_bytes_max() as u64 + SLACK);
        if bytes > most {
            return Err(FaultError::TooLong { bytes, most });
        }
        let encoded = self.sink.get(key, place)?;
        Ok(codec.decode(&encoded, scratch, &mut self.stored)?)
    }

    /// Decodes a chunk, and puts its elements into the array's own order.
    pub(super) fn read(&mut self, key: &str, place: Range<u64>, scratch: &mut Scratch) -> Result<(), FaultError> {
        self.decode(key, place, scratch)?;
        let ArrayMetadata { grid, order, .. } = self.metadata;
        self.chunk.clear();
        order.restore(&self.stored, &grid.chunk, grid.element_bytes(), &mut self.chunk);
        Ok(())
    }

    /// An object's bytes; none if it is not there.
    pub(super) fn size(&self, key: &str) -> Result<Option<u64>, SinkError> {
        self.sink.size(key)
    }
}
