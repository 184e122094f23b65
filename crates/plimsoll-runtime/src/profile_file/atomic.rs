//! Writing a file so that its name always holds either all of the old or all of the new.
//! Invariant: an error, a full disk or a kill at any moment leaves what was there before under the final name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::ProfileFileError;

/// Puts `text` at `path`. The draft lies beside it, since only within one file system is a rename atomic.
///
/// `draft` is a suffix that nobody else writes under at the same time.
pub(super) fn write(path: &Path, draft: &str, text: &str) -> Result<(), ProfileFileError> {
    let draft = beside(path, draft);
    let failed = |source| ProfileFileError::system("write", path, source);
    let written = create_anew(&draft).and_then(|mut file| fill(&mut file, text.as_bytes()));
    if let Err(source) = written.and_then(|()| fs::rename(&draft, path)) {
        // The draft is of no use to anyone; that it could not be removed either is not the news.
        let _ = fs::remove_file(&draft);
        return Err(failed(source));
    }
    sync_folder(path);
    Ok(())
}

/// The path with a suffix to its name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The folder of a file; `.` for a bare name.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file, never one that lies there already: a killed writer's draft is removed, a link is not followed.
fn create_anew(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Writes all of it down to the disk: a rename may reach the disk before the bytes do.
fn fill(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the rename last through a power cut. Not every file system can; without it the old profile comes back whole.
fn sync_folder(path: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder(path)).and_then(|folder| folder.sync_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_writers_draft_is_in_nobodys_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profile.toml");
        fs::write(&path, "old").expect("written");
        fs::write(beside(&path, ".new"), "half of someth").expect("written");
        write(&path, ".new", "new").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "new");
        assert!(!beside(&path, ".new").exists());
    }

    #[test]
    fn what_cannot_be_put_in_place_leaves_no_draft() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profile.toml");
        fs::create_dir(&path).expect("created");
        fs::write(path.join("occupied"), "").expect("written");
        assert!(matches!(write(&path, ".new", "new"), Err(ProfileFileError::Io { doing: "write", .. })));
        assert!(!beside(&path, ".new").exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_as_such() {
        let mut full = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let source = fill(&mut full, b"text").expect_err("no room");
        let error = ProfileFileError::system("write", Path::new("/dev/full"), source);
        assert!(matches!(error, ProfileFileError::Full { .. }), "{error}");
    }

    #[test]
    fn a_bare_name_lies_in_the_current_folder() {
        assert_eq!(folder(Path::new("profile.toml")), Path::new("."));
        assert_eq!(folder(Path::new("/a/profile.toml")), Path::new("/a"));
    }
}
