//! One fragment on its way into the store. Its lock is the system's and goes with its process, however that ends; what was
//! fetched stays, and whoever claims it next goes on behind it.
//! Invariant: whoever holds the lock holds it on the file of that name, and only he renames it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::Wanted;
use crate::digest::Digest;
use crate::error::FragmentError;

/// What became of a claim.
#[derive(Debug)]
pub enum Claim {
    /// It is there already.
    There,
    /// Another process, or thread, is fetching it.
    Busy,
    /// It is the caller's to fetch.
    Mine(Part),
}

/// A fragment that the caller fetches. Dropping it leaves what was fetched to the next.
#[derive(Debug)]
pub struct Part {
    object: PathBuf,
    path: PathBuf,
    file: File,
    wanted: Wanted,
    have: u64,
}

impl Part {
    pub(super) fn claim(object: PathBuf, path: PathBuf, wanted: Wanted) -> Result<Claim, FragmentError> {
        let writing = |error| FragmentError::writing(&path, error);
        loop {
            let is_there = || fs::metadata(&object).is_ok_and(|metadata| metadata.len() == wanted.bytes);
            if is_there() {
                return Ok(Claim::There);
            }
            let mut open = OpenOptions::new();
            let file = open.read(true).write(true).create(true).truncate(false).open(&path).map_err(writing)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Claim::Busy),
                Err(TryLockError::Error(error)) => return Err(writing(error)),
            }
            // The one before may have renamed or removed this very file between opening and locking.
            if !is_same(&file, &path) {
                continue;
            }
            if is_there() {
                let _ = fs::remove_file(&path);
                return Ok(Claim::There);
            }
            let have = file.metadata().map_err(writing)?.len();
            let mut part = Self { object, path, file, wanted, have };
            if have > wanted.bytes {
                part.restart()?;
            }
            return Ok(Claim::Mine(part));
        }
    }

    /// Bytes that are there already: fetch those behind them.
    pub fn have(&self) -> u64 {
        self.have
    }

    /// Bytes that are still missing.
    pub fn missing(&self) -> u64 {
        self.wanted.bytes - self.have
    }

    /// Forgets what is there.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn restart(&mut self) -> Result<(), FragmentError> {
        self.file.set_len(0).map_err(|error| FragmentError::writing(&self.path, error))?;
        self.have = 0;
        Ok(())
    }

    /// Writes what comes next; what is more than its size is refused.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), FragmentError> {
        if bytes.len() as u64 > self.missing() {
            return Err(FragmentError::damaged(
                self.path.display().to_string(),
                "there is more of it than the index says",
            ));
        }
        let written = self.file.seek(SeekFrom::Start(self.have)).and_then(|_| self.file.write_all(bytes));
        written.map_err(|error| FragmentError::writing(&self.path, error))?;
        self.have += bytes.len() as u64;
        Ok(())
    }

    /// It is all there: if it is what its name says it gets that name, otherwise what is there is forgotten.
    ///
    /// # Errors
    /// [`FragmentError::Damaged`] if it is something else.
    pub fn commit(self) -> Result<(), FragmentError> {
        self.commit_or_back().map_err(|back| back.0)
    }

    /// The same, and if it fails the claim comes back.
    pub(crate) fn commit_or_back(mut self) -> Result<(), Box<(FragmentError, Self)>> {
        let named = self.named();
        named.map_err(|error| Box::new((error, self)))
    }

    fn named(&mut self) -> Result<(), FragmentError> {
        let mut bytes = Vec::with_capacity(self.wanted.bytes as usize);
        let read = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.read_to_end(&mut bytes));
        read.map_err(|error| FragmentError::reading(&self.path, error))?;
        if Digest::of(&bytes) != self.wanted.digest {
            self.restart()?;
            return Err(FragmentError::damaged(
                format!("what came as fragment {}", self.wanted.digest),
                "it is something else",
            ));
        }
        let folder = self.object.parent().unwrap_or(Path::new("."));
        let named = fs::create_dir_all(folder)
            .and_then(|()| self.file.sync_data())
            .and_then(|()| fs::rename(&self.path, &self.object));
        named.map_err(|error| FragmentError::writing(&self.object, error))
    }
}

/// Whether a file still has this name.
#[cfg(unix)]
fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(open), Ok(named)) = (file.metadata(), fs::metadata(path)) else { return false };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

/// Elsewhere a file that is open keeps its name.
#[cfg(not(unix))]
fn is_same(_: &File, _: &Path) -> bool {
    true
}
