//! Models in fragments: tensors whose first bytes are usable at low quality and whose later ones raise it, in files, in a
//! store that processes share, and behind a URL.
//!
//! | part | what it owns |
//! |---|---|
//! | [`safetensors`] | the header of the files that models come in |
//! | [`quant`] | nested quantisation, and the measured error of each level |
//! | [`index`], [`file`](mod@file) | what a model is made of, and the file that holds it |
//! | [`pack`], [`restore`] | from safetensors to fragments, and back |
//! | [`store`] | fragments on disk, shared by processes |
//! | [`http`] | ranges over HTTP: fetched once, resumed, served |
//! | [`placement`] | which fragments stay in a tier of so many bytes |
//! | [`work`] | fragments on devices as workloads |
//!
//! **Invariant:** bytes are checked on every hop, and no length from outside is believed before it was bounded.

pub mod data_type;
mod digest;
mod error;
pub mod file;
pub mod http;
pub mod index;
pub mod limits;
pub mod pack;
pub mod placement;
mod positioned;
pub mod quant;
pub mod restore;
pub mod safetensors;
pub mod store;
pub mod work;

pub use digest::{Checksum, Digest, ParseDigestError};
pub use error::FragmentError;
