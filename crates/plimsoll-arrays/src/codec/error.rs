//! What can be wrong with an encoded chunk. Never a panic: whatever the bytes are, they end in one of these or in the chunk.

/// Why a chunk could not be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// There is no memory for it.
    #[error("no memory for {what}; free some, or make chunks smaller")]
    NoMemory {
        /// For what.
        what: &'static str,
    },
    /// The chunk to encode is not as long as the layout says.
    #[error(
        "a chunk of {got} bytes where the layout has {expected}; hand over whole chunks, padded with the fill value"
    )]
    ChunkLength {
        /// What the layout says.
        expected: usize,
        /// What came.
        got: usize,
    },
    /// The library refused to encode.
    #[error("{codec} cannot encode a chunk: {why}")]
    Refused {
        /// Which.
        codec: &'static str,
        /// What it said.
        why: String,
    },
    /// The encoded bytes make no sense.
    #[error("the {codec} data make no sense: {why}")]
    Damaged {
        /// Which.
        codec: &'static str,
        /// What is wrong with them.
        why: String,
    },
    /// They decode to another number of bytes than a chunk has.
    #[error("{got} bytes come out where a chunk has {expected}")]
    Length {
        /// What a chunk has.
        expected: usize,
        /// What comes out; at least this much, if decoding was stopped.
        got: u64,
    },
    /// They are right, but need something that is not there.
    #[error("the chunk cannot be decoded here: {what}")]
    Unsupported {
        /// What it needs.
        what: String,
    },
}

impl CodecError {
    pub(crate) fn damaged(codec: &'static str, why: impl Into<String>) -> Self {
        Self::Damaged { codec, why: why.into() }
    }

    /// An error unless exactly so many bytes came out.
    pub(crate) fn check_length(expected: usize, got: u64) -> Result<(), Self> {
        if got == expected as u64 { Ok(()) } else { Err(Self::Length { expected, got }) }
    }
}
