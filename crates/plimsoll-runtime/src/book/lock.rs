//! The lock between members that change the book: an advisory lock on a file beside it.
//! Never waits without an end, and never takes a lock on a file that somebody has removed: others would not see it.
//! Invariant: a process that dies, however it dies, holds it no longer (the system gives it back).

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::BookError;

/// The longest pause between two tries. Holders take well below a millisecond.
const PAUSE_MAX: Duration = Duration::from_millis(8);

/// The right to change the book. Given back when dropped.
#[must_use = "the lock is given back when this is dropped"]
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock; gives up after `wait`.
    pub(super) fn take(path: &Path, wait: Duration) -> Result<Self, BookError> {
        let failed = |source| BookError::Io { doing: "lock", path: path.to_owned(), source };
        let start = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            let file = OpenOptions::new().create(true).write(true).truncate(false).open(path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) if is_still(path, &file) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                _ if start.elapsed() >= wait => return Err(BookError::Busy { path: path.to_owned(), waited: wait }),
                _ => thread::sleep(pause),
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// Whether the path still names this file.
#[cfg(unix)]
fn is_still(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let (named, held) = (std::fs::metadata(path).map(identity), file.metadata().map(identity));
    matches!((named, held), (Ok(named), Ok(held)) if named == held)
}

#[cfg(not(unix))]
fn is_still(_: &Path, _: &File) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_waited_for_so_long_and_no_longer() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let held = Lock::take(&path, Duration::ZERO).expect("free");
        let refused = Lock::take(&path, Duration::from_millis(5)).expect_err("held");
        assert!(matches!(refused, BookError::Busy { waited, .. } if waited == Duration::from_millis(5)));
        drop(held);
        drop(Lock::take(&path, Duration::ZERO).expect("given back"));
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_on_a_file_that_was_removed_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let held = Lock::take(&path, Duration::ZERO).expect("free");
        std::fs::remove_file(&path).expect("removed");
        assert!(!is_still(&path, &held._file));
        let anew = Lock::take(&path, Duration::ZERO).expect("a new file is there");
        assert!(is_still(&path, &anew._file));
    }
}
