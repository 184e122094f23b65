//! Reading and decoding an image file, as a workload of the CPU.
//! Never fails as a task: a file that is no image is a result, typed, so that the other files go on.

use std::path::{Path, PathBuf};

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_image::Image;
use plimsoll_image::decode::{self, DecodeError, DecodeOptions};
use plimsoll_runtime::{Backend, Context, Session, Workload};
use xxhash_rust::xxh3::xxh3_64;

/// An image file in memory.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its pixels.
    pub image: Image,
    /// Bytes of the file.
    pub bytes: u64,
    /// A hash of the file's content (xxh3, 64 bits).
    pub hash: u64,
    /// The crate that decoded it, and its version.
    pub decoder: &'static str,
    /// The format's name.
    pub format: String,
}

/// Why a file gave no image.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct LoadError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub cause: DecodeError,
}

/// A file to load.
pub(super) struct File {
    path: PathBuf,
    /// Its length, which tells how long decoding will take about.
    length: u64,
}

impl File {
    pub(super) fn new(path: &Path) -> Self {
        let length = path.metadata().map_or(0, |metadata| metadata.len());
        Self { path: path.to_owned(), length }
    }
}

/// Reads and decodes files.
pub(super) struct Load {
    options: DecodeOptions,
    ladder: Ladder,
}

impl Load {
    /// Files are decoded with these options. What an image takes is bounded by how many are loaded ahead, not by the
    /// line: the pixels outlive the task.
    pub(super) fn new(options: DecodeOptions) -> Self {
        let rung = Rung::new("cpu", Place::On(DeviceKind::Cpu), Footprint::task(Bytes::ZERO));
        Self { options, ladder: Ladder::new([rung]) }
    }
}

impl Workload for Load {
    type Input = File;
    type Reference = ();
    type Prepared = ();
    type Output = Result<Loaded, LoadError>;

    fn name(&self) -> &str {
        "load"
    }

    fn units(&self, file: &File) -> u64 {
        file.length.max(1)
    }

    fn ladder(&self, _: &File) -> Ladder {
        self.ladder.clone()
    }

    fn open(&self, _: &Rung, _: &File, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(LoadSession { options: self.options.clone() }))
    }
}

struct LoadSession {
    options: DecodeOptions,
}

impl Session<Load> for LoadSession {
    fn run(&mut self, file: &File, _: &mut Context<'_, Load>) -> Result<Result<Loaded, LoadError>, Fault> {
        Ok(load(&file.path, &self.options).map_err(|cause| LoadError { path: file.path.clone(), cause }))
    }
}

fn load(path: &Path, options: &DecodeOptions) -> Result<Loaded, DecodeError> {
    let bytes = decode::read(path)?;
    let decoded = decode::decode(&bytes, options)?;
    Ok(Loaded {
        image: decoded.image,
        bytes: bytes.len() as u64,
        hash: xxh3_64(&bytes),
        decoder: decoded.decoder,
        format: decoded.format.to_string(),
    })
}
