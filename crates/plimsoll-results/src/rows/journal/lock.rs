//! The lock between runs on one output: an advisory lock on the journal itself.
//! Invariant: whoever holds it holds the file that its name leads to. A process that dies holds it no longer.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::super::error::RowsError;

/// How often a journal may vanish between opening and locking: each time, another run came to its end just then.
const TRIES: usize = 16;

/// Opens the journal, or an empty one, and locks it.
pub(super) fn open_locked(journal: &Path, output: &Path) -> Result<File, RowsError> {
    let failed = |source| RowsError::system("open", journal, source);
    for _ in 0..TRIES {
        if fs::metadata(journal).is_ok_and(|found| !found.is_file()) {
            return Err(RowsError::NotAJournal { path: journal.to_owned() });
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(journal);
        if let Some(locked) = lock(file.map_err(failed)?, journal, output)? {
            return Ok(locked);
        }
    }
    Err(RowsError::Busy { path: output.to_owned() })
}

/// Locks an opened journal; none when its name leads elsewhere by now.
fn lock(file: File, journal: &Path, output: &Path) -> Result<Option<File>, RowsError> {
    let failed = |source| RowsError::system("lock", journal, source);
    match file.try_lock() {
        Ok(()) => Ok(is_at(&file, journal).map_err(failed)?.then_some(file)),
        Err(TryLockError::WouldBlock) => Err(RowsError::Busy { path: output.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Whether the name still leads to this file: the run that held the lock may have removed it meanwhile.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let held = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())))
}

/// Where files have no number to compare, that there is one must do.
#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> io::Result<bool> {
    path.try_exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_refuses_and_a_dropped_one_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (journal, output) = (folder.path().join("a.csv.journal"), folder.path().join("a.csv"));
        let held = open_locked(&journal, &output).expect("free");
        assert!(matches!(open_locked(&journal, &output), Err(RowsError::Busy { path }) if path == output));
        drop(held);
        open_locked(&journal, &output).expect("given back");
    }

    #[cfg(unix)]
    #[test]
    fn a_journal_that_was_removed_before_it_was_locked_is_not_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.csv.journal");
        let opened = || OpenOptions::new().read(true).write(true).open(&path).expect("there");
        File::create(&path).expect("created");
        assert!(lock(opened(), &path, &path).expect("free").is_some());
        let (early, late) = (opened(), opened());
        fs::remove_file(&path).expect("removed");
        assert!(lock(early, &path, &path).expect("free").is_none(), "nothing is there");
        File::create(&path).expect("created");
        assert!(lock(late, &path, &path).expect("free").is_none(), "another file of the same name");
    }
}
