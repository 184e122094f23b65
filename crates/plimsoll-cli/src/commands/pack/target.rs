//! An output that appears under its name when it is whole. Until then it lies beside it under a name of its own, and goes if
//! the work ends before. Runs of zeros are left out where the file system can.
//! Invariant: a name holds the whole output, or what it held before.

use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll::pack::Draft;

use super::args::Common;
use crate::stop::{Ended, Stop, warn};

/// Zeros that are worth a hole. Most file systems have blocks of 4 KiB; fewer and larger holes are cheaper.
const HOLE: usize = 32 << 10;

/// Bytes that are written at once at the most. Of 2 MiB the page cache makes large pages; on a virtual machine whose host takes
/// those back when they are free, writing 256 MiB so took up to 1.3 s of processor time instead of 0.1.
const WRITE_MAX: usize = 512 << 10;

/// Where bytes go.
pub(super) struct Target {
    file: Arc<Sparse>,
    /// The draft and the name it will have; `None` for what is written in place.
    names: Option<(PathBuf, PathBuf)>,
    force: bool,
    /// How far it was written in order, holes included.
    length: u64,
}

/// A file that was empty, and in which zeros need not be written.
struct Sparse {
    file: File,
    /// How far it goes, holes included.
    length: AtomicU64,
}

impl Draft for Sparse {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        // What was looked at and is no hole begins here.
        let (mut run, mut place) = (0, 0);
        while place < bytes.len() {
            let to_edge = HOLE - ((at + place as u64) % HOLE as u64) as usize;
            let end = bytes.len().min(place + to_edge);
            // Whoever was here before wrote the same bytes: what unpacks to others ends with an error, and without a file.
            if end - place == HOLE && is_zero(&bytes[place..end]) {
                self.write_run(&bytes[run..place], at + run as u64)?;
                run = end;
            }
            place = end;
        }
        self.write_run(&bytes[run..], at + run as u64)?;
        self.length.fetch_max(at + bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Sparse {
    fn write_run(&self, run: &[u8], at: u64) -> io::Result<()> {
        let mut pieces = run.chunks(WRITE_MAX).zip((at..).step_by(WRITE_MAX));
        pieces.try_for_each(|(piece, at)| write_all_at(&self.file, piece, at))
    }
}

/// Whether what goes here becomes a draft first: not a pipe, a device or stdout.
pub(super) fn is_drafted(path: Option<&Path>) -> bool {
    path.is_some_and(|path| !fs::metadata(path).is_ok_and(|there| !there.is_file()))
}

impl Target {
    /// A target of this name; stdout for none.
    pub(super) fn create(path: Option<&Path>, common: &Common, is_packed: bool) -> Result<Self, Stop> {
        let force = common.force;
        let Some(path) = path else {
            if is_packed && !force && io::stdout().is_terminal() {
                return Err(Stop::usage("packed bytes are nothing for a terminal; name an output, or use --force"));
            }
            let file = super::stdout().map_err(Stop::from)?;
            return Ok(Self::new(file, None, force));
        };
        let cannot = |error: io::Error| Stop::failed(format_args!("{} cannot be written: {error}", path.display()));
        match fs::metadata(path) {
            // Pipes and devices are written to as they are.
            Ok(there) if !there.is_file() => {
                let file = OpenOptions::new().write(true).open(path).map_err(cannot)?;
                return Ok(Self::new(file, None, force));
            }
            Ok(_) if !force => return Err(Stop::failed(there_already(path))),
            _ => {}
        }
        let draft = draft_of(path);
        let file = File::create(&draft).map_err(cannot)?;
        Ok(Self::new(file, Some((draft, path.to_owned())), force))
    }

    fn new(file: File, names: Option<(PathBuf, PathBuf)>, force: bool) -> Self {
        Self { file: Arc::new(Sparse { file, length: AtomicU64::new(0) }), names, force, length: 0 }
    }

    /// As an output for many hands, if it goes when the work does not get to its end.
    pub(super) fn draft(&self) -> Option<Arc<dyn Draft>> {
        let file: Arc<dyn Draft> = Arc::clone(&self.file) as _;
        self.names.is_some().then_some(file)
    }

    /// Its name, if it is a file.
    pub(super) fn name(&self) -> Option<&Path> {
        self.names.as_ref().map(|(_, name)| name.as_path())
    }

    /// Writes a small file beside it.
    pub(super) fn write_beside(&self, suffix: &str, bytes: &[u8]) -> Ended {
        let Some((_, name)) = &self.names else { return Ok(()) };
        let mut beside = name.as_os_str().to_owned();
        beside.push(suffix);
        let (beside, draft) = (PathBuf::from(&beside), draft_of(Path::new(&beside)));
        let written = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, &beside));
        written.map_err(|error| {
            // What went wrong is told already.
            let _ = fs::remove_file(&draft);
            Stop::failed(format_args!("{} cannot be written: {error}", beside.display()))
        })
    }

    /// It is whole: it gets its name, and times and rights of the input.
    pub(super) fn finish(mut self, like: Option<&Metadata>) -> Ended {
        let Some((draft, name)) = self.names.take() else { return Ok(()) };
        let named = self.name_it(like, &draft, &name);
        if named.is_err() {
            let _ = fs::remove_file(&draft);
        }
        named
    }

    fn name_it(&mut self, like: Option<&Metadata>, draft: &Path, name: &Path) -> Ended {
        let cannot = |error: io::Error| Stop::failed(format_args!("{} cannot be written: {error}", name.display()));
        let Sparse { file, length } = &*self.file;
        let length = length.load(Ordering::Relaxed);
        // It may end in a hole.
        if file.metadata().map_err(cannot)?.len() < length {
            file.set_len(length).map_err(cannot)?;
        }
        if let Some(like) = like
            && let Err(error) = inherit(file, like)
        {
            warn(format_args!("{} does not get the times and rights of the input: {error}", name.display()));
        }
        if self.force {
            return fs::rename(draft, name).map_err(cannot);
        }
        // A link is made only where there is nothing yet, whatever came up meanwhile.
        match fs::hard_link(draft, name) {
            Ok(()) => fs::remove_file(draft).map_err(cannot),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Stop::failed(there_already(name))),
            // Not every file system has links.
            Err(_) => fs::rename(draft, name).map_err(cannot),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.names.is_none() {
            return (&self.file.file).write(&bytes[..bytes.len().min(WRITE_MAX)]);
        }
        self.file.write_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        (&self.file.file).flush()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some((draft, _)) = &self.names {
            // Why it is not whole is told already.
            let _ = fs::remove_file(draft);
        }
    }
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(windows)]
fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    let mut written = 0;
    while written < bytes.len() {
        match file.seek_write(&bytes[written..], at + written as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<64>();
    words.iter().all(|word| *word == [0; 64]) && rest.iter().all(|byte| *byte == 0)
}

/// Beside the name, and nobody else's.
fn draft_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

fn there_already(path: &Path) -> String {
    format!("{} is there already; use --force to replace it, or --output to name another", path.display())
}

fn inherit(file: &File, like: &Metadata) -> io::Result<()> {
    owner(file, like);
    file.set_permissions(like.permissions())?;
    let times = FileTimes::new().set_modified(like.modified()?).set_accessed(like.accessed()?);
    file.set_times(times)
}

/// Only root may give files away; for everybody else they are theirs.
#[cfg(unix)]
fn owner(file: &File, like: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let _ = fchown(file, Some(like.uid()), Some(like.gid()));
}

#[cfg(not(unix))]
fn owner(_: &File, _: &Metadata) {}
