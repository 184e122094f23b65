//! Image files as frames, and frames as image files. Reading and writing are tasks of the same orchestrator as the chain,
//! so that neither takes a core from it behind the scheduler's back.
//! Never has more than a few files open; names and their order are the caller's.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use plimsoll_core::{DeviceKind, Priority};
use plimsoll_image::encode::{EncodeError, JpegQuality};
use plimsoll_image::frames::Frame;
use plimsoll_image::frames::stream::{ReadImageError, read_image, write_image};
use plimsoll_runtime::{Registered, RunError, Task, TaskResult, Ticket, workload};

use super::distributor::Pool;
use super::source::{Given, Source};
use crate::intake::Broken;

type Read = workload::Function<PathBuf, Result<Frame, ReadImageError>>;
type Write = workload::Function<(PathBuf, Frame, JpegQuality), Result<(), EncodeError>>;

/// Why an image file was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageFileError {
    /// It gave no frame.
    #[error(transparent)]
    Read(#[from] ReadImageError),
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] EncodeError),
    /// Nobody even tried: no CPU is among the devices, or the orchestrator takes no more work.
    #[error("image files are read and written on the CPU: {0}")]
    Task(RunError),
}

/// Image files as a source of frames.
pub(super) struct ImageFiles {
    pool: Arc<Pool>,
    read: Registered<Read>,
    files: Box<dyn Iterator<Item = PathBuf> + Send>,
    reading: VecDeque<Result<Ticket<Result<Frame, ReadImageError>>, RunError>>,
    most: usize,
}

impl ImageFiles {
    pub(super) fn new(pool: &Arc<Pool>, files: Box<dyn Iterator<Item = PathBuf> + Send>) -> Self {
        let read = |path: &PathBuf| Ok::<_, Infallible>(read_image(path));
        let read = pool.orchestrator.register(workload::function("read image", read));
        Self { pool: Arc::clone(pool), read, files, reading: VecDeque::new(), most: at_once(pool) }
    }
}

impl Source for ImageFiles {
    type Error = ImageFileError;

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Given<ImageFileError>> {
        while self.reading.len() < self.most
            && let Some(path) = self.files.next()
        {
            // Nothing can be done to a frame before it is read, so reading goes first.
            let task = Task::new(path).priority(Priority::High);
            self.reading.push_back(self.pool.orchestrator.submit(&self.read, task).map_err(RunError::from));
        }
        let ended = match self.reading.front_mut() {
            None => return Poll::Ready(None),
            Some(Ok(ticket)) => ready!(Pin::new(ticket).poll(context)),
            Some(Err(refused)) => Err(refused.clone()),
        };
        self.reading.pop_front();
        Poll::Ready(Some(outcome(ended).map_err(Broken::Failed)))
    }
}

/// Writes frames as image files: see [`Distributor::image_writer`](super::Distributor::image_writer).
#[must_use = "files are whole only after `finish`"]
pub struct ImageWriter {
    pool: Arc<Pool>,
    write: Registered<Write>,
    writing: VecDeque<Ticket<Result<(), EncodeError>>>,
    most: usize,
    quality: JpegQuality,
}

impl std::fmt::Debug for ImageWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageWriter")
            .field("writing", &self.writing.len())
            .field("quality", &self.quality)
            .finish_non_exhaustive()
    }
}

impl ImageWriter {
    pub(super) fn new(pool: &Arc<Pool>) -> Self {
        let write = |(path, frame, quality): &(PathBuf, Frame, JpegQuality)| {
            Ok::<_, Infallible>(write_image(path, frame, *quality))
        };
        let write = pool.orchestrator.register(workload::function("write image", write));
        let (writing, quality) = (VecDeque::new(), JpegQuality::default());
        Self { pool: Arc::clone(pool), write, writing, most: at_once(pool), quality }
    }

    /// Writes JPEGs of this quality. Other formats keep every sample.
    pub fn quality(mut self, quality: JpegQuality) -> Self {
        self.quality = quality;
        self
    }

    /// Begins to write a frame, once there is room for one more file under way. The ending of its name says how it is
    /// coded.
    ///
    /// # Errors
    /// Why an earlier frame could not be written.
    pub fn write(&mut self, path: PathBuf, frame: Frame) -> Result<(), ImageFileError> {
        while self.writing.len() >= self.most {
            self.wait_for_first()?;
        }
        let task = Task::new((path, frame, self.quality)).priority(Priority::High);
        let ticket = self.pool.orchestrator.submit(&self.write, task);
        self.writing.push_back(ticket.map_err(|refused| ImageFileError::Task(refused.into()))?);
        Ok(())
    }

    /// Waits for all files.
    ///
    /// # Errors
    /// Why one could not be written; the others are.
    pub fn finish(mut self) -> Result<(), ImageFileError> {
        let mut first_error = Ok(());
        while !self.writing.is_empty() {
            first_error = first_error.and(self.wait_for_first());
        }
        first_error
    }

    fn wait_for_first(&mut self) -> Result<(), ImageFileError> {
        self.writing.pop_front().map_or(Ok(()), |ticket| outcome(pollster::block_on(ticket)))
    }
}

/// Files open at once: one for each core, and one to go on with.
fn at_once(pool: &Pool) -> usize {
    let cpus = pool.orchestrator.devices().filter(|(_, facts)| facts.kind == DeviceKind::Cpu);
    cpus.map(|(_, facts)| facts.slots).sum::<usize>() + 1
}

fn outcome<T, E>(ended: TaskResult<Result<T, E>>) -> Result<T, ImageFileError>
where
    ImageFileError: From<E>,
{
    Ok(ended.map_err(ImageFileError::Task)?.output?)
}
