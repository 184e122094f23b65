//! Why an array cannot be as it was described, each with what to change.

use crate::fill::FillError;
use crate::limits::{ATTRIBUTES_BYTES_MAX, CHUNK_BYTES_MAX, CHUNKS_PER_SHARD_MAX, DIMENSION_MAX, LEVELS_MAX, RANK_MAX};

/// What is wrong with the description of an array.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No dimensions, or too many.
    #[error("the shape has {rank} dimensions; give 1 to {RANK_MAX}")]
    Rank {
        /// How many there are.
        rank: usize,
    },
    /// Two lists that must be equally long are not.
    #[error("the shape has {rank} dimensions and the {what} {got}; give one number for each dimension")]
    Lengths {
        /// Which list.
        what: &'static str,
        /// Dimensions of the shape.
        rank: usize,
        /// Entries of the list.
        got: usize,
    },
    /// A dimension other than the first has no elements.
    #[error("dimension {dimension} of the {what} is 0; only the first of the shape may be, when it grows")]
    Zero {
        /// Which list.
        what: &'static str,
        /// Which of its entries.
        dimension: usize,
    },
    /// A dimension is longer than readers can count.
    #[error("dimension {dimension} has {got} elements, at most {DIMENSION_MAX} can be counted by every reader")]
    Dimension {
        /// Which.
        dimension: usize,
        /// How many.
        got: u64,
    },
    /// The whole is more than can be counted.
    #[error("the {what} has more bytes than can be counted; make a dimension shorter")]
    TooLarge {
        /// What.
        what: &'static str,
    },
    /// A chunk has more bytes than readers take.
    #[error("a chunk of this shape has {got} bytes, at most {most} can be read everywhere; make chunks smaller")]
    ChunkBytes {
        /// Its bytes.
        got: u64,
        /// What is taken: less for some codecs than the general limit.
        most: u64,
    },
    /// A shard is no whole number of chunks.
    #[error("the shard has {shard} elements along dimension {dimension}, the chunk {chunk}; make it a multiple")]
    ShardNotWhole {
        /// Along which dimension.
        dimension: usize,
        /// Elements of the shard.
        shard: u64,
        /// Elements of the chunk.
        chunk: u64,
    },
    /// A shard has more chunks than its index should list.
    #[error("a shard would hold {got} chunks, at most {CHUNKS_PER_SHARD_MAX} are listed in one; make shards smaller")]
    ShardChunks {
        /// How many.
        got: u64,
    },
    /// More levels than make sense.
    #[error("{got} levels are asked for, at most {LEVELS_MAX} are made")]
    Levels {
        /// How many.
        got: u32,
    },
    /// Nothing is left that could be halved.
    #[error(
        "level {level} would be as large as the one before it: no axis of space has more than one element; ask for {level} levels"
    )]
    NothingToHalve {
        /// The first level that is not smaller.
        level: u32,
    },
    /// OME multiscales need two to five dimensions.
    #[error("levels and axes are kept as OME-NGFF metadata, which takes 2 to 5 dimensions, not {rank}; leave both out")]
    MultiscaleRank {
        /// How many there are.
        rank: usize,
    },
    /// The axes are none that OME metadata take.
    #[error("the axes cannot be kept as OME-NGFF metadata: {why}")]
    Axes {
        /// What must be otherwise.
        why: String,
    },
    /// The storage order is none.
    #[error("the storage order {order:?} does not list every dimension once with 0 first; write for example 0,2,1")]
    Order {
        /// As it was given.
        order: Vec<usize>,
    },
    /// The attribute is ours to write.
    #[error("the attribute '{name}' is written by the program itself; choose another name")]
    Attribute {
        /// Its name.
        name: String,
    },
    /// The attributes are more than belongs beside an array.
    #[error(
        "the attributes have {got} bytes, at most {ATTRIBUTES_BYTES_MAX} are kept with an array; keep them elsewhere"
    )]
    Attributes {
        /// Their bytes as they are stored.
        got: u64,
    },
    /// The fill value.
    #[error(transparent)]
    Fill(#[from] FillError),
}

impl SpecError {
    pub(crate) const fn chunk_bytes(got: u64) -> Self {
        Self::ChunkBytes { got, most: CHUNK_BYTES_MAX }
    }
}
