//! A file that appears under its name when it is whole. Until then it lies beside it, with `.part` at its end.
//! Pipes and devices are written to as they are.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::stop::Stop;

/// Where a stream is written to.
pub(super) struct Draft {
    file: File,
    /// The draft and the name it will have; `None` if it is written in place.
    names: Option<(PathBuf, PathBuf)>,
}

impl Draft {
    /// A draft for this name; `None` for stdout.
    pub(super) fn create(path: Option<&Path>) -> Result<Self, Stop> {
        let Some(path) = path else {
            return stdout().map(|file| Self { file, names: None }).map_err(Stop::from);
        };
        let unwritable = |error: io::Error| {
            Stop::failed(format_args!("{} cannot be written ({error}); name another place", path.display()))
        };
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(path).map_err(unwritable)?;
            return Ok(Self { file, names: None });
        }
        let mut draft = path.as_os_str().to_owned();
        draft.push(".part");
        let draft = PathBuf::from(draft);
        let file = File::create(&draft).map_err(unwritable)?;
        Ok(Self { file, names: Some((draft, path.to_owned())) })
    }

    /// Something to write through, and something to end it with.
    pub(super) fn split(self) -> (File, Ending) {
        (self.file, Ending(self.names))
    }
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
