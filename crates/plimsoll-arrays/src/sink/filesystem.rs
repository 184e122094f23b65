//! A folder as a store: an object is a file that is written under another name beside its own and then renamed.
//! Never leaves half an object under its own name. Invariant: files with the ending of unfinished ones belong to the
//! writer that holds the lock; whoever takes the lock sweeps those of writers that died.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{LISTED_MAX, Listed, Object, Sink, SinkError, WriteLock, check_key};

/// How the names of unfinished objects end.
const UNFINISHED: &str = ".unfinished";
/// The file that the one writer holds a lock on.
const LOCK: &str = ".writer";
/// Folders within folders at the most: a dimension each, and a few more. Deeper, somebody has made a loop.
const DEPTH_MAX: usize = 64;
/// How often a lock is tried again because its file was removed by a writer that ended just then.
const LOCK_TRIES: usize = 16;

/// A store in a folder.
#[derive(Clone, Debug)]
pub struct Filesystem {
    root: Arc<Path>,
    is_synced: bool,
}

/// Makes the names of this program's unfinished objects differ.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Filesystem {
    /// The store in this folder, which is made when something is written to it.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into().into(), is_synced: true }
    }

    /// Without waiting until finished objects have reached the disk: faster, and whole after the death of the program, but
    /// not after the death of the machine.
    pub fn without_sync(mut self) -> Self {
        self.is_synced = false;
        self
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, key: &str) -> Result<PathBuf, SinkError> {
        check_key(key)?;
        Ok(self.root.join(key))
    }

    fn create(&self, key: &str) -> Result<FileObject, SinkError> {
        let path = self.path(key)?;
        let (program, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let unfinished = path.with_file_name(format!(".{name}.{program}-{number}{UNFINISHED}"));
        let file = create_in_folder(&unfinished).map_err(|error| SinkError::of_io(key, "written", error))?;
        Ok(FileObject { file, unfinished, path, key: key.to_owned(), is_synced: self.is_synced, is_finished: false })
    }

    fn not_made(&self, source: io::Error) -> SinkError {
        let key = self.root.display().to_string();
        match source.kind() {
            io::ErrorKind::PermissionDenied => SinkError::of_io(&key, "made", source),
            // A file, or a link to nothing.
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => SinkError::NoFolder { path: key },
            _ => SinkError::Failed { key, what: "made as a folder", source },
        }
    }

    /// Removes what writers that died left unfinished. Only for whoever holds the lock.
    fn sweep(&self) -> io::Result<()> {
        let mut left = Vec::new();
        walk(&self.root, 0, &mut |path, _| {
            if is_unfinished(path) {
                left.push(path.to_owned());
            }
            Ok(())
        })?;
        left.into_iter().try_for_each(|path| absent_is_fine(fs::remove_file(path)))
    }
}

