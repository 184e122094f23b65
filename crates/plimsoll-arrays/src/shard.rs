//! Shards: chunks one behind the other, and at the end an index of where each lies, with its checksum.
//! Never holds a chunk's bytes: it says where they go, and whoever writes the object puts them there.
//! Invariant: what `finish` gives describes exactly the chunks that were added, each once.

use std::ops::Range;

/// Bytes of an entry of the index: where a chunk begins and how long it is.
const ENTRY_BYTES: usize = 16;
/// Bytes of the checksum behind the entries.
const CHECKSUM_BYTES: usize = 4;
/// What both halves of an entry hold for a chunk that is not stored.
const ABSENT: u64 = u64::MAX;

/// What is wrong with a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// There is no such chunk in a shard.
    #[error("there is no chunk {chunk} in a shard of {chunks}; count them from 0, along the last dimension first")]
    NoSuchChunk {
        /// The chunk.
        chunk: usize,
        /// Chunks of a shard.
        chunks: usize,
    },
    /// A chunk was added before.
    #[error("chunk {chunk} is in the shard already; add each once")]
    Twice {
        /// The chunk.
        chunk: usize,
    },
    /// An object is too short to end with an index.
    #[error("{bytes} bytes are too short for the index at its end, which has {index}; the shard is cut off")]
    TooShort {
        /// Bytes of the object.
        bytes: u64,
        /// Bytes of the index.
        index: u64,
    },
    /// The index is damaged.
    #[error("the index at its end does not match its checksum; the shard is cut off or damaged")]
    Checksum,
    /// A chunk lies where there is nothing, or in the index.
    #[error("chunk {chunk} is said to lie at {begin} and to have {length} bytes, but chunks end at {end}")]
    OutOfRange {
        /// The chunk.
        chunk: usize,
        /// Where it begins.
        begin: u64,
        /// How long it is.
        length: u64,
        /// Where the index begins.
        end: u64,
    },
    /// Two chunks share bytes.
    #[error("chunks {first} and {second} are said to share bytes from {at} on")]
    Overlap {
        /// The one that begins first.
        first: usize,
        /// The other.
        second: usize,
        /// Where the other begins.
        at: u64,
    },
}

/// Bytes of the index of a shard of so many chunks.
pub const fn index_bytes(chunks: usize) -> usize {
    chunks * ENTRY_BYTES + CHECKSUM_BYTES
}

/// Places chunks in a shard, in whichever order they come.
///
/// ```
/// use plimsoll_arrays::shard::{ShardBuilder, ShardIndex};
///
/// let (mut shard, mut object) = (ShardBuilder::new(4), Vec::new());
/// for (chunk, bytes) in [(2, &b"third"[..]), (0, b"first")] {
///     assert_eq!(shard.add(chunk, bytes.len() as u64)?, object.len() as u64);
///     object.extend_from_slice(bytes);
/// }
/// object.extend(shard.finish());
/// let index = ShardIndex::parse(&object, 4, object.len() as u64)?;
/// assert_eq!(index.range(2), Some(0..5));
/// assert_eq!(index.range(1), None);
/// # Ok::<(), plimsoll_arrays::shard::ShardError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ShardBuilder {
    entries: Vec<(u64, u64)>,
    end: u64,
    stored: usize,
}

impl ShardBuilder {
    /// A shard of so many chunks, none stored yet.
    pub fn new(chunks: usize) -> Self {
        Self { entries: vec![(ABSENT, ABSENT); chunks], end: 0, stored: 0 }
    }

    /// Places a chunk behind those before it, and says where its bytes go.
    pub fn add(&mut self, chunk: usize, bytes: u64) -> Result<u64, ShardError> {
        let chunks = self.entries.len();
        let entry = self.entries.get_mut(chunk).ok_or(ShardError::NoSuchChunk { chunk, chunks })?;
        if entry.0 != ABSENT {
            return Err(ShardError::Twice { chunk });
        }
        let begin = self.end;
        *entry = (begin, bytes);
        self.end += bytes;
        self.stored += 1;
        Ok(begin)
    }

    /// Where the next chunk goes: bytes of the object so far.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Chunks that are stored.
    pub fn stored(&self) -> usize {
        self.stored
    }

    /// Whether no chunk is stored: such a shard need not be written.
    pub fn is_empty(&self) -> bool {
        self.stored == 0
    }

    /// The index that goes behind the last chunk.
    pub fn finish(self) -> Vec<u8> {
        let mut index = Vec::with_capacity(index_bytes(self.entries.len()));
        for (begin, bytes) in self.entries {
            index.extend_from_slice(&begin.to_le_bytes());
            index.extend_from_slice(&bytes.to_le_bytes());
        }
        index.extend_from_slice(&crc32c::crc32c(&index).to_le_bytes());
        index
    }
}

/// Where each chunk of a shard lies, checked: every range is within the object, before the index, and nobody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardIndex {
    entries: Vec<Option<Range<u64>>>,
}

impl ShardIndex {
    /// Reads the index of a shard of so many chunks. `tail` is the end of the object, at least the index; the object has
    /// so many bytes.
    pub fn parse(tail: &[u8], chunks: usize, object_bytes: u64) -> Result<Self, ShardError> {
        let index = index_bytes(chunks);
        let short = ShardError::TooShort { bytes: object_bytes.min(tail.len() as u64), index: index as u64 };
        let begin = tail.len().checked_sub(index).filter(|_| object_bytes >= tail.len() as u64).ok_or(short)?;
        let (entries, checksum) = tail[begin..].split_at(index - CHECKSUM_BYTES);
        if checksum != crc32c::crc32c(entries).to_le_bytes() {
            return Err(ShardError::Checksum);
        }
        let end = object_bytes - index as u64;
        let entries: Result<Vec<_>, _> = entries
            .as_chunks::<ENTRY_BYTES>()
            .0
            .iter()
            .enumerate()
            .map(|(chunk, entry)| range(chunk, entry, end))
            .collect();
        let index = Self { entries: entries? };
        index.check_overlaps()?;
        Ok(index)
    }

