//! The work of a streaming writer as workloads: making levels from slabs, and packing chunks out of them.
//! Never orders anything and writes nothing: whoever streams does.
//!
//! | file | what it owns |
//! |---|---|
//! | `slab.rs` | steps along the first dimension that are handled together |
//! | `places.rs` | how many of them lie in memory at once |
//! | `levels.rs` | a slab of the full resolution → slabs of every other level |
//! | `kernels.rs`, `reduce.wgsl` | one level from the one before it, on a device |
//! | `scatter.rs`, `scatter.wgsl` | steps of a level cut into chunks, on a device |
//! | `shuffle.rs`, `shuffle.wgsl` | blocks of chunks shuffled for the codec, on a device |
//! | `slab_stages.rs` | what a device does to a slab as staged work: its declaration and its stages |
//! | `staged_slabs.rs` | that in a held session: its rungs, and what goes along from one to the next |
//! | `encode.rs` | slabs → packed chunks of one object |

mod encode;
pub mod kernels;
mod levels;
mod places;
pub mod scatter;
pub mod shuffle;
mod slab;
mod slab_stages;
mod staged_slabs;

pub use encode::{Batch, EncodeWork, Encoded};
pub use kernels::runs_on_gpu;
pub use levels::LevelsWork;
pub use places::{NoPlace, Place, Places};
pub use slab::{Form, Slab};
pub use slab_stages::DeviceStages;
pub use staged_slabs::{SlabStep, StagedSlabsWork, TrialWork};
