//! Packing blocks into a container. Where that does not pay, the chunk is copied, as c-blosc does it.

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use super::super::{CodecError, Scratch, reserve, zstd};
use super::header::{HEADER_BYTES, Header};
use super::{BLOCK_BYTES, BloscCompressor, Buffers, Shuffle, block_bytes};
use crate::data_type::DataType;

/// A chunk below this is copied: c-blosc does not look for anything in it.
const CHUNK_BYTES_MIN: usize = 128;

/// The places of 4096 byte strings.
const LZ4_TABLE_BYTES: u64 = 16 << 10;

/// Bytes of a container at the most: the chunk copied behind a header.
pub(in super::super) const fn bound(chunk: usize) -> usize {
    chunk + HEADER_BYTES
}

/// What packing keeps from chunk to chunk: the library's context or table, a block shuffled and a block packed.
pub(in super::super) fn context_bytes(compressor: BloscCompressor, level: i32, chunk: usize) -> u64 {
    let block = block_bytes(chunk);
    let library = match compressor {
        BloscCompressor::Lz4 => LZ4_TABLE_BYTES,
        BloscCompressor::Zstd => zstd::context_bytes(zstd_level(level), block),
    };
    library + block as u64 + get_maximum_output_size(BLOCK_BYTES) as u64
}

/// How containers are to be made.
#[derive(Copy, Clone, Debug)]
pub(in super::super) struct Blosc {
    pub(in super::super) compressor: BloscCompressor,
    pub(in super::super) level: i32,
    pub(in super::super) shuffle: Shuffle,
    pub(in super::super) data_type: DataType,
}

impl Blosc {
    /// Appends a container; of a chunk whose blocks were shuffled before, if so it is said.
    pub(in super::super) fn encode(
        &self,
        chunk: &[u8],
        is_shuffled: bool,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let begin = out.len();
        if self.pack(chunk, !is_shuffled, scratch, out)? {
            return Ok(());
        }
        out.truncate(begin);
        // A copied chunk is not shuffled; chunks that do not pack are rare enough to be turned back here.
        if is_shuffled { self.copy(&self.unshuffled(chunk), out) } else { self.copy(chunk, out) }
    }

    /// Appends the blocks, packed; false if the container would not be smaller than the chunk.
    fn pack(&self, chunk: &[u8], shuffle: bool, scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<bool, CodecError> {
        if self.level == 0 || chunk.len() < CHUNK_BYTES_MIN {
            return Ok(false);
        }
        reserve(out, bound(chunk.len()), "an encoded chunk")?;
        let (begin, size) = (out.len(), block_bytes(chunk.len()));
        let starts = begin + HEADER_BYTES;
        out.resize(starts + 4 * chunk.len().div_ceil(size), 0);
        for (number, block) in chunk.chunks(size).enumerate() {
            let start = (out.len() - begin) as u32;
            out[starts + 4 * number..][..4].copy_from_slice(&start.to_le_bytes());
            self.pack_block(block, shuffle, scratch, out)?;
            if out.len() - begin >= chunk.len() {
                return Ok(false);
            }
        }
        let header = Header { container_bytes: out.len() - begin, ..self.header(chunk.len()) };
        out[begin..starts].copy_from_slice(&header.write());
        Ok(true)
    }

    /// Appends a block: its packed length and its bytes; a block that does not pack as it is.
    fn pack_block(
        &self,
        block: &[u8],
        shuffle: bool,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let Scratch { zstd, blosc: Buffers { shuffled, packed, table }, .. } = scratch;
        let step = self.shuffle.step(self.data_type.filter_element(), block.len()).filter(|_| shuffle);
        let block: &[u8] = match step {
            Some(step) => {
                shuffled.clear();
                shuffled.extend_from_slice(block);
                step.apply_to(block, shuffled);
                shuffled.as_slice()
            }
            None => block,
        };
        let packed: &[u8] = match self.compressor {
            BloscCompressor::Lz4 => lz4(block, table, packed)?,
            BloscCompressor::Zstd => {
                packed.clear();
                zstd.encode(block, zstd_level(self.level), false, packed)?;
                packed.as_slice()
            }
        };
        let stored = if packed.len() < block.len() { packed } else { block };
        out.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        out.extend_from_slice(stored);
        Ok(())
    }

    fn copy(&self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
        reserve(out, bound(chunk.len()), "an encoded chunk")?;
        let header = Header { is_copied: true, container_bytes: bound(chunk.len()), ..self.header(chunk.len()) };
        out.extend_from_slice(&header.write());
        out.extend_from_slice(chunk);
        Ok(())
    }

    fn unshuffled(&self, chunk: &[u8]) -> Vec<u8> {
        let mut out = chunk.to_vec();
        let size = block_bytes(chunk.len());
        for (from, to) in chunk.chunks(size).zip(out.chunks_mut(size)) {
            if let Some(step) = self.shuffle.step(self.data_type.filter_element(), from.len()) {
                step.undo_to(from, to);
            }
        }
        out
    }

    fn header(&self, chunk_bytes: usize) -> Header {
        Header {
            compressor: self.compressor,
            shuffle: self.shuffle,
            is_copied: false,
            is_split: false,
            element: self.data_type.bytes(),
            chunk_bytes,
            block_bytes: block_bytes(chunk_bytes),
            container_bytes: 0,
        }
    }
}

/// The level of zstd that c-blosc takes for one of its own.
fn zstd_level(level: i32) -> i32 {
    if level >= 9 { zstd_safe::max_c_level() } else { 2 * level - 1 }
}

/// Packs a block into a buffer that keeps its length from block to block, so that it is cleared only once.
fn lz4<'a>(block: &[u8], table: &mut Option<CompressTable>, packed: &'a mut Vec<u8>) -> Result<&'a [u8], CodecError> {
    let most = get_maximum_output_size(BLOCK_BYTES);
    if packed.len() < most {
        packed.resize(most, 0);
    }
    let table = table.get_or_insert_with(CompressTable::large);
    let refused = |error: lz4_flex::block::CompressError| CodecError::Refused { codec: "lz4", why: error.to_string() };
    let bytes = compress_into_with_table(block, packed, table).map_err(refused)?;
    Ok(&packed[..bytes])
}

