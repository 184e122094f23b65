//! Match finding for the staged method: where the bytes of a block were seen before.
//! Two candidates for each position, both the same on every device: the last position of the same hash before the segment
//! that it is in, and the first of the whole block. A segment is what a workgroup looks at between two barriers.
//!
//! | file | what it owns |
//! |---|---|
//! | `tables.rs` | the definition, on the CPU: tables, segments, candidates, lengths |
//! | `kernels.rs` | the same as kernels, and their twins |
//! | `parse.rs` | which matches are taken: sequences and tokens |

pub(crate) mod kernels;
pub(crate) mod parse;
pub(crate) mod tables;

/// A match found at a position: so many bytes are the same as those so far back.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) length: u32,
    pub(crate) distance: u32,
}

/// The shortest match that is worth its distance.
pub(crate) const LENGTH_MIN: u32 = 4;
/// Bytes that are compared at the most; deflate has no longer matches. The parse goes on from there for zstd.
pub(crate) const LENGTH_MAX: u32 = 258;
/// Positions that are looked up before any of them is put into the table.
pub(crate) const SEGMENT: usize = 256;
/// Bytes of a block that have a table of their own.
pub(crate) const LANE: usize = 64 << 10;
/// Bytes before a lane that its table knows.
pub(crate) const WARM: usize = 32 << 10;
/// Places in a lane's table, as a power of two.
pub(crate) const LANE_BITS: u32 = 14;
/// Places in the block's table.
pub(crate) const FIRST_BITS: u32 = 15;
/// Bytes of a block at the most: a distance has 20 bits in a word.
pub(crate) const BLOCK_MAX: usize = 1 << 20;

/// How far back a match may reach, and whether the whole block is searched.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) distance_max: u32,
}

impl Reach {
    /// Zstd: the whole block.
    pub(crate) const BLOCK: Self = Self { distance_max: BLOCK_MAX as u32 - 1 };
    /// Deflate: its window.
    pub(crate) const DEFLATE: Self = Self { distance_max: 32 << 10 };
}

/// Where a word falls in a table of so many places.
pub(crate) fn hash(word: u32, bits: u32) -> usize {
    (word.wrapping_mul(2_654_435_761) >> (32 - bits)) as usize
}

/// Blocks of every kind, for tests of what is made of matches: text, a byte, nothing, noise, one byte many times.
#[cfg(test)]
pub(crate) fn sample_blocks() -> [Vec<u8>; 5] {
    let text: Vec<u8> = (0..90_000_u32).flat_map(|n| format!("{} sheep, ", n * 7 % 1001).into_bytes()).collect();
    let noise = (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    [text[..900_000].to_vec(), text[..1].to_vec(), Vec::new(), noise, vec![7; 500_000]]
}
