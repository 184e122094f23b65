//! What can be wrong with packed bytes, each with its place in the file.
//! Never a panic: whatever the input holds, it ends in one of these or in the right bytes.

use std::io;

use plimsoll_core::Bytes;

/// Why packed bytes could not be unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// It is no format that we read.
    #[error("not a zstd, gzip or BGZF file: it begins with {begins}; `file NAME` may tell what it is")]
    NotPacked {
        /// Its first bytes.
        begins: String,
    },
    /// Something in it cannot be right.
    #[error("damaged at byte {at}: {what}; nothing after it was unpacked, get the file again")]
    Damaged {
        /// Where the frame, member or field begins that is wrong.
        at: u64,
        /// What is wrong with it.
        what: DamageError,
    },
    /// It ends too early.
    #[error("cut off at byte {at}, inside {inside}; get the whole file")]
    CutOff {
        /// Where it ends.
        at: u64,
        /// What is not whole.
        inside: &'static str,
    },
    /// It is right, but needs something that is not there.
    #[error("cannot be unpacked from byte {at} on: {needs}")]
    Unsupported {
        /// Where.
        at: u64,
        /// What it needs.
        needs: String,
    },
    /// It gives more than the caller wants at most.
    #[error("gives more than {limit}; raise the limit if that is meant")]
    OverLimit {
        /// What the caller wants at most.
        limit: Bytes,
    },
    /// The input cannot be read.
    #[error("the input cannot be read from byte {at} on: {reason}")]
    Unreadable {
        /// How far it was read.
        at: u64,
        /// Why not further.
        reason: io::Error,
    },
}

/// What is wrong at a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DamageError {
    /// Neither a frame nor a member begins where one should.
    #[error("no {0} begins here")]
    NoBeginning(&'static str),
    /// A field of a header holds what it must not.
    #[error("{0}")]
    Field(&'static str),
    /// The compressed data make no sense.
    #[error("the compressed data make no sense ({0})")]
    Content(String),
    /// The checksum of the content is another.
    #[error("the checksum of the content does not match")]
    Checksum,
    /// It gave another number of bytes than it says.
    #[error("{got} bytes came out where {said} are said")]
    Length {
        /// What the file says.
        said: u64,
        /// What came out.
        got: u64,
    },
    /// The seek table and the frames differ.
    #[error("the seek table does not describe the frames before it")]
    SeekTable,
    /// The record of the filter.
    #[error("the record of the filter is damaged")]
    FilterRecord,
}

impl UnpackError {
    pub(crate) fn damaged(at: u64, what: DamageError) -> Self {
        Self::Damaged { at, what }
    }
}
