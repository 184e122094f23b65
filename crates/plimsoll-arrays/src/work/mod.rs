//! The work of a streaming writer as workloads: making levels from slabs, and packing chunks out of them.
//! Never orders anything and writes nothing: whoever streams does.
//!
//! | file | what it owns |
//! |---|---|
//! | `slab.rs` | steps along the first dimension that are handled together |
//! | `places.rs` | how many of them lie in memory at once |
//! | `levels.rs` | a slab of the full resolution → slabs of every other level |
//! | `encode.rs` | slabs → packed chunks of one object |

mod encode;
mod levels;
mod places;
mod slab;

pub use encode::{Batch, EncodeWork, Encoded};
pub use levels::LevelsWork;
pub use places::{NoPlace, Place, Places};
pub use slab::Slab;
