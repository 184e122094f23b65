//! The header of a container: written as c-blosc 1.21 does, and checked before anything that it says is used.

use super::super::CodecError;
use super::{BloscCompressor, Shuffle};

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 16;

/// The version of the container that c-blosc 1 writes.
const VERSION: u8 = 2;
/// The version of each compressor's own format.
const COMPRESSOR_VERSION: u8 = 1;

const BYTE_SHUFFLED: u8 = 1;
const COPIED: u8 = 1 << 1;
const BIT_SHUFFLED: u8 = 1 << 2;
const NOT_SPLIT: u8 = 1 << 4;
const COMPRESSOR_SHIFT: u32 = 5;

/// Numbers that headers give to compressors.
const COMPRESSORS: [(BloscCompressor, u8); 2] = [(BloscCompressor::Lz4, 1), (BloscCompressor::Zstd, 4)];

/// What a header says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) compressor: BloscCompressor,
    pub(super) shuffle: Shuffle,
    /// The blocks are the chunk itself.
    pub(super) is_copied: bool,
    pub(super) is_split: bool,
    pub(super) element: usize,
    pub(super) chunk_bytes: usize,
    pub(super) block_bytes: usize,
    /// With the header.
    pub(super) container_bytes: usize,
}

impl Header {
    pub(super) fn write(&self) -> [u8; HEADER_BYTES] {
        let shuffle = match self.shuffle {
            Shuffle::None => 0,
            Shuffle::Byte => BYTE_SHUFFLED,
            Shuffle::Bit => BIT_SHUFFLED,
        };
        let number = COMPRESSORS.iter().find(|(known, _)| *known == self.compressor).map_or(0, |(_, number)| *number);
        let copied = if self.is_copied { COPIED } else { 0 };
        let split = if self.is_split { 0 } else { NOT_SPLIT };
        let mut header = [0; HEADER_BYTES];
        header[0] = VERSION;
        header[1] = COMPRESSOR_VERSION;
        header[2] = shuffle | copied | split | number << COMPRESSOR_SHIFT;
        header[3] = self.element as u8;
        for (at, length) in [(4, self.chunk_bytes), (8, self.block_bytes), (12, self.container_bytes)] {
            header[at..at + 4].copy_from_slice(&(length as u32).to_le_bytes());
        }
        header
    }

    /// What the header of these bytes says, if it can be right for a chunk of so many bytes.
    pub(super) fn read(container: &[u8], chunk_bytes: usize) -> Result<Self, CodecError> {
        let damaged = |why: &str| CodecError::damaged("blosc", why);
        let header: &[u8; HEADER_BYTES] = container.first_chunk().ok_or_else(|| damaged("its header is cut off"))?;
        let [version, _, flags, element, lengths @ ..] = *header;
        if version == 0 || version > VERSION {
            return Err(CodecError::Unsupported { what: format!("it has version {version} of the Blosc container") });
        }
        let length = |at: usize| u32::from_le_bytes([lengths[at], lengths[at + 1], lengths[at + 2], lengths[at + 3]]);
        CodecError::check_length(chunk_bytes, u64::from(length(0)))?;
        let header = Self {
            compressor: compressor(flags)?,
            shuffle: shuffle(flags)?,
            is_copied: flags & COPIED != 0,
            is_split: flags & NOT_SPLIT == 0,
            element: usize::from(element),
            chunk_bytes,
            block_bytes: length(4) as usize,
            container_bytes: length(8) as usize,
        };
        if header.container_bytes != container.len() {
            return Err(damaged("its header says another length"));
        }
        if header.element == 0 || header.block_bytes == 0 || header.block_bytes > chunk_bytes {
            return Err(damaged("its header says that blocks have no sensible size"));
        }
        Ok(header)
    }
}

fn compressor(flags: u8) -> Result<BloscCompressor, CodecError> {
    let number = flags >> COMPRESSOR_SHIFT;
    // A chunk that was only copied names a compressor that nobody needs.
    if flags & COPIED != 0 {
        return Ok(BloscCompressor::Lz4);
    }
    let known = COMPRESSORS.iter().find(|(_, known)| *known == number);
    let other = || CodecError::Unsupported { what: format!("its blocks are packed by Blosc's compressor {number}") };
    known.map(|(compressor, _)| *compressor).ok_or_else(other)
}

fn shuffle(flags: u8) -> Result<Shuffle, CodecError> {
    match (flags & BYTE_SHUFFLED != 0, flags & BIT_SHUFFLED != 0) {
        (false, false) => Ok(Shuffle::None),
        (true, false) => Ok(Shuffle::Byte),
        (false, true) => Ok(Shuffle::Bit),
        (true, true) => Err(CodecError::Unsupported { what: "it is a container of Blosc 2".to_owned() }),
    }
}
