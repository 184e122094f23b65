//! What processes are about to fetch: each names it in a file whose lock it holds until it is done, so that a limit holds for
//! all of them together, and nobody makes room of what another one is waiting for.
//! Never waits: a file whose lock is free is a process that has ended, and goes.
//! Invariant: read and written only while `collecting.lock` is held, so that nobody sees half of one.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Wanted;
use crate::digest::Digest;
use crate::error::FragmentError;

/// Room for fragments that are being fetched, until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it gives the room to others"]
pub struct Reserved {
    path: PathBuf,
    /// Its lock is what counts.
    _file: File,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // One that stays has no lock any more, and the next who makes room removes it.
        let _ = fs::remove_file(&self.path);
    }
}

impl Reserved {
    /// Says that these are about to be fetched.
    pub(super) fn write(folder: &Path, wanted: &[Wanted]) -> Result<Self, FragmentError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = folder.join(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let lines: String = wanted.iter().map(|wanted| format!("{} {}\n", wanted.digest, wanted.bytes)).collect();
        let written = || {
            let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
            file.lock()?;
            file.write_all(lines.as_bytes())?;
            Ok(file)
        };
        let file = written().map_err(|error| FragmentError::writing(&path, error))?;
        Ok(Self { path, _file: file })
    }
}

/// What all living processes are about to fetch.
pub(super) fn all(folder: &Path) -> Vec<Wanted> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.flat_map(|entry| of_living(&entry.path())).collect()
}

/// What one file names; nothing if whoever wrote it has ended.
fn of_living(path: &Path) -> Vec<Wanted> {
    let Ok(mut file) = File::open(path) else { return Vec::new() };
    if file.try_lock().is_ok() {
        let _ = fs::remove_file(path);
        return Vec::new();
    }
    let mut text = String::new();
    // What cannot be read counts for nothing: the disk's own error is told where it matters.
    let _ = file.read_to_string(&mut text);
    text.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Wanted> {
    let (digest, bytes) = line.split_once(' ')?;
    Some(Wanted { digest: digest.parse::<Digest>().ok()?, bytes: bytes.parse().ok()? })
}
