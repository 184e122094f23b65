//! Putting a whole file in place, through a draft beside it. Never waits for the disk: after a power cut frames are made
//! again. Invariant: an error or a kill leaves what was there before under that name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::error::EncodeError;

/// What the draft's name ends with: no image's, so that nobody takes it for one.
const DRAFT: &str = ".new";

/// Puts what `fill` writes at `path`.
pub(super) fn whole(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let unwritable = |reason| EncodeError::Unwritable { path: path.to_owned(), reason };
    let draft = beside(path);
    let placed = write_down(&draft, fill).and_then(|()| fs::rename(&draft, path).map_err(EncodeError::Write));
    placed.map_err(|error| {
        // Of no use to anyone, and the room may be what was missing; that it could not be removed is not the news.
        let _ = fs::remove_file(&draft);
        match error {
            EncodeError::Write(reason) => unwritable(reason),
            error => error,
        }
    })
}

fn write_down(
    draft: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let mut out = BufWriter::with_capacity(1 << 16, create_anew(draft).map_err(EncodeError::Write)?);
    fill(&mut out)?;
    out.flush().map_err(EncodeError::Write)
}

/// A new file, never one that lies there already: a killed run's draft is removed, a link is not followed.
fn create_anew(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).open(path),
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(DRAFT);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Encoding;

    #[test]
    fn a_killed_runs_draft_is_in_nobodys_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("frame.png");
        fs::write(&path, "old").expect("written");
        fs::write(beside(&path), "half of someth").expect("written");
        whole(&path, |out| out.write_all(b"new").map_err(EncodeError::Write)).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "new");
        assert!(!beside(&path).exists());
    }

    #[test]
    fn what_fails_half_way_leaves_the_old_and_no_draft() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("frame.png");
        fs::write(&path, "old").expect("written");
        let failed = whole(&path, |out| {
            out.write_all(b"half").expect("room");
            Err(EncodeError::EightBitsOnly(Encoding::Qoi))
        });
        assert!(matches!(failed, Err(EncodeError::EightBitsOnly(Encoding::Qoi))));
        assert_eq!(fs::read_to_string(&path).expect("read"), "old");
        assert!(!beside(&path).exists());
    }
}
