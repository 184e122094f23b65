//! What can be wrong with a store as a whole, and with one object of it.

use crate::codec::CodecError;
use crate::metadata::MetadataError;
use crate::shard::ShardError;
use crate::sink::SinkError;

/// Why a store cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no metadata file at its root.
    #[error("there is no 'zarr.json' at its root: no Zarr v3 array lies there; check the path")]
    NotAStore,
    /// A metadata file cannot be used.
    #[error("'{key}' cannot be used; bring it back from a copy, or write the array anew")]
    Metadata {
        /// The file.
        key: String,
        /// What is wrong with it.
        source: MetadataError,
    },
    /// The root is a group that lists no levels.
    #[error("its root is a group without OME multiscales; open one of the arrays below it")]
    NoLevels,
    /// The place where it is kept failed.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// An object cannot be read.
    #[error("'{key}' cannot be read")]
    Object {
        /// The object.
        key: String,
        /// What is wrong with it.
        source: FaultError,
    },
    /// There is no such level.
    #[error("there is no level {level}; the store has {levels}, counted from 0")]
    NoSuchLevel {
        /// The level.
        level: usize,
        /// How many there are.
        levels: usize,
    },
    /// A region does not lie in the array.
    #[error("the region from {start:?} with {extent:?} elements does not lie in the array of {shape:?}")]
    Region {
        /// Where it begins.
        start: Vec<u64>,
        /// Its elements along each dimension.
        extent: Vec<u64>,
        /// The array's.
        shape: Vec<u64>,
    },
    /// A region has more bytes than are read at once.
    #[error("the region has more than {most} bytes; read it in parts")]
    RegionBytes {
        /// What is read at once.
        most: u64,
    },
}

/// What is wrong with one object or one chunk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The shard's index.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The chunk's content.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// It could not be read from where it is kept.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// It lies outside of the array.
    #[error("it lies outside of the array of {shape:?}: the shape is too small, or the object is none of this array")]
    Outside {
        /// The array's shape.
        shape: Vec<u64>,
    },
    /// Its name is none of an object of the array.
    #[error("its name is none that an object of the array has")]
    Stray,
    /// It is longer than an encoded chunk can be.
    #[error("{bytes} bytes are more than a chunk of this array takes, at most {most}")]
    TooLong {
        /// Its bytes.
        bytes: u64,
        /// What a chunk takes.
        most: u64,
    },
    /// A chunk has more bytes than the memory that may be used.
    #[error("its chunks have {bytes} bytes, and {most} of memory may be used; allow more")]
    Memory {
        /// Bytes of a chunk.
        bytes: u64,
        /// What may be used.
        most: u64,
    },
    /// A level's shape is not that of the one before it, halved.
    #[error(
        "its shape is {shape:?}, and the level before it {finer:?}: each dimension must be the same, or half of it"
    )]
    LevelShape {
        /// The level's.
        shape: Vec<u64>,
        /// That of the level before it.
        finer: Vec<u64>,
    },
}
