//! Putting a whole file in place: its name always holds either all of the old or all of the new.
//! Never merges or reads. Invariant: an error, a full disk or a kill leaves what was there before under that name.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::error::RowsError;

/// What the draft's name ends with. One name for all, since only the holder of the journal's lock writes it, and a
/// killed run's draft is then found and written over.
const DRAFT: &str = ".new";

/// The file as its writer sees it.
pub(super) type Draft = BufWriter<File>;

/// Puts what `fill` writes at `path`.
pub(super) fn replace(path: &Path, fill: impl FnOnce(&mut Draft) -> Result<(), RowsError>) -> Result<(), RowsError> {
    let draft = beside(path, DRAFT);
    let placed = write_down(&draft, fill).and_then(|()| {
        fs::rename(&draft, path).map_err(|source| RowsError::system("put rows in place at", path, source))
    });
    if placed.is_err() {
        // Of no use to anyone, and the room may be what was missing; that it could not be removed is not the news.
        let _ = fs::remove_file(&draft);
    }
    placed?;
    sync_folder(path)
}

/// All of it down to the disk: a rename may reach the disk before the bytes do.
fn write_down(draft: &Path, fill: impl FnOnce(&mut Draft) -> Result<(), RowsError>) -> Result<(), RowsError> {
    let failed = |source| RowsError::system("write", draft, source);
    let mut out = BufWriter::with_capacity(1 << 16, create_anew(draft).map_err(failed)?);
    fill(&mut out)?;
    out.flush().map_err(failed)?;
    out.get_ref().sync_all().map_err(failed)
}

/// A new file, never one that lies there already: a killed run's draft is removed, a link is not followed.
fn create_anew(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).open(path),
    }
}

/// The path with a suffix to its name.
pub(super) fn beside(path: &Path, suffix: impl AsRef<OsStr>) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes names that came, changed or went last through a power cut.
pub(super) fn sync_folder(path: &Path) -> Result<(), RowsError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match cfg!(unix).then(|| File::open(folder).and_then(|folder| folder.sync_all())) {
        // Not every file system can; those that cannot keep names in order by other means.
        Some(Err(source)) if !matches!(source.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Err(RowsError::system("make sure of the names in", folder, source))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: &Path, text: &str) -> Result<(), RowsError> {
        replace(path, |out| out.write_all(text.as_bytes()).map_err(|source| RowsError::system("write", path, source)))
    }

    #[test]
    fn a_killed_runs_draft_is_in_nobodys_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("scores.csv");
        fs::write(&path, "old").expect("written");
        fs::write(beside(&path, DRAFT), "half of someth").expect("written");
        put(&path, "new").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "new");
        assert!(!beside(&path, DRAFT).exists());
    }

    #[test]
    fn what_fails_half_way_leaves_the_old_and_no_draft() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("scores.csv");
        fs::write(&path, "old").expect("written");
        let failed = replace(&path, |out| {
            out.write_all(b"half").expect("room");
            Err(RowsError::NoParquet)
        });
        assert!(matches!(failed, Err(RowsError::NoParquet)));
        assert_eq!(fs::read_to_string(&path).expect("read"), "old");
        assert!(!beside(&path, DRAFT).exists());
    }
}
