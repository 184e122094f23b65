//! The distributor: devices and what is done to frames on them.
//! Never schedules: every frame is a task of its orchestrator.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::{Bytes, DeviceId};
use plimsoll_image::frames::{Chain, ChainWorkload, Frame};
use plimsoll_runtime::{Orchestrator, Task, Workload};

use super::error::FrameError;
use super::flow::{Flow, FrameDone, FrameStream};
use super::images::{ImageFileError, ImageFiles, ImageWriter};
use super::meter::Metered;
use super::source::AtHand;
use super::tasks::Parts;
use crate::intake::Intake;

/// Chains whose sessions stay warm from one call to the next. Most programs have one.
const CHAINS_MAX: usize = 16;

/// Spreads frames over devices.
///
/// ```
/// use plimsoll::frames::{Distributor, DistributorOptions};
/// use plimsoll::image::Size;
/// use plimsoll::image::frames::{Chain, Colour, Format, Frame};
/// use plimsoll::{Machine, MachineOptions, Orchestrator};
///
/// let machine = Machine::open(&MachineOptions::from_env()?);
/// let orchestrator = Orchestrator::builder().devices(machine.devices).build();
/// let distributor = Distributor::new(orchestrator, DistributorOptions::default());
/// let chain: Chain = "crop=1x1".parse()?;
/// let format = Format::new(Size { width: 3, height: 1 }, 8, Colour::Rgb)?;
/// let frame = |shade| Frame::new(format, vec![shade; 9]);
/// let done = distributor.distribute([frame(1)?, frame(2)?, frame(3)?], &chain)?;
/// let shades: Vec<u8> = done.iter().map(|done| done.frame.bytes()[0]).collect();
/// assert_eq!(shades, [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Distributor {
    pool: Arc<Pool>,
    chains: Mutex<Vec<(u64, Parts)>>,
}

/// How frames are spread. How a device is picked among those that may is the orchestrator's
/// [strategy](plimsoll_runtime::Builder::strategy).
#[derive(Clone, Debug, Default)]
pub struct DistributorOptions {
    /// The devices that may work on frames; all of them if there is none. Files are read and written on the others too.
    pub devices: Vec<DeviceId>,
    /// The only rung that will do.
    pub rung: Option<&'static str>,
}

/// Who does the work: what every stream of a distributor shares.
pub(super) struct Pool {
    pub(super) orchestrator: Arc<Orchestrator>,
    pub(super) options: DistributorOptions,
}

impl Distributor {
    /// A distributor over the devices of an orchestrator, its own or one that is shared.
    pub fn new(orchestrator: impl Into<Arc<Orchestrator>>, options: DistributorOptions) -> Self {
        let pool = Pool { orchestrator: orchestrator.into(), options };
        Self { pool: Arc::new(pool), chains: Mutex::default() }
    }

    /// Does a chain to one frame and waits for it. To a chain that looks at other frames, it is the only one of its
    /// stream.
    ///
    /// # Errors
    /// [`FrameError`] if the chain cannot be done to it, or no device could.
    pub fn dispatch(&self, frame: Frame, chain: &Chain) -> Result<FrameDone, FrameError<Infallible>> {
        let mut flow = Flow::new(&self.pool, self.registered(chain), AtHand([frame].into_iter()));
        flow.next().expect("a frame that went in ends with a result or an error")
    }

    /// Does a chain to many frames; what comes out is in input order. Frames are pulled as there is room for them.
    ///
    /// # Errors
    /// [`FrameError`] of the first frame that has no result.
    pub fn distribute(
        &self,
        frames: impl IntoIterator<Item = Frame>,
        chain: &Chain,
    ) -> Result<Vec<FrameDone>, FrameError<Infallible>> {
        let mut flow = Flow::new(&self.pool, self.registered(chain), AtHand(frames.into_iter()));
        std::iter::from_fn(|| flow.next()).collect()
    }

