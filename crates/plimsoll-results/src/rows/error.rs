//! What can go wrong with rows, each said with what to do next.

use std::io;
use std::path::{Path, PathBuf};

use super::format::Format;
use super::row::RowError;
use super::schema::SchemaDifference;

/// Why rows could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowsError {
    /// There is a finished output already.
    #[error("{} is there already: add to it, name another file, or remove it", path.display())]
    OutputExists {
        /// The output.
        path: PathBuf,
    },
    /// An earlier run did not come to its end.
    #[error(
        "{} holds {rows} rows of a run that did not end: continue it, or remove the file to start over",
        journal.display()
    )]
    JournalExists {
        /// The journal.
        journal: PathBuf,
        /// How many rows it holds.
        rows: u64,
    },
    /// Another run writes to the same output at this moment.
    #[error("another run is writing to {}: wait for its end, or name another file", path.display())]
    Busy {
        /// The output.
        path: PathBuf,
    },
    /// A file that another schema wrote.
    #[error("{} has other columns than this run: {difference}. Name another file, or ask for the same columns", path.display())]
    Schema {
        /// The output or its journal.
        path: PathBuf,
        /// Which columns.
        difference: SchemaDifference,
    },
    /// A file that cannot be read as what it should be.
    #[error("{} cannot be continued: {what}. Repair it, or move it away to start over", path.display())]
    Damaged {
        /// The output or its journal.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
    /// Something else lies where the journal would.
    #[error("{} is no journal of rows, so it is left alone: move it away, or name another output", path.display())]
    NotAJournal {
        /// Where the journal would be.
        path: PathBuf,
    },
    /// A journal that a newer version wrote.
    #[error("{} was written by a newer version: continue it with that one, or remove it to start over", path.display())]
    NewerJournal {
        /// The journal.
        path: PathBuf,
    },
    /// A folder, a device or a pipe.
    #[error("{} is no ordinary file: name one, or write to standard output", path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// The row does not suit the schema. Nothing was written.
    #[error(transparent)]
    Row(#[from] RowError),
    /// Rows of this format cannot be shown one by one.
    #[error("{format} has no rows to show one by one: name a file, or ask for csv or jsonl")]
    NeedsFile {
        /// The format.
        format: Format,
    },
    /// This program was built without Parquet.
    #[error("this build cannot write or read Parquet: ask for csv, json or jsonl")]
    NoParquet,
    /// Whoever read our output has had enough. Usually no failure: end quietly.
    #[error("nobody reads the output any more")]
    PipeClosed,
    /// The disk is full, or a quota or limit is reached. Rows that were taken before are safe.
    #[error("no room to write {}: make some, then continue; rows that were there before are kept", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Any other refusal of the system.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl RowsError {
    /// What a refusal of the system means.
    pub(super) fn system(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { path, source }
            }
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Io { doing, path, source },
        }
    }

    /// A file that is not what it should be.
    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.into() }
    }
}
