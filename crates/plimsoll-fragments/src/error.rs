//! What can go wrong with fragments, named by what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FragmentError {
    /// A file could not be read or written.
    #[error("{} cannot be {doing}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// `read` or `written`.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The input is not what it should be: give another one.
    #[error("{what} is not {wanted}: {why}")]
    Malformed {
        /// The input.
        what: String,
        /// What it should be.
        wanted: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Bytes are not those that the index names: fetch or pack them again.
    #[error("{what} is damaged: {why}; fetch or pack it again")]
    Damaged {
        /// Where the bytes lay.
        what: String,
        /// How that was noticed.
        why: String,
    },
    /// A limit was reached: ask for less, or raise it where that can be done.
    #[error("{what} is {size}, more than {limit}")]
    TooLarge {
        /// What.
        what: String,
        /// How large.
        size: u64,
        /// How large it may be.
        limit: u64,
    },
    /// A server did not give what was asked for: try again, or elsewhere.
    #[error("{url}: {why}")]
    Server {
        /// Which.
        url: String,
        /// What it did.
        why: String,
    },
    /// There is no room for it on disk: free some, or raise the limit.
    #[error("the store {} has no room: {wanted} bytes are wanted, {free} are free; remove something, or allow it more", path.display())]
    Full {
        /// The store.
        path: PathBuf,
        /// Bytes that are wanted.
        wanted: u64,
        /// Bytes that it may still take.
        free: u64,
    },
    /// There is no such tensor: the index lists those there are.
    #[error("there is no tensor {name:?} in {model}")]
    NoSuchTensor {
        /// Which.
        name: String,
        /// Where.
        model: String,
    },
    /// Another process holds what is needed for too long: end it, or wait longer.
    #[error("another process has been fetching {what} for {seconds} s; end it, or try again")]
    Busy {
        /// What.
        what: String,
        /// How long was waited.
        seconds: u64,
    },
    /// Somebody asked for the end.
    #[error("stopped")]
    Stopped,
}

impl FragmentError {
    pub(crate) fn reading(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), doing: "read", source }
    }

    pub(crate) fn writing(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), doing: "written", source }
    }

    pub(crate) fn malformed(what: impl Into<String>, wanted: &'static str, why: impl Into<String>) -> Self {
        Self::Malformed { what: what.into(), wanted, why: why.into() }
    }

    pub(crate) fn damaged(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Damaged { what: what.into(), why: why.into() }
    }

    pub(crate) fn server(url: &str, why: impl Into<String>) -> Self {
        Self::Server { url: url.to_owned(), why: why.into() }
    }
}