    /// An object that is one chunk, as it is where there are no shards.
    pub(crate) fn whole(bytes: u64) -> Self {
        Self { entries: vec![Some(0..bytes)] }
    }

    /// Chunks of the shard, stored or not.
    pub fn chunks(&self) -> usize {
        self.entries.len()
    }

    /// Chunks that are stored.
    pub fn stored(&self) -> usize {
        self.entries.iter().flatten().count()
    }

    /// Where a chunk lies in the object; none if it is not stored, or there is no such chunk.
    pub fn range(&self, chunk: usize) -> Option<Range<u64>> {
        self.entries.get(chunk)?.clone()
    }

    /// The stored chunks with their places, by their number.
    pub fn ranges(&self) -> impl Iterator<Item = (usize, Range<u64>)> + '_ {
        self.entries.iter().enumerate().filter_map(|(chunk, range)| Some((chunk, range.clone()?)))
    }

    fn check_overlaps(&self) -> Result<(), ShardError> {
        let mut ranges: Vec<(usize, Range<u64>)> = self.ranges().filter(|(_, range)| !range.is_empty()).collect();
        ranges.sort_unstable_by_key(|(_, range)| range.start);
        match ranges.windows(2).find(|pair| pair[1].1.start < pair[0].1.end) {
            Some([(first, _), (second, range)]) => {
                Err(ShardError::Overlap { first: *first, second: *second, at: range.start })
            }
            _ => Ok(()),
        }
    }
}

fn range(chunk: usize, entry: &[u8; ENTRY_BYTES], end: u64) -> Result<Option<Range<u64>>, ShardError> {
    let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| entry[at + byte]));
    let (begin, length) = (half(0), half(8));
    if (begin, length) == (ABSENT, ABSENT) {
        return Ok(None);
    }
    let behind = begin.checked_add(length).filter(|behind| *behind <= end);
    behind.map(|behind| Some(begin..behind)).ok_or(ShardError::OutOfRange { chunk, begin, length, end })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index_of(entries: &[(u64, u64)]) -> Vec<u8> {
        ShardBuilder { entries: entries.to_vec(), end: 0, stored: 0 }.finish()
    }

    #[test]
    fn a_chunk_is_added_once() {
        let mut shard = ShardBuilder::new(2);
        assert!(shard.is_empty());
        assert_eq!(shard.add(1, 10), Ok(0));
        assert_eq!(shard.add(1, 10), Err(ShardError::Twice { chunk: 1 }));
        assert_eq!(shard.add(2, 10), Err(ShardError::NoSuchChunk { chunk: 2, chunks: 2 }));
        assert_eq!((shard.end(), shard.stored()), (10, 1));
    }

    #[test]
    fn lies_in_an_index_are_named() {
        let parse = |entries: &[(u64, u64)]| {
            let index = index_of(entries);
            ShardIndex::parse(&index, entries.len(), 100 + index.len() as u64)
        };
        assert!(parse(&[(0, 50), (50, 50)]).is_ok());
        assert_eq!(parse(&[(50, 50), (0, 51)]), Err(ShardError::Overlap { first: 1, second: 0, at: 50 }));
        let beyond = |chunk, begin, length| Err(ShardError::OutOfRange { chunk, begin, length, end: 100 });
        assert_eq!(parse(&[(ABSENT, ABSENT), (50, 51)]), beyond(1, 50, 51));
        assert_eq!(parse(&[(ABSENT - 1, 2)]), beyond(0, ABSENT - 1, 2));
        assert_eq!(parse(&[(ABSENT, 0)]), beyond(0, ABSENT, 0));
        assert_eq!(parse(&[(0, ABSENT)]), beyond(0, 0, ABSENT));
    }

    #[test]
    fn a_cut_or_damaged_index_is_named() {
        let index = index_of(&[(0, 4), (4, 4)]);
        let bytes = index.len();
        let short = ShardError::TooShort { bytes: bytes as u64 - 1, index: bytes as u64 };
        assert_eq!(ShardIndex::parse(&index[1..], 2, bytes as u64 - 1), Err(short));
        for bit in 0..8 * bytes {
            let mut flipped = index.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ShardIndex::parse(&flipped, 2, 8 + bytes as u64), Err(ShardError::Checksum));
        }
    }

    proptest! {
        #[test]
        fn chunks_are_found_where_they_were_put(
            chunks in proptest::collection::vec(proptest::option::of(0_u64..1000), 1..40),
            order: u64,
        ) {
            let mut shard = ShardBuilder::new(chunks.len());
            let mut places = vec![None; chunks.len()];
            for step in 0..chunks.len() {
                let chunk = (step + order as usize % chunks.len()) % chunks.len();
                if let Some(bytes) = chunks[chunk] {
                    let begin = shard.add(chunk, bytes).unwrap();
                    places[chunk] = Some(begin..begin + bytes);
                }
            }
            let (end, stored) = (shard.end(), shard.stored());
            let index = shard.finish();
            prop_assert_eq!(index.len(), index_bytes(chunks.len()));
            let parsed = ShardIndex::parse(&index, chunks.len(), end + index.len() as u64).unwrap();
            prop_assert_eq!(parsed.stored(), stored);
            for (chunk, place) in places.into_iter().enumerate() {
                prop_assert_eq!(parsed.range(chunk), place);
            }
        }
    }
}
