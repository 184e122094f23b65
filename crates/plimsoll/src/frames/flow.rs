//! Frames on their way: pulled while there is room, handed in as tasks, delivered in input order.
//! Never has more than its window pulled and not delivered. Finished frames come out while the input keeps us waiting.
//! Invariant: what comes out is a prefix of the input, whatever happens; an error comes once, last.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use plimsoll_core::scheduler::Report;
use plimsoll_core::{Bytes, DeviceId};
use plimsoll_image::frames::{ChainWorkload, Format, Frame};
use plimsoll_runtime::{Registered, RunError, TaskResult, Ticket};

use super::distributor::Pool;
use super::error::FrameError;
use super::meter::{FrameMeter, FrameStats};
use super::source::Source;
use super::tasks::{FrameTask, Parts, Tasks};
use super::window::Load;
use crate::intake::Broken;
use crate::stop::StopSign;

/// A frame as it came out of a chain.
#[derive(Clone, Debug)]
pub struct FrameDone {
    /// Its number in the input, from 0.
    pub number: u64,
    /// The frame.
    pub frame: Frame,
    /// Device, rung, attempts, times and bytes.
    pub report: Report,
}

/// Frames from a stream, in input order. See [`Distributor::stream`](super::Distributor::stream).
///
/// Dropping it gives up the frames under way.
#[must_use = "frames are worked on as they are asked for"]
pub struct FrameStream<E>(Flow<Box<dyn Source<Error = E> + Send>>);

impl<E> FrameStream<E> {
    pub(super) fn new(pool: &Arc<Pool>, chain: Parts, source: impl Source<Error = E> + Send + 'static) -> Self {
        Self(Flow::new(pool, chain, Box::new(source)))
    }

    /// Ends when the sign is raised, after the frames that were delivered until then.
    pub fn stop_on(mut self, sign: &StopSign) -> Self {
        self.0.sign = Some(sign.clone());
        self
    }

    /// Frames that are pulled and not yet delivered at most, beside the two that wait to be taken in: 1 until the first
    /// has come, whose size it depends on; then as many as keep every device busy, as it becomes known how fast each is.
    pub fn window(&self) -> usize {
        self.0.window
    }

    /// Figures for each device as they stand.
    pub fn stats(&self) -> FrameStats {
        self.0.meter.stats()
    }

    /// A handle on the figures, to show them while another thread takes the frames.
    pub fn meter(&self) -> FrameMeter {
        self.0.meter.clone()
    }
}

impl<E> Iterator for FrameStream<E> {
    type Item = Result<FrameDone, FrameError<E>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// Nothing in it is pinned.
impl<E> Unpin for FrameStream<E> {}

impl<E> Stream for FrameStream<E> {
    type Item = Result<FrameDone, FrameError<E>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll(context)
    }
}

impl<E> std::fmt::Debug for FrameStream<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Flow { pulled, delivered, window, .. } = &self.0;
        let mut shown = f.debug_struct("FrameStream");
        shown.field("pulled", pulled).field("delivered", delivered).field("window", window).finish_non_exhaustive()
    }
}

/// Frames from any source.
pub(super) struct Flow<S: Source> {
    pool: Arc<Pool>,
    /// `None` once it has nothing more to give.
    source: Option<S>,
    tasks: Tasks,
    under_way: VecDeque<UnderWay>,
    pulled: u64,
    delivered: u64,
    window: usize,
    format: Option<Format>,
    frame_bytes: usize,
    /// Bytes that a frame keeps on its device while others look at it, and the smallest line of such a device.
    kept: Option<(Bytes, Bytes)>,
    /// What ends the stream once all before it is delivered.
    last: Option<FrameError<S::Error>>,
    meter: FrameMeter,
    sign: Option<StopSign>,
    over: bool,
}

impl<S: Source> Flow<S> {
    pub(super) fn new(pool: &Arc<Pool>, chain: Parts, source: S) -> Self {
        Self {
            meter: FrameMeter::start(pool.metered(), Arc::downgrade(pool)),
            pool: Arc::clone(pool),
            source: Some(source),
            tasks: Tasks::new(pool, chain),
            under_way: VecDeque::new(),
            pulled: 0,
            delivered: 0,
            // One, until its format tells how large frames are.
            window: 1,
            format: None,
            frame_bytes: 0,
            kept: None,
            last: None,
            sign: None,
            over: false,
        }
    }

