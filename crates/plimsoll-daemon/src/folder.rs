//! The folder of a daemon: its socket, its token, its books. Only its user may look into it.
//! Never follows a link that somebody else put there, and never changes the rights of a folder it did not make.
//! Invariant: what is written here is readable by its user alone, and whole under its name at every moment.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The name of the socket if nobody says another.
const SOCKET: &str = "serve.sock";
/// Who has it is the daemon here. The book of the user's programs may lie in the same folder, with a lock of its own.
const LOCK: &str = "serve.lock";

/// Why a folder will not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// It cannot be made or read.
    #[error("cannot use {}: {source}; name a socket in a folder of your own", path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could read or write there.
    #[error("{} is open to other users; take their rights away (chmod 700), or name a socket elsewhere", path.display())]
    Open {
        /// Which.
        path: PathBuf,
    },
    /// Another daemon is at work there.
    #[error("another daemon is at work in {}; there is one for each user", path.display())]
    Taken {
        /// Which.
        path: PathBuf,
    },
}

/// Where the socket of this user's daemon is: as the environment says (`PLIMSOLL_SOCKET`), or in the user's runtime folder.
pub fn socket() -> PathBuf {
    match std::env::var_os("PLIMSOLL_SOCKET").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => default_folder(std::env::var_os("XDG_RUNTIME_DIR").as_deref()).join(SOCKET),
    }
}

fn default_folder(runtime: Option<&OsStr>) -> PathBuf {
    match runtime.filter(|path| !path.is_empty()) {
        Some(path) => Path::new(path).join("plimsoll"),
        None => std::env::temp_dir().join(format!("plimsoll-{}", rustix::process::geteuid().as_raw())),
    }
}

/// A folder that one daemon owns.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held as long as the daemon lives; the kernel lets go of it however that ends.
    _lock: File,
}

impl Folder {
    /// Makes it if it is not there, and takes it for this process.
    ///
    /// # Errors
    /// It cannot be used, is open to others, or belongs to another daemon.
    pub fn take(path: &Path) -> Result<Self, FolderError> {
        let unusable = |source| FolderError::Unusable { path: path.to_owned(), source };
        match DirBuilder::new().recursive(true).mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(unusable(error)),
            _ => {}
        }
        let about = fs::symlink_metadata(path).map_err(unusable)?;
        if !about.is_dir() || about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o077 != 0 {
            return Err(FolderError::Open { path: path.to_owned() });
        }
        let lock = private().write(true).create(true).truncate(false).open(path.join(LOCK)).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(FolderError::Taken { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// How files here are opened: for their user alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Writes a file whole, or not at all: beside it first, then under its name. Nobody waits for the disk: these files are of use
/// as long as the machine runs, and the kernel has them.
///
/// # Errors
/// Why it could not be written.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = path.with_extension("new");
    let opened = private().write(true).create(true).truncate(true).open(&aside);
    let written = opened.and_then(|mut file| file.write_all(bytes));
    let placed = written.and_then(|()| fs::rename(&aside, path));
    if placed.is_err() {
        let _ = fs::remove_file(&aside);
    }
    placed
}

/// So many random bytes from the kernel, as hexadecimal digits.
///
/// # Errors
/// The kernel gives none.
pub(crate) fn random_hex(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_has_one_daemon_and_no_other_readers() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("deep/down");
        let folder = Folder::take(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert!(matches!(Folder::take(&path), Err(FolderError::Taken { .. })));
        drop(folder);
        Folder::take(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(matches!(Folder::take(&path), Err(FolderError::Open { .. })));
    }

    #[test]
    fn a_link_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (real, link) = (root.path().join("real"), root.path().join("link"));
        drop(Folder::take(&real).unwrap());
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(matches!(Folder::take(&link), Err(FolderError::Open { .. })));
    }

    #[test]
    fn what_is_written_is_private_and_whole() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        write_whole(&path, b"one").unwrap();
        write_whole(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(!path.with_extension("new").exists());
        assert_eq!(random_hex(16).unwrap().len(), 32);
        assert_ne!(random_hex(16).unwrap(), random_hex(16).unwrap());
    }

    #[test]
    fn without_a_runtime_folder_it_is_one_of_the_users_own() {
        assert_eq!(default_folder(Some("/run/user/7".as_ref())), Path::new("/run/user/7/plimsoll"));
        let own = default_folder(None);
        let user = rustix::process::geteuid().as_raw().to_string();
        assert!(own.file_name().unwrap().to_str().unwrap().ends_with(&user));
    }
}
