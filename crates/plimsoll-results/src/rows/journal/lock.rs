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
        let file = file.map_err(failed)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, journal).map_err(failed)? => return Ok(file),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RowsError::Busy { path: output.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(RowsError::system("lock", journal, source)),
        }
    }
    Err(RowsError::Busy { path: output.to_owned() })
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
    fn a_file_that_was_removed_is_not_at_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let file = File::create(&path).expect("created");
        assert!(is_at(&file, &path).expect("looked"));
        fs::remove_file(&path).expect("removed");
        assert!(!is_at(&file, &path).expect("looked"));
        File::create(&path).expect("created");
        assert!(!is_at(&file, &path).expect("looked"), "another file of the same name");
    }
}
