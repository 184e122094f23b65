//! An output that appears under its name when it is whole. Until then it lies beside it under a name of its own, and goes if
//! the work ends before. Runs of zeros are left out where the file system can.
//! Invariant: a name holds the whole output, or what it held before.

use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::args::Common;
use crate::stop::{Ended, Stop, warn};

/// Zeros that are worth a hole. Most file systems have blocks of 4 KiB; fewer and larger holes are cheaper.
const HOLE: usize = 32 << 10;

/// Where bytes go.
pub(super) struct Target {
    file: File,
    /// The draft and the name it will have; `None` for what is written in place.
    names: Option<(PathBuf, PathBuf)>,
    force: bool,
    /// How far it was written, holes included.
    length: u64,
    /// Its end is a hole that was not written.
    ends_in_hole: bool,
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
            return Ok(Self { file, names: None, force, length: 0, ends_in_hole: false });
        };
        let cannot = |error: io::Error| Stop::failed(format_args!("{} cannot be written: {error}", path.display()));
        match fs::metadata(path) {
            // Pipes and devices are written to as they are.
            Ok(there) if !there.is_file() => {
                let file = OpenOptions::new().write(true).open(path).map_err(cannot)?;
                return Ok(Self { file, names: None, force, length: 0, ends_in_hole: false });
            }
            Ok(_) if !force => return Err(Stop::failed(there_already(path))),
            _ => {}
        }
        let draft = draft_of(path);
        let file = File::create(&draft).map_err(cannot)?;
        Ok(Self { file, names: Some((draft, path.to_owned())), force, length: 0, ends_in_hole: false })
    }

    /// Whether it goes if the work does not get to its end.
    pub(super) fn is_draft(&self) -> bool {
        self.names.is_some()
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
        if self.ends_in_hole {
            self.file.set_len(self.length).map_err(cannot)?;
        }
        if let Some(like) = like
            && let Err(error) = inherit(&self.file, like)
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

    /// Writes bytes that begin at a multiple of [`HOLE`], or are the last.
    fn write_run(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_hole = bytes.len() == HOLE && is_zero(bytes);
        if is_hole {
            self.file.seek(SeekFrom::Current(HOLE as i64))?;
        } else {
            self.file.write_all(bytes)?;
        }
        self.length += bytes.len() as u64;
        self.ends_in_hole = is_hole;
        Ok(())
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.names.is_none() {
            return self.file.write(bytes);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let to_edge = HOLE - (self.length % HOLE as u64) as usize;
            // What holds no zeros goes in one piece.
            let dense: usize =
                rest.chunks(HOLE).take_while(|piece| to_edge == HOLE && !is_zero(piece)).map(<[u8]>::len).sum();
            let count = if dense > 0 { dense } else { to_edge.min(rest.len()) };
            let (run, behind) = rest.split_at(count);
            self.write_run(run)?;
            rest = behind;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
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
