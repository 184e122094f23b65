//! Fragments on devices as workloads: bring levels there, decode them there, take them back.
//! Never promises their bytes: whoever holds them has a grant for them.
//!
//! | file | what it owns |
//! |---|---|
//! | `upload.rs` | the bytes of levels to a device, and back |
//! | `decode.rs` | weights from the levels that lie on a device |
//! | `kernels.rs`, `decode.wgsl`, `exact.wgsl` | that as kernels, and their twins |

mod decode;
mod kernels;
mod upload;

pub use decode::{DecodeInput, DecodeWork, Decoded};
pub use kernels::difference_bytes;
pub use upload::{BringBackWork, UploadInput, UploadWork};
