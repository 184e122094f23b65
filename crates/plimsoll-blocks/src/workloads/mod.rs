//! The stages as workloads: what a task takes and gives, and where it can run.
//!
//! | file | stage |
//! |---|---|
//! | `pack.rs` | a block in one library call: filter, matches and coding fused; on the CPU |
//! | `filter.rs` | a block's bytes rearranged; on any device |
//! | `find.rs` | where bytes were seen before: sequences; on any device |
//! | `code.rs` | sequences as a zstd frame, on the CPU, or as a gzip member, on any device |
//! | `unpack.rs` | a whole frame or run of members; on the CPU |
//! | `stream.rs` | a frame or members that have no end in sight, part by part, in a held session; on the CPU |

mod code;
mod filter;
mod find;
mod pack;
mod stream;
mod unpack;

pub use code::{CodeFrameWork, CodeMemberWork};
pub use filter::FilterWork;
pub use find::{FindWork, Found};
pub use pack::{BlockPacker, PackWork};
pub use stream::{PartUnpacker, PartWork, SMALL_WINDOW, Unpacked};
pub use unpack::{UnpackWork, Unpacker};

use std::sync::Arc;

use crate::pool::PooledBytes;

/// A block of input on its way to be packed. Its stages share its bytes.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its bytes.
    pub bytes: Arc<PooledBytes>,
}

/// A packed block.
#[derive(Debug)]
pub struct Packed {
    /// The frame, member or members.
    pub bytes: PooledBytes,
    /// How many bytes of input it holds.
    pub raw: usize,
    /// Of BGZF: the sizes of its members, packed and not.
    pub(crate) members: Vec<(u32, u32)>,
}
