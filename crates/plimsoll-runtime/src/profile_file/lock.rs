//! The lock between processes that write one profile: an advisory lock on a file beside it.
//! Never deletes that file: a process that had just opened it would lock a file that nobody else sees.
//! Invariant: a process that dies, however it dies, holds the lock no longer (the system gives it back).

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::ProfileFileError;

/// The longest pause between two tries. Holders take milliseconds.
const PAUSE_MAX: Duration = Duration::from_millis(16);

/// The right to write. Given back when dropped.
#[must_use = "the lock is given back when this is dropped"]
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock; gives up after `wait`.
    pub(super) fn take(path: &Path, wait: Duration) -> Result<Self, ProfileFileError> {
        let failed = |source| ProfileFileError::system("lock", path, source);
        let file = OpenOptions::new().create(true).write(true).truncate(false).open(path).map_err(failed)?;
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) if start.elapsed() >= wait => {
                    return Err(ProfileFileError::Busy { lock: path.to_owned(), waited: wait });
                }
                Err(TryLockError::WouldBlock) => thread::sleep(pause),
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
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
        assert!(matches!(refused, ProfileFileError::Busy { waited, .. } if waited == Duration::from_millis(5)));
        drop(held);
        drop(Lock::take(&path, Duration::ZERO).expect("given back"));
    }
}
