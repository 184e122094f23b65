//! Unpacking containers, ours and those of c-blosc. Every length is held against what is there before it is used.

use plimsoll_blocks::filter::Element;

use super::super::{CodecError, Scratch, reserve};
use super::header::{HEADER_BYTES, Header};
use super::{BloscCompressor, Shuffle};
use crate::data_type::DataType;

const NAME: &str = "blosc";

/// Bytes that one packed byte gives at the most: lz4 says so with 255 for each byte of a length; zstd can give more, but
/// takes no memory that it does not write.
const LZ4_RATIO_MAX: usize = 255;
/// c-blosc splits a block into the bytes of its elements up to this width …
const SPLITS_MAX: usize = 16;
/// … if each of them has at least so many bytes.
const SPLIT_BYTES_MIN: usize = 128;

/// Puts a decoded chunk into an empty buffer.
pub(in super::super) fn decode(
    container: &[u8],
    data_type: DataType,
    chunk_bytes: usize,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let header = Header::read(container, chunk_bytes)?;
    let body = &container[HEADER_BYTES..];
    if header.is_copied {
        CodecError::check_length(chunk_bytes, body.len() as u64)?;
        out.extend_from_slice(body);
        return Ok(());
    }
    if header.compressor == BloscCompressor::Lz4 && chunk_bytes / LZ4_RATIO_MAX > container.len() {
        return Err(CodecError::damaged(NAME, "it is too short for what it says that it holds"));
    }
    let element = element(&header, data_type)?;
    reserve(out, chunk_bytes, "a chunk")?;
    for number in 0..chunk_bytes.div_ceil(header.block_bytes) {
        let size = header.block_bytes.min(chunk_bytes - number * header.block_bytes);
        let block = Block { header: &header, element, size, rest: after_start(container, number)? };
        block.decode(scratch, out)?;
    }
    Ok(())
}

/// What the shuffle moves: as wide as the header says, which may be another width than the array's elements have.
fn element(header: &Header, data_type: DataType) -> Result<Element, CodecError> {
    match header.element {
        1 => Ok(Element::U8),
        2 => Ok(Element::U16),
        4 => Ok(Element::U32),
        8 => Ok(Element::U64),
        _ if header.shuffle == Shuffle::None => Ok(data_type.filter_element()),
        other => Err(CodecError::Unsupported { what: format!("its shuffle moves elements of {other} bytes") }),
    }
}

/// The container from where a block begins on.
fn after_start(container: &[u8], number: usize) -> Result<&[u8], CodecError> {
    let entry = container.get(HEADER_BYTES + 4 * number..).and_then(<[u8]>::first_chunk::<4>);
    let start = entry.map(|start| u32::from_le_bytes(*start) as usize);
    let rest = start.filter(|start| *start >= HEADER_BYTES).and_then(|start| container.get(start..));
    rest.ok_or_else(|| CodecError::damaged(NAME, format!("block {number} begins where nothing is")))
}

struct Block<'a> {
    header: &'a Header,
    element: Element,
    size: usize,
    rest: &'a [u8],
}

impl Block<'_> {
    fn decode(mut self, scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let begin = out.len();
        let streams = self.streams();
        for _ in 0..streams {
            self.decode_stream(self.size / streams, scratch, out)?;
        }
        if let Some(step) = self.header.shuffle.step(self.element, self.size) {
            let shuffled = &mut scratch.blosc.shuffled;
            shuffled.clear();
            shuffled.extend_from_slice(&out[begin..]);
            step.undo_to(shuffled, &mut out[begin..]);
        }
        Ok(())
    }

    /// Into how many streams c-blosc split it.
    fn streams(&self) -> usize {
        let Header { is_split, element, block_bytes, .. } = *self.header;
        let is_whole = self.size == block_bytes && block_bytes % element == 0;
        let pays = element <= SPLITS_MAX && block_bytes / element >= SPLIT_BYTES_MIN;
        if is_split && is_whole && pays { element } else { 1 }
    }

    fn decode_stream(&mut self, size: usize, scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let cut = || CodecError::damaged(NAME, "a block reaches beyond its end");
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let (packed, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
        self.rest = rest;
        if packed.len() == size {
            out.extend_from_slice(packed);
            return Ok(());
        }
        match self.header.compressor {
            BloscCompressor::Lz4 => lz4(packed, size, out),
            BloscCompressor::Zstd => scratch.zstd.decode(packed, size, out),
        }
    }
}

fn lz4(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let begin = out.len();
    out.resize(begin + size, 0);
    let got = lz4_flex::block::decompress_into(packed, &mut out[begin..]);
    let got = got.map_err(|error| CodecError::damaged("lz4", error.to_string()))?;
    CodecError::check_length(size, got as u64)
}