impl Sink for Filesystem {
    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), SinkError> {
        let mut object = Box::new(self.create(key)?);
        object.append(bytes)?;
        object.finish()
    }

    fn begin(&self, key: &str) -> Result<Box<dyn Object>, SinkError> {
        Ok(Box::new(self.create(key)?))
    }

    fn get(&self, key: &str, range: Range<u64>) -> Result<Vec<u8>, SinkError> {
        let path = self.path(key)?;
        let failed = |error| SinkError::of_io(key, "read", error);
        let mut file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        if range.end > bytes || range.start > range.end {
            return Err(SinkError::Short { key: key.to_owned(), bytes, end: range.end });
        }
        file.seek(SeekFrom::Start(range.start)).map_err(failed)?;
        let mut read = vec![0; (range.end - range.start) as usize];
        file.read_exact(&mut read).map_err(failed)?;
        Ok(read)
    }

    fn size(&self, key: &str) -> Result<Option<u64>, SinkError> {
        match fs::metadata(self.path(key)?) {
            Ok(metadata) => Ok(metadata.is_file().then_some(metadata.len())),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(SinkError::of_io(key, "read", error)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, SinkError> {
        // Only the folder that the prefix reaches into is walked.
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let start = if folder.is_empty() { self.root.to_path_buf() } else { self.path(folder)? };
        let mut listed = Vec::new();
        let mut is_too_many = false;
        let walked = walk(&start, 0, &mut |path, bytes| {
            let key = key_of(&self.root, path);
            let is_object = key.starts_with(prefix) && !is_unfinished(path) && key != LOCK;
            if is_object && listed.len() < LISTED_MAX {
                listed.push(Listed { key, bytes });
            } else {
                is_too_many |= is_object;
            }
            Ok(())
        });
        walked.map_err(|error| SinkError::of_io(prefix, "listed", error))?;
        if is_too_many {
            return Err(SinkError::TooMany { prefix: prefix.to_owned(), most: LISTED_MAX });
        }
        listed.sort_unstable();
        Ok(listed)
    }

    fn delete(&self, key: &str) -> Result<(), SinkError> {
        absent_is_fine(fs::remove_file(self.path(key)?)).map_err(|error| SinkError::of_io(key, "removed", error))
    }

    fn lock(&self) -> Result<Box<dyn WriteLock>, SinkError> {
        let path = self.root.join(LOCK);
        let failed = |error| SinkError::of_io(LOCK, "locked", error);
        let locked = || SinkError::Locked { store: self.root.display().to_string() };
        for _ in 0..LOCK_TRIES {
            fs::create_dir_all(&self.root).map_err(|source| self.not_made(source))?;
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(locked()),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // A writer that ends removes the file; who has locked a removed one has locked nothing.
            if is_file_at(&file, &path) {
                let lock = FileLock { path, _file: file };
                self.sweep().map_err(failed)?;
                return Ok(Box::new(lock));
            }
        }
        Err(locked())
    }
}

struct FileLock {
    path: PathBuf,
    /// Locked until it is closed, also by the death of the program.
    _file: File,
}

impl WriteLock for FileLock {}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Where a removed file cannot be told from another, it stays.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(unix)]
fn is_file_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = |one: fs::Metadata, other: fs::Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
    file.metadata().and_then(|one| Ok(same(one, fs::metadata(path)?))).unwrap_or(false)
}

#[cfg(not(unix))]
fn is_file_at(_: &File, _: &Path) -> bool {
    true
}

struct FileObject {
    file: File,
    unfinished: PathBuf,
    path: PathBuf,
    key: String,
    is_synced: bool,
    is_finished: bool,
}

impl Object for FileObject {
    fn append(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.file.write_all(bytes).map_err(|error| SinkError::of_io(&self.key, "written", error))
    }

    fn finish(mut self: Box<Self>) -> Result<(), SinkError> {
        let failed = |error| SinkError::of_io(&self.key, "finished", error);
        if self.is_synced {
            self.file.sync_all().map_err(failed)?;
        }
        fs::rename(&self.unfinished, &self.path).map_err(failed)?;
        if self.is_synced {
            sync_folder(&self.path).map_err(failed)?;
        }
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for FileObject {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_file(&self.unfinished);
        }
    }
}

/// Creates a file; its folders too, where they are not there yet.
fn create_in_folder(path: &Path) -> io::Result<File> {
    let create = || OpenOptions::new().write(true).create_new(true).open(path);
    match (create(), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder)?;
            create()
        }
        // Of a program that died and had the same number, without anybody having taken the lock since.
        (Err(error), _) if error.kind() == io::ErrorKind::AlreadyExists => File::create(path),
        (created, _) => created,
    }
}

/// Makes the new name itself reach the disk; not every system knows how.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

fn is_unfinished(path: &Path) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with('.') && name.ends_with(UNFINISHED))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if is_absent(&error) { Ok(()) } else { Err(error) })
}

fn key_of(root: &Path, path: &Path) -> String {
    let parts = path.strip_prefix(root).unwrap_or(path).iter();
    parts.map(OsStr::to_string_lossy).collect::<Vec<_>>().join("/")
}

