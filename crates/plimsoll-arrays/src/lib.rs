//! Zarr v3 arrays: what they are to be, how they are cut and packed, the files that hold them, and reading them back.
//!
//! What a user describes ([`ArraySpec`]) becomes a checked plan ([`Layout`]) once. Chunks are packed by [`codec`], placed
//! in [`shard`]s, and written with their [`metadata`] to a [`sink`]; [`read`] goes the other way and trusts nothing.
//! Nothing here starts a thread or schedules.
//!
//! | module | what it owns |
//! |---|---|
//! | `data_type`, `fill` | elements and their fill value |
//! | `spec` | an array as the user describes it |
//! | `layout`, `grid`, `order` | the checked plan: levels, shards, chunks, storage order |
//! | `codec` | packing chunks and unpacking them |
//! | `shard` | where chunks lie in a shard |
//! | `metadata` | `zarr.json` of arrays and of groups with OME-NGFF 0.5 levels |
//! | `levels` | making one level from the one before it |
//! | `copy` | moving boxes of elements |
//! | `sink` | where objects are kept, whole or not at all |
//! | `read` | what is there, whether it is sound, and its elements |
//! | `work` | making levels and packing chunks as workloads |
//! | `limits` | how large things may be |

pub mod codec;
pub mod copy;
mod data_type;
mod fill;
mod grid;
mod layout;
pub mod levels;
pub mod limits;
pub mod metadata;
mod order;
pub mod read;
pub mod shard;
pub mod sink;
mod spec;
pub mod work;

pub use codec::{Codec, ParseCodecError};
pub use data_type::{DataType, ParseDataTypeError};
pub use fill::{Fill, FillError, FillValue};
pub use grid::Grid;
pub use layout::{Layout, LevelLayout, SpecError};
pub use levels::{ParseReductionError, Reduction};
pub use order::StorageOrder;
pub use read::Store;
pub use spec::{ArraySpec, Axis, AxisKind, Levels, ParseAxisError, ParseLevelsError};
