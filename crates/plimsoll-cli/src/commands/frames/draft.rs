//! A file that appears under its name when it is whole. Until then it lies beside it, with `.part` at its end.
//! Pipes and devices are written to as they are; of a symbolic link, what it points to.
//! Invariant: nothing that lay there before is lost unasked, neither the file nor a draft of an earlier run.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::places::there_already;
use crate::std_streams;
use crate::stop::Stop;

/// Links from one to the next that are followed, as the system does it.
const LINKS_MAX: usize = 40;

/// Where a stream is written to.
pub(super) struct Draft {
    file: File,
    /// The draft and the name it will have; `None` if it is written in place.
    names: Option<(PathBuf, PathBuf)>,
}

impl Draft {
    /// A draft for this name; `None` for stdout.
    pub(super) fn create(path: Option<&Path>, overwrite: bool) -> Result<Self, Stop> {
        let Some(path) = path else {
            if std_streams::stdout_was_closed() {
                return Err(Stop::failed(
                    "frames go to stdout, and that is closed; name a file, or pipe them somewhere",
                ));
            }
            return stdout().map(|file| Self { file, names: None }).map_err(Stop::from);
        };
        let unwritable = |error: io::Error| {
            Stop::failed(format_args!("{} cannot be written ({error}); name another place", path.display()))
        };
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(path).map_err(unwritable)?;
            return Ok(Self { file, names: None });
        }
        let path = followed(path);
        let draft = draft_of(&path);
        let mut how = File::options();
        how.write(true);
        let how = if overwrite { how.create(true).truncate(true) } else { how.create_new(true) };
        match how.open(&draft) {
            Ok(file) => Ok(Self { file, names: Some((draft, path)) }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Stop::failed(left_behind(&draft))),
            Err(error) => Err(unwritable(error)),
        }
    }

    /// Something to write through, and something to end it with.
    pub(super) fn split(self) -> (File, Ending) {
        (self.file, Ending(self.names))
    }
}

/// Whatever would be lost if a file of this name were written: the file itself, or a draft that an earlier run left.
pub(super) fn would_be_lost(path: &Path) -> Option<String> {
    if path.is_file() {
        return Some(there_already(path));
    }
    let draft = draft_of(&followed(path));
    draft.exists().then(|| left_behind(&draft))
}

fn left_behind(draft: &Path) -> String {
    format!(
        "{} is there, with the frames of an earlier run that did not end; --overwrite replaces it, or give it another name",
        draft.display()
    )
}

fn draft_of(path: &Path) -> PathBuf {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".part");
    PathBuf::from(draft)
}

/// Where a name leads: links are followed, also one to a file that is not there yet.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target));
    }
    path
}

/// How a draft ends.
pub(super) struct Ending(Option<(PathBuf, PathBuf)>);

impl Ending {
    /// It is whole: it gets its name.
    pub(super) fn whole(self, mut file: File) -> Result<(), Stop> {
        file.flush().map_err(Stop::from)?;
        drop(file);
        match self.0 {
            None => Ok(()),
            Some((draft, path)) => fs::rename(&draft, &path).map_err(|error| {
                Stop::failed(format_args!(
                    "{} cannot get its name ({error}); the frames are in {}",
                    path.display(),
                    draft.display()
                ))
            }),
        }
    }

    /// It is not whole, but what is there is right: says where it lies. Without a frame it is removed.
    pub(super) fn kept(self, frames: u64) -> Option<String> {
        let (draft, _) = self.0?;
        if frames == 0 {
            // Nobody misses it.
            let _ = fs::remove_file(&draft);
            return None;
        }
        let are = if frames == 1 { "frame is" } else { "frames are" };
        Some(format!("{frames} {are} in {}", draft.display()))
    }

    /// It could not be written on: the room that it takes may be what is missing.
    pub(super) fn removed(self) {
        if let Some((draft, _)) = self.0 {
            // What went wrong is told already.
            let _ = fs::remove_file(draft);
        }
    }
}

/// Without the buffer of `Stdout`, which looks for lines.
#[cfg(unix)]
fn stdout() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn stdout() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}