    /// Does a chain to a stream of frames: an iterator of results in input order, with a bounded number under way.
    ///
    /// Frames are pulled on a thread of their own, so that a slow input holds no finished frame back. At most a window of
    /// frames is pulled and not yet delivered, and two more: who takes results slowly slows the input down. An error of
    /// the input, or a frame that fails, ends the stream after the frames before it. Dropping the stream gives up what is
    /// under way at once; an input that is stuck is then left behind.
    ///
    /// If the chain looks at other frames, each frame is uploaded once, and runs of consecutive frames stay on one device. A frame waits for those after it, so the last ones come when the input has ended.
    ///
    /// ```
    /// use plimsoll::frames::{Distributor, DistributorOptions};
    /// use plimsoll::image::Size;
    /// use plimsoll::image::frames::{Chain, Colour, Format, Frame};
    /// use plimsoll::{Machine, MachineOptions, Orchestrator};
    ///
    /// let machine = Machine::open(&MachineOptions::from_env()?);
    /// let orchestrator = Orchestrator::builder().devices(machine.devices).build();
    /// let distributor = Distributor::new(orchestrator, DistributorOptions::default());
    /// let chain: Chain = "crop=2x2".parse()?;
    /// let format = Format::new(Size { width: 4, height: 4 }, 8, Colour::Rgb)?;
    /// let frames = (0..100).map(move |shade| Frame::new(format, vec![shade; 48]));
    /// let mut stream = distributor.stream(frames, &chain);
    /// for (shade, done) in (0..).zip(&mut stream) {
    ///     let done = done?;
    ///     assert_eq!((done.number, done.frame.bytes()), (u64::from(shade), &[shade; 12][..]));
    /// }
    /// assert_eq!(stream.stats().frames, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stream<E: Send + 'static>(
        &self,
        frames: impl Iterator<Item = Result<Frame, E>> + Send + 'static,
        chain: &Chain,
    ) -> FrameStream<E> {
        FrameStream::new(&self.pool, self.registered(chain), Intake::start("plimsoll-frames-in", frames))
    }

    /// Does a chain to image files: as [`Distributor::stream`], with files read by tasks of the same orchestrator.
    pub fn stream_images(
        &self,
        files: impl IntoIterator<Item = PathBuf, IntoIter: Send + 'static>,
        chain: &Chain,
    ) -> FrameStream<ImageFileError> {
        let files = ImageFiles::new(&self.pool, Box::new(files.into_iter()));
        FrameStream::new(&self.pool, self.registered(chain), files)
    }

    /// Writes frames as image files, by tasks of the same orchestrator.
    pub fn image_writer(&self) -> ImageWriter {
        ImageWriter::new(&self.pool)
    }

    /// The orchestrator, for its reports, its profile, or other work on the same devices.
    pub fn orchestrator(&self) -> &Orchestrator {
        &self.pool.orchestrator
    }

    fn registered(&self, chain: &Chain) -> Parts {
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        let fingerprint = chain.fingerprint();
        if let Some((_, known)) = chains.iter().find(|(of, _)| *of == fingerprint) {
            return known.clone();
        }
        if chains.len() >= CHAINS_MAX {
            chains.remove(0);
        }
        let registered = Parts::register(&self.pool, ChainWorkload::new(chain.clone()));
        chains.push((fingerprint, registered.clone()));
        registered
    }
}

impl std::fmt::Debug for Distributor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Distributor").field("options", &self.pool.options).finish_non_exhaustive()
    }
}

impl Pool {
    fn may_work(&self, device: DeviceId) -> bool {
        self.options.devices.is_empty() || self.options.devices.contains(&device)
    }

    /// The devices that may work on frames.
    pub(super) fn metered(&self) -> impl Iterator<Item = Metered> {
        let chosen = self.orchestrator.devices().filter(|(id, _)| self.may_work(*id));
        chosen.map(|(id, facts)| Metered { id, name: facts.label.clone(), slots: facts.slots })
    }

    /// A task, on the rung that was asked for and one of these devices; any, if there is none.
    pub(super) fn allowed<W: Workload>(&self, task: Task<W>, devices: &[DeviceId]) -> Task<W> {
        let task = self.options.rung.into_iter().fold(task, Task::rung);
        if devices.is_empty() { task } else { task.devices(devices.iter().copied()) }
    }

    /// How many bytes may be promised on each of the devices that may work on frames.
    pub(super) fn lines(&self) -> Vec<(DeviceId, Bytes)> {
        let reports = self.orchestrator.reports().into_iter();
        reports.filter(|report| self.may_work(report.device)).map(|report| (report.device, report.line)).collect()
    }
}
