//! A chain as a workload: the task is a frame; frames that others look at are its references.
//! Invariant: what comes out does not depend on the device, but for the last code within the stated bound.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::task::SessionShape;
use plimsoll_core::{Bytes, ContentKey, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Buffer, Cancellation, Content, Context, Reference, Session, Task, Workload};

use smallvec::{SmallVec, smallvec};

use super::chain::Chain;
use super::device::{DeviceWork, can_launch};
use super::format::Format;
use super::frame::Frame;
use super::host::{self, HostPlanes, HostWork};
use super::plan::{Plan, PlanError};
use crate::footprint::CountingBackend;
use crate::run::Run;

/// The names of the rungs, best first.
pub const RUNGS: [&str; 2] = [GPU, CPU];
/// Every plane lies on a GPU, from the first operation to the last.
const GPU: &str = "gpu";
/// Rows are pulled through all operations by one core.
const CPU: &str = "cpu";

/// Formats whose plans are kept. Most streams have one.
const PLANS_MAX: usize = 16;

/// A chain that an orchestrator can run.
///
/// ```
/// use plimsoll_image::Size;
/// use plimsoll_image::frames::{Chain, ChainWorkload, Colour, Format, Frame};
/// use plimsoll_runtime::Orchestrator;
/// let orchestrator = Orchestrator::builder().cpu(1).build();
/// let chain: Chain = "crop=1x1+1+0".parse()?;
/// let workload = orchestrator.register(ChainWorkload::new(chain));
/// let format = Format::new(Size { width: 3, height: 1 }, 8, Colour::Rgb)?;
/// let frame = Frame::new(format, vec![1, 2, 3, 4, 5, 6, 7, 8, 9])?;
/// let done = orchestrator.run(&workload, ChainWorkload::task(frame))?;
/// assert_eq!(done.output.bytes(), [4, 5, 6]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChainWorkload {
    name: String,
    chain: Chain,
    fingerprint: u64,
    plans: Mutex<HashMap<Format, Arc<Planned>>>,
}

/// A frame to work on.
#[derive(Clone, Debug)]
pub struct ChainInput {
    frame: Frame,
    /// For a chain that looks at other frames: which of the task's references is the frame itself, then which are those
    /// before and after it.
    among: SmallVec<[u8; 8]>,
}

impl ChainInput {
    fn has_others(&self) -> bool {
        self.among.len() > 1
    }
}

/// A frame of a stream, told from all others by its stream and its number.
#[derive(Clone, Debug)]
pub struct StreamFrame {
    /// The stream: any number that no other stream of this process has.
    pub stream: u64,
    /// The frame's number in it.
    pub number: u64,
    /// The frame.
    pub frame: Frame,
}

impl Content for StreamFrame {
    fn key(&self) -> ContentKey {
        ContentKey(u128::from(self.stream) << 64 | u128::from(self.number))
    }
}

/// A plan and what it needs.
#[derive(Debug)]
struct Planned {
    plan: Plan,
    ladder: Ladder,
    ladder_alone: Ladder,
}

impl ChainWorkload {
    /// A chain as a workload.
    pub fn new(chain: Chain) -> Self {
        let fingerprint = chain.fingerprint();
        Self { name: format!("frames {chain}"), chain, fingerprint, plans: Mutex::default() }
    }

    /// The chain.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The format of the frames that come out, if frames of this format go in.
    ///
    /// # Errors
    /// [`PlanError`] if an operation cannot be done to them.
    pub fn output(&self, input: Format) -> Result<Format, PlanError> {
        self.planned(input).map(|planned| planned.plan.output)
    }

    /// The task for a frame, for a chain that looks at no other.
    pub fn task(frame: Frame) -> Task<Self> {
        Task::new(Self::input(frame))
    }

    /// A frame to work on by itself.
    pub fn input(frame: Frame) -> ChainInput {
        ChainInput { frame, among: SmallVec::new() }
    }

    /// The task for a frame among others of its stream, in their order: `own` is its place. There should be as many
    /// before and after it as [`Chain::frames_around`] says; where the stream ends, those on the other side stand in.
    ///
    /// # Panics
    /// If `own` is no place among the frames.
    pub fn task_among(&self, frames: &[Reference<Self>], own: usize, frame: Frame) -> Task<Self> {
        let task = Task::new(self.input_among(frames.len(), own, frame));
        frames.iter().fold(task, |task, frame| task.reference(frame))
    }

    /// A frame to work on among `count` of its stream: see [`ChainWorkload::task_among`].
    ///
    /// # Panics
    /// If `own` is no place among the frames.
    pub fn input_among(&self, count: usize, own: usize, frame: Frame) -> ChainInput {
        assert!(own < count, "the frame is one of those it is among");
        ChainInput { frame, among: places_among(count, own, self.chain.frames_around()) }
    }

