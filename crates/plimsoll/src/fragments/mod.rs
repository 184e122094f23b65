//! Models in fragments: packed and restored, fetched once, held where they are needed.
//!
//! A fragment is one level of a piece of a tensor. It lies behind a URL, on disk, in memory or on a device; bringing it nearer
//! is a step at a time, and making room takes it one tier down. A [`Holder`] has tensors on a device at a quality: its bytes
//! are a grant whose rungs are the levels, so that a recall takes the finest away, and they come back when there is room.
//!
//! | file | what it owns |
//! |---|---|
//! | `packing.rs` | safetensors to fragments and back, over the CPU's slots |
//! | `draft.rs` | an output that appears under its name when it is whole |
//! | `store.rs` | the tiers below devices: memory, disk, a server |
//! | `ram.rs` | the tier in memory |
//! | `ladder.rs` | the levels of a set of tensors as rungs of a grant |
//! | `holder.rs` | tensors on a device: decode, pin, drop |
//! | `keeper.rs` | the thread that brings levels there, and takes them away when the grant is recalled |
//! | `holding.rs` | a holder that is not there yet: a future with progress |

mod draft;
mod error;
mod holder;
mod holding;
mod keeper;
mod ladder;
mod packing;
mod ram;
mod store;
mod watch;

pub use error::HoldError;
pub use holder::{DecodedTensor, Holder};
pub use holding::Holding;
pub use ladder::HoldRequest;
pub use packing::{PackSummary, RestoreSummary, pack_file, restore_file};
pub use plimsoll_fragments::data_type::{DataType, Float};
pub use plimsoll_fragments::file::{FragmentFile, Model};
pub use plimsoll_fragments::http::{PullWatch, Pulled, Server};
pub use plimsoll_fragments::index::{Fragment, Index, Tensor};
pub use plimsoll_fragments::limits;
pub use plimsoll_fragments::pack::PackSpec;
pub use plimsoll_fragments::quant::{Bits, ParseBitsError, Sums};
pub use plimsoll_fragments::restore::{Fragments, tensor as read_tensor};
pub use plimsoll_fragments::safetensors::TensorInfo;
pub use plimsoll_fragments::store::{Collected, DiskStore, StoreLimits};
pub use plimsoll_fragments::{Checksum, Digest, FragmentError, ParseDigestError};
pub use store::{Store, StoreOptions, StoredModel, TierBytes};
pub use watch::FragmentsWatch;
