//! Zstd: independent frames with content checksums, in the seekable format, and a reader for any frames.
//!
//! | file | what it owns |
//! |---|---|
//! | `frame.rs` | the headers of frames and blocks: where a frame ends, and how much it can give, without decoding it |
//! | `seekable.rs` | the seek table in a skippable frame at the end |
//! | `sequences.rs` | frames from sequences that our own stages found |
//! | `codec.rs` | the library's contexts, for whole frames and for parts of one |

pub(crate) mod codec;
pub(crate) mod frame;
pub(crate) mod seekable;
pub(crate) mod sequences;