/// Gives every file below a folder with its bytes. A folder that is not there holds nothing; links are not followed.
fn walk(folder: &Path, depth: usize, give: &mut impl FnMut(&Path, u64) -> io::Result<()>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < DEPTH_MAX {
            walk(&entry.path(), depth + 1, give)?;
        } else if kind.is_file() {
            give(&entry.path(), entry.metadata()?.len())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names = Vec::new();
        walk(folder, 0, &mut |path, _| {
            names.push(key_of(folder, path));
            Ok(())
        })
        .unwrap();
        names.sort();
        names
    }

    #[test]
    fn what_a_dead_writer_left_is_swept_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let sink = Filesystem::new(folder.path());
        sink.put("0/c/0", b"whole").unwrap();
        let mut object = sink.create("0/c/1").unwrap();
        object.append(b"half").unwrap();
        std::mem::forget(object);
        assert_eq!(names(folder.path()).len(), 2);
        assert_eq!(sink.list("").unwrap().len(), 1, "unfinished objects are not listed");
        drop(Filesystem::new(folder.path()).lock().unwrap());
        assert_eq!(names(folder.path()), ["0/c/0"]);
    }

    #[test]
    fn nothing_is_left_of_a_dropped_object_or_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let sink = Filesystem::new(folder.path());
        let lock = sink.lock().unwrap();
        assert!(sink.list("").unwrap().is_empty(), "the lock is no object");
        assert!(matches!(Filesystem::new(folder.path()).lock().map(drop), Err(SinkError::Locked { .. })));
        drop(sink.begin("c/0").unwrap());
        drop(lock);
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_named() {
        // The device on which there is never room.
        let mut object = FileObject {
            file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
            unfinished: PathBuf::from("none"),
            path: PathBuf::from("none"),
            key: "0/c/0".to_owned(),
            is_synced: false,
            is_finished: true,
        };
        let full = object.append(b"one byte").unwrap_err();
        assert!(matches!(full, SinkError::Full { .. }));
        assert!(full.to_string().contains("'0/c/0'"), "{full}");
    }

    /// A writer that ends removes its file, and whoever has opened it before has locked nothing.
    #[test]
    fn of_writers_that_come_and_go_at_once_one_holds_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let (holders, most, taken) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let gone = AtomicU64::new(0);
        let come_and_go = || {
            let sink = Filesystem::new(folder.path());
            while taken.load(Ordering::Relaxed) < 3_000 {
                let Ok(lock) = sink.lock() else { continue };
                most.fetch_max(holders.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
                gone.fetch_add(u64::from(!folder.path().join(LOCK).exists()), Ordering::Relaxed);
                taken.fetch_add(1, Ordering::Relaxed);
                holders.fetch_sub(1, Ordering::AcqRel);
                drop(lock);
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(come_and_go))));
        assert_eq!(most.load(Ordering::Acquire), 1);
        assert_eq!(gone.load(Ordering::Relaxed), 0, "what is locked is there for others to find");
    }

    /// Keys have a part for each dimension: what lies deeper is none, and folders in a ring have no bottom.
    #[test]
    fn what_lies_deeper_than_a_key_is_not_walked() {
        let folder = tempfile::tempdir().unwrap();
        let below = |depth: usize| ["a"].repeat(depth).join("/");
        let sink = Filesystem::new(folder.path());
        for depth in [DEPTH_MAX, DEPTH_MAX + 1] {
            let at = folder.path().join(below(depth));
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("file"), b"there").unwrap();
        }
        let listed: Vec<String> = sink.list("").unwrap().into_iter().map(|listed| listed.key).collect();
        assert_eq!(listed, [format!("{}/file", below(DEPTH_MAX))]);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_there_and_no_folder_is_named_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, b"mine").unwrap();
        std::os::unix::fs::symlink(folder.path().join("nowhere"), &link).unwrap();
        for root in [file.clone(), link, file.join("below")] {
            let refused = Filesystem::new(&root).lock().map(drop).unwrap_err();
            assert!(
                matches!(&refused, SinkError::NoFolder { path } if *path == root.display().to_string()),
                "{refused}"
            );
        }
        assert_eq!(fs::read(file).unwrap(), b"mine");
    }

    #[test]
    fn a_folder_that_is_a_file_is_an_error_with_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let sink = Filesystem::new(folder.path());
        sink.put("0", b"a file").unwrap();
        let error = sink.put("0/c/0", b"below it").unwrap_err();
        assert!(error.to_string().contains("'0/c/0'"), "{error}");
    }
}
