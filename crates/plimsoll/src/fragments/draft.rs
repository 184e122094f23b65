//! An output that appears under its name when it is whole; until then it lies beside it, and goes if the work ends before.
//! Invariant: a name holds the whole output, or what it held before.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_fragments::FragmentError;

/// A file that has no name yet.
pub(super) struct Draft {
    path: PathBuf,
    name: PathBuf,
    force: bool,
}

impl Draft {
    /// Begins a file of this name; without `force` only if there is none.
    pub(super) fn begin(name: &Path, force: bool) -> Result<(Self, File), FragmentError> {
        let writing = |source: io::Error| FragmentError::File { path: name.to_owned(), doing: "written", source };
        if !force && name.exists() {
            return Err(writing(io::ErrorKind::AlreadyExists.into()));
        }
        let file_name = name.file_name().unwrap_or_default().to_string_lossy();
        let path = name.with_file_name(format!(".{file_name}.{}.part", std::process::id()));
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).map_err(writing)?;
        Ok((Self { path, name: name.to_owned(), force }, file))
    }

    /// It is whole.
    pub(super) fn finish(self) -> Result<(), FragmentError> {
        let named = if self.force {
            fs::rename(&self.path, &self.name)
        } else {
            // A link is made only where there is nothing yet, whatever came up meanwhile.
            match fs::hard_link(&self.path, &self.name) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(&self.path, &self.name),
                linked => linked,
            }
        };
        named.map_err(|source| FragmentError::File { path: self.name.clone(), doing: "written", source })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a rename there is none; why the work ended otherwise is told already.
        let _ = fs::remove_file(&self.path);
    }
}
