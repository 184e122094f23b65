//! Reading and decoding image files, as workloads of the CPU.
//! Never fails as a task: a file that is no image is a result, typed, so that the other files go on.
//! Invariant: what decoding takes is promised before the file is read, and the pixels stay promised until they are gone.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, MemoryMoment, Place, Rung};
use plimsoll_image::Image;
use plimsoll_image::decode::{self, DecodeError, DecodeOptions, Outlook};
use plimsoll_image::metrics::MetricWorkload;
use plimsoll_runtime::{Backend, Context, Reference, ReferencePinner, Registered, Session, Value, Workload};
use twox_hash::XxHash3_64;

use super::pair::PairError;

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
    /// Keeps the bytes of the pixels promised.
    _claim: Arc<Value>,
}

/// Why a file gave no image.
#[derive(Debug, thiserror::Error)]
#[error("{}{cause}", if cause.names_file() { String::new() } else { format!("{}: ", path.display()) })]
pub struct LoadError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub cause: DecodeError,
}

impl LoadError {
    pub(super) fn of(path: &Path, cause: DecodeError) -> Arc<Self> {
        Arc::new(Self { path: path.to_owned(), cause })
    }
}

/// A file to load, and what its header says.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) outlook: Outlook,
}

impl File {
    /// What it takes while it is decoded, and what stays of it.
    fn ladder(&self) -> Ladder {
        let task = Footprint::task(Bytes(self.outlook.decode_bytes));
        let rung = Rung::new("cpu", Place::On(DeviceKind::Cpu), task).with_value(Bytes(self.outlook.image_bytes));
        Ladder::new([rung])
    }

    fn load<W: Workload>(
        &self,
        options: &DecodeOptions,
        context: &mut Context<'_, W>,
    ) -> Result<Result<Loaded, PairError>, Fault> {
        // Another file may lie there by now: what was promised for this one must do.
        let bytes_max = options.bytes_max.min(self.outlook.image_bytes + self.outlook.decode_bytes);
        let options = DecodeOptions { bytes_max, ..options.clone() };
        let read = decode::read(&self.path).and_then(|bytes| Ok((decode::decode(&bytes, &options)?, bytes)));
        let (decoded, bytes) = match read {
            Ok(read) => read,
            Err(DecodeError::OutOfMemory { bytes }) => {
                return Err(Fault::OutOfMemory { moment: MemoryMoment::Run, wanted: Bytes(bytes) });
            }
            Err(cause) => return Ok(Err(PairError::Load(LoadError::of(&self.path, cause)))),
        };
        // The pixels are host memory that no backend counts: the value is the promise alone.
        let _claim = Arc::new(context.keep(Vec::new())?);
        Ok(Ok(Loaded {
            image: decoded.image,
            bytes: bytes.len() as u64,
            hash: XxHash3_64::oneshot(&bytes),
            decoder: decoded.decoder,
            format: decoded.format.to_string(),
            _claim,
        }))
    }
}

/// A reference that every metric can name.
pub(super) struct LoadedReference {
    pub(super) file: Arc<Loaded>,
    /// One for each metric, in their order.
    pub(super) handles: Vec<Reference<MetricWorkload>>,
    /// The picture made small, once it was needed.
    pub(super) small: OnceLock<Image>,
}

/// Where a reference is found once it was loaded.
pub(super) type ReferenceCell = Arc<OnceLock<Result<Arc<LoadedReference>, PairError>>>;

/// Loads references, and hands each to every metric.
pub(super) struct LoadReference {
    pub(super) options: DecodeOptions,
    pub(super) metrics: Vec<Registered<MetricWorkload>>,
    pub(super) pinner: ReferencePinner,
}

/// A reference to load, and where to put it.
pub(super) struct ReferenceFile {
    pub(super) file: File,
    pub(super) cell: ReferenceCell,
}

impl Workload for LoadReference {
    type Input = ReferenceFile;
    type Reference = ();
    type Prepared = ();
    type Output = ();

    fn name(&self) -> &str {
        "load"
    }

    fn units(&self, reference: &ReferenceFile) -> u64 {
        reference.file.outlook.file_bytes.max(1)
    }

    fn ladder(&self, reference: &ReferenceFile) -> Ladder {
        reference.file.ladder()
    }

    fn open(&self, _: &Rung, _: &ReferenceFile, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        let (options, metrics, pinner) = (self.options.clone(), self.metrics.clone(), self.pinner.clone());
        Ok(Box::new(LoadReferenceSession { options, metrics, pinner }))
    }
}

struct LoadReferenceSession {
    options: DecodeOptions,
    metrics: Vec<Registered<MetricWorkload>>,
    pinner: ReferencePinner,
}

impl Session<LoadReference> for LoadReferenceSession {
    fn run(&mut self, reference: &ReferenceFile, context: &mut Context<'_, LoadReference>) -> Result<(), Fault> {
        let loaded = reference.file.load(&self.options, context)?.map(|file| {
            let handle = |metric| self.pinner.pin_reference(metric, file.image.clone());
            let handles = self.metrics.iter().map(handle).collect();
            Arc::new(LoadedReference { handles, file: Arc::new(file), small: OnceLock::new() })
        });
        // A second attempt finds what the first has put there.
        let _ = reference.cell.set(loaded);
        Ok(())
    }
}

/// Loads distorted images, each after its reference.
pub(super) struct LoadPair {
    pub(super) options: DecodeOptions,
}

/// A distorted image to load, and where its reference will be.
pub(super) struct PairFiles {
    /// Its number among the pairs.
    pub(super) at: usize,
    pub(super) distorted: File,
    pub(super) reference: ReferenceCell,
}

/// Both images of a pair.
pub(super) struct LoadedPair {
    pub(super) at: usize,
    pub(super) distorted: Loaded,
    pub(super) reference: Arc<LoadedReference>,
}

impl Workload for LoadPair {
    type Input = PairFiles;
    type Reference = ();
    type Prepared = ();
    type Output = Result<LoadedPair, PairError>;

    fn name(&self) -> &str {
        "load"
    }

    fn units(&self, pair: &PairFiles) -> u64 {
        pair.distorted.outlook.file_bytes.max(1)
    }

    fn ladder(&self, pair: &PairFiles) -> Ladder {
        pair.distorted.ladder()
    }

    fn open(&self, _: &Rung, _: &PairFiles, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(LoadPairSession { options: self.options.clone() }))
    }
}

struct LoadPairSession {
    options: DecodeOptions,
}

impl Session<LoadPair> for LoadPairSession {
    fn run(
        &mut self,
        pair: &PairFiles,
        context: &mut Context<'_, LoadPair>,
    ) -> Result<Result<LoadedPair, PairError>, Fault> {
        let reference = pair.reference.get().ok_or_else(|| Fault::work("a pair was loaded before its reference"))?;
        let reference = match reference {
            Ok(reference) => Arc::clone(reference),
            Err(error) => return Ok(Err(error.clone())),
        };
        let distorted = pair.distorted.load(&self.options, context)?;
        Ok(distorted.map(|distorted| LoadedPair { at: pair.at, distorted, reference }))
    }
}
