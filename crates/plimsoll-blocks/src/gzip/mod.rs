//! Gzip: independent members that say how large they are, BGZF, and a reader for any members.
//!
//! | file | what it owns |
//! |---|---|
//! | `header.rs` | the headers of members: ours, BGZF's and anybody's |
//! | `member.rs` | whole members, by libdeflate |
//! | `stream.rs` | members whose end nobody knows beforehand, by zlib |
//! | `gzi.rs` | the index that `bgzip` reads |

pub mod gzi;
pub(crate) mod header;
pub(crate) mod member;
pub(crate) mod stream;