    pub(super) fn next(&mut self) -> Option<Result<FrameDone, FrameError<S::Error>>> {
        pollster::block_on(poll_fn(|context| self.poll(context)))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<FrameDone, FrameError<S::Error>>>> {
        if self.over {
            return Poll::Ready(None);
        }
        if self.sign.as_ref().is_some_and(|sign| sign.poll_raised(context).is_ready()) {
            self.close();
            return Poll::Ready(None);
        }
        self.fill(context);
        let Some(first) = self.under_way.front_mut() else {
            if self.source.is_some() {
                return Poll::Pending;
            }
            self.close();
            return Poll::Ready(self.last.take().map(Err));
        };
        let ended = ready!(first.poll(context));
        let (number, bytes_in, before) = (first.number, first.bytes, first.first_part());
        self.under_way.pop_front();
        let before = before.and_then(Result::ok).map(|before| before.report);
        Poll::Ready(Some(self.deliver(number, bytes_in, before.as_ref(), ended)))
    }

    fn deliver(
        &mut self,
        number: u64,
        bytes_in: usize,
        before: Option<&Report>,
        ended: TaskResult<Frame>,
    ) -> Result<FrameDone, FrameError<S::Error>> {
        match ended {
            Ok(done) => {
                self.delivered += 1;
                self.meter.delivered(&done.report, before, bytes_in, done.output.bytes().len());
                self.set_window();
                Ok(FrameDone { number, frame: done.output, report: done.report })
            }
            Err(failure) => {
                self.meter.given_up(&failure.error);
                self.close();
                Err(FrameError::Failed { number, failure })
            }
        }
    }

    /// Pulls frames while there is room for them.
    fn fill(&mut self, context: &mut Context<'_>) {
        while self.pulled - self.delivered < self.window as u64
            && let Some(source) = &mut self.source
            && let Poll::Ready(given) = source.poll_frame(context)
        {
            match given {
                Some(Ok(frame)) => self.take_in(frame),
                Some(Err(Broken::Failed(cause))) => {
                    self.end_input(Some(FrameError::Input { number: self.pulled, cause }));
                }
                Some(Err(Broken::Panicked(message))) => {
                    self.end_input(Some(FrameError::InputPanicked { number: self.pulled, message }));
                }
                None => self.end_input(None),
            }
            while let Some(task) = self.tasks.next_ready() {
                self.under_way.push_back(UnderWay::begin(&self.pool, self.tasks.chain(), task));
            }
        }
    }

    fn take_in(&mut self, frame: Frame) {
        if self.format != Some(frame.format())
            && let Err(cause) = self.meet(frame.format())
        {
            self.end_input(Some(cause));
            return;
        }
        self.pulled += 1;
        self.tasks.add(frame);
    }

    /// Frames of a format that was not seen before it follow.
    fn meet(&mut self, format: Format) -> Result<(), FrameError<S::Error>> {
        let (number, workload) = (self.pulled, self.tasks.chain().workload());
        let refused = |cause| FrameError::Plan { number, cause };
        let output = workload.output(format).map_err(refused)?;
        let (kept, least) = workload.kept(format).map_err(refused)?;
        self.kept = None;
        if kept > Bytes::ZERO {
            let devices = self.devices_for(kept, least)?;
            self.kept = devices.iter().map(|(_, line)| *line).min().map(|line| (kept, line));
            self.tasks.set_devices(devices.into_iter().map(|(device, _)| device).collect());
        }
        self.frame_bytes = format.frame_bytes() + output.frame_bytes();
        self.format = Some(format);
        self.set_window();
        Ok(())
    }

    /// The devices that hold at least so much: on a smaller one a frame would wait for a neighbour that never fits.
    fn devices_for(&self, kept: Bytes, least: Bytes) -> Result<Vec<(DeviceId, Bytes)>, FrameError<S::Error>> {
        let mut lines = self.pool.lines();
        let most = lines.iter().map(|(_, line)| *line).max().unwrap_or_default();
        lines.retain(|(_, line)| *line >= least);
        match lines.is_empty() {
            true => Err(FrameError::TooLarge { number: self.pulled, kept, least, most }),
            false => Ok(lines),
        }
    }

    /// As many frames as keep every device busy, by what is known of them now.
    fn set_window(&mut self) {
        let around = self.tasks.chain().workload().chain().frames_around();
        let load = Load { devices: self.meter.paces(), frame_bytes: self.frame_bytes, around, kept: self.kept };
        self.window = load.window();
        self.tasks.set_run(load.run());
    }

    fn end_input(&mut self, last: Option<FrameError<S::Error>>) {
        self.tasks.cut();
        self.source = None;
        self.last = last;
    }

    /// Nothing comes any more: what is under way is given up.
    fn close(&mut self) {
        self.over = true;
        self.source = None;
        self.under_way.clear();
        self.tasks.give_up();
        self.meter.end();
    }
}

/// A frame that was handed in.
struct UnderWay {
    number: u64,
    bytes: usize,
    /// What is done to it by itself, of a chain that looks at others. It has ended before the rest begins.
    first: Option<Ticket<()>>,
    claim: Claim,
}

enum Claim {
    /// It will come.
    Ticket(Ticket<Frame>),
    /// It was never taken in.
    Refused(RunError),
    /// It came.
    Settled,
}

impl UnderWay {
    fn begin(pool: &Pool, chain: &Registered<ChainWorkload>, task: FrameTask) -> Self {
        let FrameTask { number, bytes, task, first } = task;
        let submitted = task.and_then(|task| pool.orchestrator.submit(chain, task).map_err(RunError::from));
        let claim = match submitted {
            Ok(ticket) => Claim::Ticket(ticket),
            Err(failure) => Claim::Refused(failure),
        };
        Self { number, bytes, first, claim }
    }

    /// How its first part ended, if it has one.
    fn first_part(&mut self) -> Option<TaskResult<()>> {
        self.first.take().and_then(|mut ticket| ticket.poll_now())
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<TaskResult<Frame>> {
        if let Claim::Ticket(ticket) = &mut self.claim {
            let ended = ready!(Pin::new(ticket).poll(context));
            self.claim = Claim::Settled;
            return Poll::Ready(ended);
        }
        match std::mem::replace(&mut self.claim, Claim::Settled) {
            Claim::Refused(failure) => Poll::Ready(Err(failure)),
            Claim::Ticket(_) | Claim::Settled => Poll::Pending,
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Claim::Ticket(ticket) = &self.claim {
            ticket.cancel();
        }
        if let Some(first) = &self.first {
            first.cancel();
        }
    }
}
