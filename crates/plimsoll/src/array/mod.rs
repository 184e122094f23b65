//! Arrays: steps in, a Zarr v3 store out, with levels made and chunks packed on every device.
//!
//! | file | what it owns |
//! |---|---|
//! | `writer.rs` | what a user has in hand: appends, or a reader |
//! | `slabs.rs`, `slabs_in.rs` | how many steps are handled together, and cutting input into them |
//! | `stages.rs` | which stages run on a GPU, by what was measured |
//! | `level_maker.rs`, `held_levels.rs` | slabs → their levels, cut and shuffled or not: on CPU cores side by side, or on a GPU |
//! | `engine.rs` | slabs → levels → batches of chunks → the store, side by side and in order |
//! | `rows.rs` | which chunks can be packed once a slab is there |
//! | `shards.rs` | packed chunks into objects, and what is published |
//! | `begin.rs` | what to do with what is there |
//! | `check.rs` | reading a store through, its objects side by side |
//! | `plan.rs`, `advice.rs` | the memory it takes, told beforehand; chunks and shards for a given one |

mod advice;
mod begin;
mod check;
mod engine;
mod error;
mod held_levels;
mod level_maker;
mod plan;
mod rows;
mod shards;
mod slabs;
mod slabs_in;
mod stages;
mod watch;
mod writer;

pub use advice::advise;
pub use begin::Begin;
pub use check::verify_store;
pub use error::ArrayError;
pub use plan::ArrayPlan;
pub use plimsoll_arrays::levels;
pub use plimsoll_arrays::{
    ArraySpec, Axis, AxisKind, Codec, DataType, Fill, Layout, LevelLayout, Levels, Reduction, SpecError, read, sink,
};
pub use watch::{ArrayProgress, ArrayWatch};
pub use writer::{ArrayOptions, ArraySummary, ArrayWriter, write_array};

pub use crate::stage_choice::StageChoice;
