//! What can go wrong with a trace's file, each with the path and what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no trace. The work itself was not disturbed: its results stand.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// No space is left.
    #[error("cannot write the trace {}: {source}; free some space, or write it elsewhere", path.display())]
    Full {
        /// The trace.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder or file may not be written.
    #[error("cannot write the trace {}: {source}; allow it, or write it where you may", path.display())]
    NotAllowed {
        /// The trace.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder lies where the trace should be.
    #[error("cannot write the trace {}: it is a folder; name a file in it", path.display())]
    IsFolder {
        /// The trace.
        path: PathBuf,
    },
    /// Anything else that the system refused.
    #[error("cannot write the trace {}: {source}; check the path, or write it elsewhere", path.display())]
    Io {
        /// The trace.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl TraceError {
    /// Sorts what the system said by what to do about it.
    pub(super) fn system(path: &Path, source: io::Error) -> Self {
        use io::ErrorKind as Kind;
        let path = path.to_owned();
        match source.kind() {
            Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => Self::Full { path, source },
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Self::NotAllowed { path, source },
            _ => Self::Io { path, source },
        }
    }
}
