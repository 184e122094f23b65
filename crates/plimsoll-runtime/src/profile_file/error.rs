//! What can go wrong with the profile's file, each with the path and what to do next.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_core::Bytes;
use plimsoll_core::profile::Mismatch;

use super::text::FILE_MAX;

/// Why the profile's file could not be read or written. Work goes on without it: nothing is lost but figures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileFileError {
    /// The platform names no cache folder.
    #[error("no cache folder is known for this user; set HOME, or point PLIMSOLL_PROFILE at a file")]
    NoCacheFolder,
    /// Another process has been writing for too long.
    #[error("another process has held {} for {waited:?}; try again, or end that process", lock.display())]
    Busy {
        /// The lock that is held.
        lock: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The folder or file may not be written.
    #[error("cannot {doing} {}: {source}; allow it, or point PLIMSOLL_PROFILE at a file you may write", path.display())]
    NotAllowed {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No space is left. What was there before is still there.
    #[error("cannot {doing} {}: {source}; free some space, or point PLIMSOLL_PROFILE elsewhere", path.display())]
    Full {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else that the system refused.
    #[error("cannot {doing} {}: {source}; check the path, or point PLIMSOLL_PROFILE elsewhere", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no profile to export or import.
    #[error("there is no profile at {}; `plimsoll bench` measures one", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A folder, a pipe or a device lies where the profile should be.
    #[error("{} is not an ordinary file; name another one", path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
    },
    /// The file is too large to be a profile.
    #[error("{} holds {bytes}, more than the {} of any profile; name another file", path.display(), Bytes(FILE_MAX))]
    TooBig {
        /// Which file.
        path: PathBuf,
        /// How large it is.
        bytes: Bytes,
    },
    /// The file holds no profile.
    #[error("{} is not a profile: {reason}; export it again from the machine it comes from", path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A later version of the software wrote it. It is left alone.
    #[error(
        "{} was written by a later version (shape {found}); update this one, or run `plimsoll profile clear` with it",
        path.display()
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// The version of its shape.
        found: u32,
    },
    /// The profile of another machine lies where this one's should be. It is left alone.
    #[error(
        "{} is left alone, since it is another machine's: {mismatch}; point PLIMSOLL_PROFILE at another file, or \
         run `plimsoll profile clear` if that machine needs it no more",
        path.display()
    )]
    Occupied {
        /// Which file.
        path: PathBuf,
        /// How that machine differs.
        mismatch: Mismatch,
    },
    /// The profile is of another machine, driver or version.
    #[error("{} is refused: {mismatch}; `plimsoll bench` measures this machine", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// How it differs.
        mismatch: Mismatch,
    },
}

impl ProfileFileError {
    /// Sorts what the system said by what to do about it.
    pub(super) fn system(doing: &'static str, path: &Path, source: io::Error) -> Self {
        use io::ErrorKind as Kind;
        let path = path.to_owned();
        match source.kind() {
            Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => Self::Full { doing, path, source },
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Self::NotAllowed { doing, path, source },
            _ => Self::Io { doing, path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: io::ErrorKind) -> String {
        ProfileFileError::system("write", Path::new("/p/profile.toml"), kind.into()).to_string()
    }

    #[test]
    fn an_error_names_the_path_and_what_to_do() {
        assert_eq!(
            said(io::ErrorKind::StorageFull),
            "cannot write /p/profile.toml: no storage space; free some space, or point PLIMSOLL_PROFILE elsewhere"
        );
        assert_eq!(
            said(io::ErrorKind::ReadOnlyFilesystem),
            "cannot write /p/profile.toml: read-only filesystem or storage medium; allow it, or point \
             PLIMSOLL_PROFILE at a file you may write"
        );
        assert_eq!(
            said(io::ErrorKind::NotADirectory),
            "cannot write /p/profile.toml: not a directory; check the path, or point PLIMSOLL_PROFILE elsewhere"
        );
    }
}
