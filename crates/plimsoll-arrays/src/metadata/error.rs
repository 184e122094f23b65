//! What can be wrong with a metadata file, each with the field.

use crate::layout::SpecError;
use crate::limits::METADATA_BYTES_MAX;

/// Why a metadata file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// It is larger than a metadata file should be.
    #[error("it has {bytes} bytes, metadata are read up to {METADATA_BYTES_MAX}; move large attributes elsewhere")]
    TooLarge {
        /// Its bytes.
        bytes: u64,
    },
    /// It is no JSON.
    #[error("it is no JSON")]
    Json(#[from] serde_json::Error),
    /// A field is not there, or holds what it must not.
    #[error("'{field}' {why}")]
    Field {
        /// Where it is, such as `chunk_grid.name`.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// It is right, but needs something that is not there.
    #[error("'{field}' needs {what}, which is not known here")]
    Unsupported {
        /// Where.
        field: String,
        /// What it needs.
        what: String,
    },
    /// The shapes in it do not go together.
    #[error("its shapes do not go together")]
    Shapes(#[from] SpecError),
}

impl MetadataError {
    pub(crate) fn field(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Field { field: field.into(), why: why.into() }
    }

    pub(crate) fn unsupported(field: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Unsupported { field: field.into(), what: what.into() }
    }
}
