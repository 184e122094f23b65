//! How large things may be, each with its reason. What is read from a file is held against the same numbers.

/// Dimensions of an array: as many as numpy long had, which is what readers count on.
pub const RANK_MAX: usize = 32;

/// Elements along a dimension: beyond this, JSON numbers lose their last digit in many readers.
pub const DIMENSION_MAX: u64 = 1 << 53;

/// Bytes of a chunk: lengths within it fit 32 bits everywhere.
pub const CHUNK_BYTES_MAX: u64 = 1 << 31;

/// Bytes of a chunk in a Blosc container, whose lengths are signed and count its header.
pub const BLOSC_BYTES_MAX: u64 = (1 << 31) - 1 - 16;

/// Chunks of a shard: its index is held in memory, 16 bytes for each.
pub const CHUNKS_PER_SHARD_MAX: u64 = 1 << 22;

/// Levels of an array: every dimension has one element long before.
pub const LEVELS_MAX: u32 = 32;

/// Bytes of a metadata file: attributes are for people, not for data.
pub const METADATA_BYTES_MAX: u64 = 1 << 20;

/// Bytes of the attributes in it: what is described besides needs less than the rest.
pub const ATTRIBUTES_BYTES_MAX: u64 = METADATA_BYTES_MAX / 2;

/// Bytes of an array, or of one step along its first dimension: all offsets fit a signed number.
pub const ARRAY_BYTES_MAX: u64 = i64::MAX as u64;
