//! Where the book lies: a folder that only this user can write to.
//! Never uses a folder that somebody else owns or can write to, nor follows a link to one.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{BOOK, BookError};

/// The folder of this user's book.
pub(super) fn of_user() -> PathBuf {
    if let Some(named) = env::var_os(BOOK).filter(|named| !named.is_empty()) {
        return PathBuf::from(named);
    }
    chosen(env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), &env::temp_dir(), &user())
}

/// What lasts as long as a login is the place for it, if there is one that can be written to.
fn chosen(runtime: Option<PathBuf>, temporary: &Path, user: &str) -> PathBuf {
    let runtime = runtime.filter(|folder| folder.is_absolute()).map(|folder| folder.join("plimsoll"));
    runtime.filter(|folder| make(folder).is_ok()).unwrap_or_else(|| temporary.join(format!("plimsoll-{user}")))
}

#[cfg(unix)]
fn user() -> String {
    rustix::process::geteuid().as_raw().to_string()
}

#[cfg(not(unix))]
fn user() -> String {
    env::var("USERNAME").unwrap_or_default().chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Makes the folder if it is not there, and looks whether it can be trusted.
pub(super) fn make(folder: &Path) -> Result<(), BookError> {
    match create(folder) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            return Err(BookError::Io { doing: "make the folder", path: folder.to_owned(), source });
        }
        _ => {}
    }
    let looked = fs::symlink_metadata(folder);
    let metadata = looked.map_err(|source| BookError::Io { doing: "look at", path: folder.to_owned(), source })?;
    match fault_of(&metadata) {
        Some(reason) => Err(BookError::Folder { path: folder.to_owned(), reason }),
        None => Ok(()),
    }
}

#[cfg(unix)]
fn create(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)
}

#[cfg(unix)]
fn fault_of(metadata: &fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let (owner, me) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if !metadata.is_dir() {
        return Some("it is no folder".into());
    }
    if owner != me {
        return Some(format!("it is user {owner}'s, not yours"));
    }
    (metadata.mode() & 0o022 != 0).then(|| "others can write to it".into())
}

#[cfg(not(unix))]
fn fault_of(metadata: &fs::Metadata) -> Option<String> {
    (!metadata.is_dir()).then(|| "it is no folder".into())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_login_s_folder_is_used_where_it_can_be() {
        let place = tempfile::tempdir().expect("a folder");
        let runtime = place.path().join("run");
        fs::create_dir(&runtime).expect("made");
        let temporary = Path::new("/tmp");
        assert_eq!(chosen(Some(runtime.clone()), temporary, "7"), runtime.join("plimsoll"));
        let mode = fs::metadata(runtime.join("plimsoll")).expect("made").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "for this user alone");
        assert_eq!(chosen(Some(place.path().join("gone")), temporary, "7"), Path::new("/tmp/plimsoll-7"));
        assert_eq!(chosen(Some("relative".into()), temporary, "7"), Path::new("/tmp/plimsoll-7"));
        assert_eq!(chosen(None, temporary, "8"), Path::new("/tmp/plimsoll-8"), "each user has a folder");
    }

    #[test]
    fn a_link_and_a_folder_that_others_can_write_to_are_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let (target, link, open) = (place.path().join("target"), place.path().join("link"), place.path().join("open"));
        fs::create_dir(&target).expect("made");
        symlink(&target, &link).expect("linked");
        assert!(matches!(make(&link), Err(BookError::Folder { .. })));
        fs::create_dir(&open).expect("made");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("set");
        assert!(matches!(make(&open), Err(BookError::Folder { .. })));
        assert!(make(&target).is_ok());
    }

    #[test]
    fn another_user_s_folder_is_refused() {
        // Everybody can see the root folder, and it is root's.
        let metadata = fs::metadata("/").expect("there");
        let mine = rustix::process::geteuid().as_raw() == 0;
        assert_eq!(fault_of(&metadata).is_some(), !mine || metadata.permissions().mode() & 0o022 != 0);
        if mine {
            let place = tempfile::tempdir().expect("a folder");
            let theirs = place.path().join("theirs");
            fs::create_dir(&theirs).expect("made");
            std::os::unix::fs::chown(&theirs, Some(12_345), None).expect("root may give away");
            assert!(matches!(make(&theirs), Err(BookError::Folder { reason, .. }) if reason.contains("12345")));
        }
    }
}