    fn planned(&self, format: Format) -> Result<Arc<Planned>, PlanError> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(planned) = plans.get(&format) {
            return Ok(Arc::clone(planned));
        }
        if plans.len() >= PLANS_MAX {
            plans.clear();
        }
        let plan = Plan::new(&self.chain, format)?;
        let (ladder, ladder_alone) = (ladder(&plan, true), ladder(&plan, false));
        let planned = Arc::new(Planned { plan, ladder, ladder_alone });
        plans.insert(format, Arc::clone(&planned));
        Ok(planned)
    }
}

impl Workload for ChainWorkload {
    type Input = ChainInput;
    type Reference = StreamFrame;
    type Prepared = Planes;
    type Output = Frame;

    fn name(&self) -> &str {
        &self.name
    }

    fn units(&self, input: &ChainInput) -> u64 {
        input.frame.format().size().pixels()
    }

    fn ladder(&self, input: &ChainInput) -> Ladder {
        match self.planned(input.frame.format()) {
            Ok(planned) if input.has_others() => planned.ladder.clone(),
            Ok(planned) => planned.ladder_alone.clone(),
            // A chain that cannot be done has a rung on which that becomes the task's error.
            Err(_) => Ladder::from(vec![Rung::new(CPU, Place::On(DeviceKind::Cpu), Footprint::default())]),
        }
    }

    fn shape(&self, input: &ChainInput) -> SessionShape {
        let mut hasher = DefaultHasher::new();
        (input.frame.format(), input.has_others()).hash(&mut hasher);
        SessionShape { params: self.fingerprint, shape: hasher.finish() }
    }

    fn open(
        &self,
        rung: &Rung,
        input: &ChainInput,
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Session<Self>>, Fault> {
        let planned = self.planned(input.frame.format()).map_err(Fault::work)?;
        let (first, last) = (planned.plan.first(), planned.plan.last(input.has_others()));
        match rung.name {
            GPU => {
                let mut run = Run { backend, cancellation: Cancellation::never() };
                let first = first.map(|program| DeviceWork::open(&mut run, program)).transpose()?;
                let last = DeviceWork::open(&mut run, last)?;
                Ok(Box::new(DeviceSession { planned, first, last }))
            }
            _ => {
                let (first, last) = (first.map(HostWork::open), HostWork::open(last));
                Ok(Box::new(HostSession { planned, first, last }))
            }
        }
    }
}

/// The places, among `count` frames, of the frame itself and of those around it. Where one side ends, the other stands
/// in, so that the ends of a stream are treated as its middle is; a frame without others has none.
fn places_among(count: usize, own: usize, around: usize) -> SmallVec<[u8; 8]> {
    let mut places: SmallVec<[u8; 8]> = smallvec![own as u8];
    for away in (1..=around).filter(|_| count > 1) {
        let (before, after) = (own.checked_sub(away), Some(own + away).filter(|place| *place < count));
        let furthest = if 2 * own >= count { 0 } else { count - 1 };
        places.push(before.or(after).unwrap_or(furthest) as u8);
        places.push(after.or(before).unwrap_or(furthest) as u8);
    }
    places
}

const NO_OTHERS: &str = "this chain looks at no other frames";

/// The planes of a frame that others look at, as a rung keeps them.
#[derive(Debug)]
pub enum Planes {
    /// On a device.
    Device(Vec<Buffer>),
    /// In host memory.
    Host(HostPlanes),
}

impl Planes {
    fn on_device(&self) -> Option<&Vec<Buffer>> {
        if let Self::Device(planes) = self { Some(planes) } else { None }
    }

    fn on_host(&self) -> Option<&HostPlanes> {
        if let Self::Host(planes) = self { Some(planes) } else { None }
    }
}

struct DeviceSession {
    planned: Arc<Planned>,
    first: Option<DeviceWork>,
    last: DeviceWork,
}

impl Session<ChainWorkload> for DeviceSession {
    fn prepare(&mut self, reference: &StreamFrame, backend: &mut dyn Backend) -> Result<Planes, Fault> {
        let mut run = Run { backend, cancellation: Cancellation::never() };
        let (Some(work), Some(program)) = (&self.first, self.planned.plan.first()) else {
            return Err(Fault::work(NO_OTHERS));
        };
        Ok(Planes::Device(work.planes(&mut run, program, Some(reference.frame.bytes()))?))
    }