#[cfg(test)]
mod tests {
    use super::super::super::{ChunkCodec, Codec};
    use super::*;

    /// Whoever shuffles elsewhere does this.
    fn shuffled(codec: &ChunkCodec, chunk: &[u8]) -> Vec<u8> {
        let Some((_, size)) = codec.shuffle() else { return chunk.to_vec() };
        let mut out = chunk.to_vec();
        for (from, to) in chunk.chunks(size).zip(out.chunks_mut(size)) {
            if let Some(step) = codec.shuffle_step(from.len()) {
                step.apply_to(from, to);
            }
        }
        out
    }

    #[test]
    fn what_was_shuffled_elsewhere_gives_the_same_container() {
        for shuffle in [Shuffle::None, Shuffle::Byte, Shuffle::Bit] {
            for compressor in [BloscCompressor::Lz4, BloscCompressor::Zstd] {
                for data_type in [DataType::U8, DataType::U16, DataType::F64] {
                    for noise in [1, 255] {
                        let bytes = BLOCK_BYTES + 12 * data_type.bytes();
                        let codec = ChunkCodec::new(Codec::Blosc { compressor, level: 4, shuffle }, data_type, bytes);
                        let mut state = 1_u32;
                        let chunk: Vec<u8> = std::iter::repeat_with(|| {
                            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                            (state >> 24) as u8 & noise
                        })
                        .take(bytes)
                        .collect();
                        let (mut scratch, mut here, mut there) = (Scratch::default(), Vec::new(), Vec::new());
                        codec.encode(&chunk, &mut scratch, &mut here).unwrap();
                        let moved = shuffled(&codec, &chunk);
                        codec.encode_shuffled(&moved, &mut scratch, &mut there).unwrap();
                        assert!(here == there, "{codec:?}");
                        assert_eq!(here.len() < bytes, noise == 1, "{codec:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn buffers_of_one_compressor_do_not_disturb_the_other() {
        let mut scratch = Scratch::default();
        for compressor in [BloscCompressor::Zstd, BloscCompressor::Lz4, BloscCompressor::Zstd, BloscCompressor::Lz4] {
            let codec = Codec::Blosc { compressor, level: 3, shuffle: Shuffle::Byte };
            let codec = ChunkCodec::new(codec, DataType::U32, 4000);
            let chunk: Vec<u8> = (0..4000).map(|at| (at / 7) as u8).collect();
            let (mut packed, mut back) = (Vec::new(), Vec::new());
            codec.encode(&chunk, &mut scratch, &mut packed).unwrap();
            codec.decode(&packed, &mut scratch, &mut back).unwrap();
            assert_eq!(back, chunk);
        }
    }
}
