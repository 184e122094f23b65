//! Everything here that has a bound, in one place.

/// Weights that are quantised with one scale.
pub const GROUP: usize = 64;
/// Weights in a piece of a tensor at most: what is encoded, fetched, held in memory and decoded at a time.
pub const PIECE_WEIGHTS: usize = 1 << 22;
/// Tensors of fewer weights are kept as they are: their tables would cost more than quantising saves.
pub const QUANTISED_WEIGHTS_MIN: u64 = 1 << 14;
/// Bytes of a piece of a tensor that is kept as it is.
pub const RAW_PIECE_BYTES: usize = 8 << 20;
/// Levels of bit planes at most: each is a buffer of the kernel that decodes them.
pub const PLANE_LEVELS_MAX: usize = 5;
/// Bits of the finest level of bit planes at most.
pub const BITS_MAX: u8 = 8;
/// Bytes of an index at most. A model of 10¹² weights has one of 400 MB; nobody packs that into one file.
pub const INDEX_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a safetensors header at most, as in its own specification.
pub const HEADER_BYTES_MAX: u64 = 100_000_000;
/// Tensors in a model at most.
pub const TENSORS_MAX: usize = 1 << 17;
/// Dimensions of a tensor at most.
pub const DIMENSIONS_MAX: usize = 16;
/// Bytes of a tensor's name at most.
pub const NAME_BYTES_MAX: usize = 1 << 10;
/// Bytes of a tensor at most.
pub const TENSOR_BYTES_MAX: u64 = 1 << 42;
/// Bytes of one fragment at most: a piece at full precision that does not compress at all, and its frame.
pub const FRAGMENT_BYTES_MAX: u64 = 64 << 20;
