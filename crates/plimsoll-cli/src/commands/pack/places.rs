//! Where each file comes from and goes to, as typed.
//! Never writes anything.

use std::fs::{self, File, Metadata};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use plimsoll::pack::Format;

use super::args::Common;
use crate::stop::{Ended, Stop};

/// A file to work on, or a pipe.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// `None` for stdin.
    path: Option<PathBuf>,
}

/// Suffixes of packed files, and what stands for them when they are unpacked.
const SUFFIXES: [(&str, &str); 6] =
    [(".zst", ""), (".gz", ""), (".bgz", ""), (".bgzf", ""), (".tzst", ".tar"), (".tgz", ".tar")];

impl Place {
    /// The files that were named, or stdin.
    pub(super) fn all(common: &Common) -> Result<Vec<Self>, Stop> {
        if common.files.len() > 1 && common.output.is_some() {
            return Err(Stop::usage("--output takes one input; leave it out, and each output goes beside its input"));
        }
        let place = |path: &PathBuf| Self { path: (path.as_os_str() != "-").then(|| path.clone()) };
        match &common.files[..] {
            [] => Ok(vec![Self { path: None }]),
            files => Ok(files.iter().map(place).collect()),
        }
    }

    /// This file.
    #[cfg(test)]
    pub(super) fn of(path: PathBuf) -> Self {
        Self { path: Some(path) }
    }

    /// What to call it.
    pub(super) fn name(&self) -> String {
        self.path.as_ref().map_or_else(|| "stdin".to_owned(), |path| path.display().to_string())
    }

    /// Its length, if it is a file.
    pub(super) fn length(&self) -> Option<u64> {
        let metadata = fs::metadata(self.path.as_ref()?).ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// Opens it.
    pub(super) fn source(&self) -> Result<Source, Stop> {
        let cannot = |error: io::Error| Stop::failed(format_args!("{} cannot be read: {error}", self.name()));
        let file = match &self.path {
            Some(path) => File::open(path),
            None => super::stdin(),
        };
        let file = file.map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_dir() {
            return Err(Stop::failed(format_args!(
                "{} is a folder; pack what `tar c {0}` gives, or name its files",
                self.name()
            )));
        }
        Ok(Source { file, metadata, is_stdin: self.path.is_none() })
    }

    /// Where its packed bytes go; `None` for stdout.
    pub(super) fn packed_name(&self, common: &Common, format: Format) -> Result<Option<PathBuf>, Stop> {
        self.named(common, |path| {
            let mut name = path.as_os_str().to_owned();
            name.push(format.suffix());
            Ok(PathBuf::from(name))
        })
    }

    /// Where its unpacked bytes go; `None` for stdout.
    pub(super) fn unpacked_name(&self, common: &Common) -> Result<Option<PathBuf>, Stop> {
        self.named(common, |path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let found = SUFFIXES.iter().find_map(|(suffix, with)| Some((name.strip_suffix(suffix)?, with)));
            match found {
                Some((stem, with)) if !stem.is_empty() => Ok(path.with_file_name(format!("{stem}{with}"))),
                _ => Err(Stop::usage(format_args!(
                    "{} does not end in .zst, .gz, .bgz, .tzst or .tgz; name the output with --output, or use --stdout",
                    path.display()
                ))),
            }
        })
    }

    fn named(
        &self,
        common: &Common,
        beside: impl FnOnce(&Path) -> Result<PathBuf, Stop>,
    ) -> Result<Option<PathBuf>, Stop> {
        match (&common.output, &self.path) {
            (Some(output), _) => Ok((output.as_os_str() != "-").then(|| output.clone())),
            (None, Some(path)) if !common.stdout => beside(path).map(Some),
            _ => Ok(None),
        }
    }

    /// Removes the input.
    pub(super) fn remove(&self) -> Ended {
        let Some(path) = &self.path else { return Ok(()) };
        fs::remove_file(path)
            .map_err(|error| Stop::failed(format_args!("{} cannot be removed: {error}", path.display())))
    }
}

/// An input that is open.
pub(super) struct Source {
    file: File,
    metadata: Metadata,
    is_stdin: bool,
}

impl Source {
    /// Its length, if it has one.
    pub(super) fn length(&self) -> Option<u64> {
        (self.metadata.is_file() && !self.is_stdin).then_some(self.metadata.len())
    }

    /// Whether it says that it gives so many bytes. It is read from its beginning afterwards.
    pub(super) fn says_it_gives(&self, bytes: u64) -> bool {
        let mut file = &self.file;
        let says = plimsoll::pack::says_it_gives(&mut file, bytes);
        says & file.rewind().is_ok()
    }

    /// What the output inherits.
    pub(super) fn metadata(&self) -> Option<Metadata> {
        (self.metadata.is_file() && !self.is_stdin).then(|| self.metadata.clone())
    }

    pub(super) fn into_file(self) -> File {
        self.file
    }
}