    fn run(&mut self, input: &ChainInput, context: &mut Context<'_, ChainWorkload>) -> Result<Frame, Fault> {
        let plan = &self.planned.plan;
        let among = among(plan, input, context, Planes::on_device)?;
        let given: Vec<&Buffer> = among.into_iter().flatten().collect();
        let mut run = Run { backend: &mut *context.backend, cancellation: context.cancellation };
        let program = plan.last(input.has_others());
        let bytes = self.last.frame(&mut run, program, Some(input.frame.bytes()), &given)?;
        Frame::new(plan.output, bytes).map_err(Fault::work)
    }
}

struct HostSession {
    planned: Arc<Planned>,
    first: Option<HostWork>,
    last: HostWork,
}

impl Session<ChainWorkload> for HostSession {
    fn prepare(&mut self, reference: &StreamFrame, _: &mut dyn Backend) -> Result<Planes, Fault> {
        let (Some(work), Some(program)) = (&mut self.first, self.planned.plan.first()) else {
            return Err(Fault::work(NO_OTHERS));
        };
        Ok(Planes::Host(work.planes(program, Some(reference.frame.bytes()), Cancellation::never())?))
    }

    fn run(&mut self, input: &ChainInput, context: &mut Context<'_, ChainWorkload>) -> Result<Frame, Fault> {
        let plan = &self.planned.plan;
        let among = among(plan, input, context, Planes::on_host)?;
        let given: Vec<&[f32]> = among.into_iter().flatten().map(Vec::as_slice).collect();
        let program = plan.last(input.has_others());
        let bytes = self.last.frame(program, Some(input.frame.bytes()), &given, context.cancellation)?;
        Frame::new(plan.output, bytes).map_err(Fault::work)
    }
}

/// The planes of the frame itself and then those of the others; none for a chain that looks at no other frames.
fn among<'a, T>(
    plan: &Plan,
    input: &ChainInput,
    context: &Context<'a, ChainWorkload>,
    planes: fn(&'a Planes) -> Option<&'a T>,
) -> Result<Vec<&'a T>, Fault> {
    if plan.first().is_some() && input.among.is_empty() {
        return Err(Fault::work("the chain looks at other frames; make its tasks with `task_among`"));
    }
    let missing = || Fault::work("a frame that the task looks at is not prepared for this rung");
    let each = input.among.iter().map(|place| context.reference(usize::from(*place)).map(planes));
    each.map(|planes| planes?.ok_or_else(missing)).collect()
}

fn ladder(plan: &Plan, has_others: bool) -> Ladder {
    let on_cpu = Rung::new(CPU, Place::On(DeviceKind::Cpu), on_host(plan, has_others));
    if !plan.first().into_iter().chain([plan.last(has_others)]).all(can_launch) {
        return Ladder::from(vec![on_cpu]);
    }
    let footprint = on_device(plan, has_others).expect("counting never fails");
    Ladder::from(vec![Rung::new(GPU, Place::On(DeviceKind::Gpu), footprint), on_cpu])
}

/// Counted by doing what a session does on a device that only counts.
fn on_device(plan: &Plan, has_others: bool) -> Result<Footprint, Fault> {
    let (mut counting, cancellation) = (CountingBackend::default(), Cancellation::never());
    let mut run = Run { backend: &mut counting, cancellation };
    let first = plan.first().map(|program| DeviceWork::open(&mut run, program)).transpose()?;
    let _last = DeviceWork::open(&mut run, plan.last(has_others))?;
    let session = counting.held();
    let (Some(work), Some(program)) = (&first, plan.first()) else {
        return Ok(Footprint { session, ..Footprint::default() });
    };
    let _kept = work.planes(&mut Run { backend: &mut counting, cancellation }, program, None)?;
    Ok(Footprint { session, task: Bytes::ZERO, reference: Bytes(counting.held().0 - session.0) })
}

fn on_host(plan: &Plan, has_others: bool) -> Footprint {
    let (last, task) = host::bytes(plan.last(has_others));
    let (first, reference) = plan.first().map(host::bytes).unwrap_or_default();
    Footprint { session: first + last, task, reference }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::format::{Colour, Range};

    #[test]
    fn what_no_launch_covers_is_left_to_the_cpu() {
        let workload = ChainWorkload::new("crop=16x1+0+0".parse().unwrap());
        let rungs = |width| {
            let size = crate::image::Size { width, height: 1 };
            let format = Format::new(size, 8, Colour::Mono(Range::Full)).unwrap();
            let input = ChainWorkload::input(Frame::new(format, vec![0; width as usize]).unwrap());
            workload.ladder(&input).rungs().iter().map(|rung| rung.name).collect::<Vec<_>>()
        };
        assert_eq!(rungs(65_535 * 16), RUNGS);
        assert_eq!(rungs(65_535 * 16 + 1), [CPU]);
    }

    #[test]
    fn where_a_stream_ends_the_other_side_stands_in() {
        let places = |count, own, around| places_among(count, own, around).to_vec();
        assert_eq!(places(5, 2, 2), [2, 1, 3, 0, 4]);
        assert_eq!(places(3, 0, 2), [0, 1, 1, 2, 2]);
        assert_eq!(places(2, 0, 2), [0, 1, 1, 1, 1]);
        assert_eq!(places(2, 1, 2), [1, 0, 0, 0, 0]);
        assert_eq!(places(1, 0, 2), [0]);
    }
}
