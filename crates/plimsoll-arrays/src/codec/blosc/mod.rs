//! The container of c-blosc 1: a header, where each block begins, and the blocks, shuffled and packed one by one.
//! Never split into streams when written (a flag says so); both are read. Invariant: what it is read by is c-blosc.
//!
//! | file | what it owns |
//! |---|---|
//! | `header.rs` | the sixteen bytes before the blocks |
//! | `encode.rs` | packing blocks |
//! | `decode.rs` | unpacking them, whatever the bytes say |
//! | `shuffle.rs` | which blocks are shuffled, and how |

mod decode;
mod encode;
mod header;
mod shuffle;

pub(super) use decode::decode;
pub(super) use encode::{Blosc, bound, context_bytes};
pub use shuffle::Shuffle;

use lz4_flex::block::CompressTable;

/// Bytes of a block: fits the second-level cache of one core beside what comes of it, and is a multiple of eight elements
/// of every type, so that every block but the last is shuffled whole.
pub const BLOCK_BYTES: usize = 256 << 10;

/// Bytes of the blocks that a chunk of so many bytes is cut into.
pub(super) const fn block_bytes(chunk: usize) -> usize {
    if chunk < BLOCK_BYTES { chunk } else { BLOCK_BYTES }
}

/// What packs the blocks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BloscCompressor {
    /// Very fast; has no levels.
    Lz4,
    /// Packs better.
    Zstd,
}

impl BloscCompressor {
    /// Its name in metadata.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Lz4, Self::Zstd].into_iter().find(|compressor| compressor.name() == name)
    }
}

/// Buffers of the blocks under way.
#[derive(Default)]
pub(super) struct Buffers {
    shuffled: Vec<u8>,
    packed: Vec<u8>,
    table: Option<CompressTable>,
}
