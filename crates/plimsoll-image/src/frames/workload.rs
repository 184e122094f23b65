//! A chain as a workload: the task is a frame, or a frame among others whose planes are the task's values.
//! Invariant: what comes out does not depend on the device, but for the last code within the stated bound.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use plimsoll_core::task::SessionShape;
use plimsoll_core::{Bytes, Fault, Ladder, Rung};
use plimsoll_runtime::{Backend, Buffer, Cancellation, Context, Session, Task, Value, View, Workload};

use smallvec::{SmallVec, smallvec};

use super::chain::Chain;
use super::device::DeviceWork;
use super::first_part::FirstPart;
use super::format::Format;
use super::frame::Frame;
use super::host::HostWork;
use super::plan::PlanError;
use super::planned::{CPU, GPU, Planned, Plans, ladder_to_an_error};
use crate::run::Run;

/// The names of the rungs, best first.
pub const RUNGS: [&str; 2] = [GPU, CPU];

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
    plans: Arc<Plans>,
}

/// A frame to work on.
#[derive(Clone, Debug)]
pub struct ChainInput {
    format: Format,
    /// `None` if it is one of the task's values.
    frame: Option<Frame>,
    /// For a chain that looks at other frames: which of the task's values is the frame itself, then which are those
    /// before and after it.
    among: SmallVec<[u8; 8]>,
}

impl ChainInput {
    fn has_others(&self) -> bool {
        self.among.len() > 1
    }
}

impl ChainWorkload {
    /// A chain as a workload.
    pub fn new(chain: Chain) -> Self {
        Self { name: format!("frames {chain}"), plans: Arc::new(Plans::new(chain)) }
    }

    /// The chain.
    pub fn chain(&self) -> &Chain {
        &self.plans.chain
    }

    /// The part of the chain that is done to each frame by itself before the rest looks at it among others; `None` for a
    /// chain that looks at no other frames.
    pub fn first_part(&self) -> Option<FirstPart> {
        (self.chain().frames_around() > 0).then(|| FirstPart::new(&self.plans))
    }

    /// The format of the frames that come out, if frames of this format go in.
    ///
    /// # Errors
    /// [`PlanError`] if an operation cannot be done to them.
    pub fn output(&self, input: Format) -> Result<Format, PlanError> {
        self.plans.planned(input).map(|planned| planned.plan.output)
    }

    /// What a frame of this format keeps on its device until the last that looks at it is done, and what a device must
    /// have so that frames among others get done on it at all. Both are nothing for a chain that looks at no other frames.
    ///
    /// # Errors
    /// [`PlanError`] if an operation cannot be done to them.
    pub fn kept(&self, input: Format) -> Result<(Bytes, Bytes), PlanError> {
        let (planned, around) = (self.plans.planned(input)?, self.chain().frames_around());
        Ok(if around > 0 { (planned.kept(), planned.least(around)) } else { (Bytes::ZERO, Bytes::ZERO) })
    }

    /// The task for a frame, for a chain that looks at no other.
    pub fn task(frame: Frame) -> Task<Self> {
        Task::new(Self::input(frame))
    }

    /// A frame to work on by itself.
    pub fn input(frame: Frame) -> ChainInput {
        ChainInput { format: frame.format(), frame: Some(frame), among: SmallVec::new() }
    }

    /// The task for a frame of this format among others of its stream, each as its [`FirstPart`] keeps it, in their order:
    /// `own` is its place. There should be as many before and after it as [`Chain::frames_around`] says; where the stream
    /// ends, those on the other side stand in.
    ///
    /// # Panics
    /// If `own` is no place among the frames.
    pub fn task_among(&self, frames: Vec<Value>, own: usize, format: Format) -> Task<Self> {
        let task = Task::new(self.input_among(frames.len(), own, format));
        frames.into_iter().fold(task, Task::takes)
    }

    /// A frame to work on among `count` of its stream: see [`ChainWorkload::task_among`].
    ///
    /// # Panics
    /// If `own` is no place among the frames.
    pub fn input_among(&self, count: usize, own: usize, format: Format) -> ChainInput {
        assert!(own < count, "the frame is one of those it is among");
        ChainInput { format, frame: None, among: places_among(count, own, self.chain().frames_around()) }
    }
}

impl Workload for ChainWorkload {
    type Input = ChainInput;
    type Reference = ();
    type Prepared = ();
    type Output = Frame;

    fn name(&self) -> &str {
        &self.name
    }

    fn units(&self, input: &ChainInput) -> u64 {
        input.format.size().pixels()
    }

    fn ladder(&self, input: &ChainInput) -> Ladder {
        match self.plans.planned(input.format) {
            Ok(planned) if input.has_others() => planned.last.clone(),
            Ok(planned) => planned.last_alone.clone(),
            Err(_) => ladder_to_an_error(),
        }
    }

    fn shape(&self, input: &ChainInput) -> SessionShape {
        let mut hasher = DefaultHasher::new();
        (input.format, input.has_others()).hash(&mut hasher);
        SessionShape { params: self.plans.fingerprint, shape: hasher.finish() }
    }

    fn open(
        &self,
        rung: &Rung,
        input: &ChainInput,
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Session<Self>>, Fault> {
        let planned = self.plans.planned(input.format).map_err(Fault::work)?;
        let program = planned.plan.last(input.has_others());
        match rung.name {
            GPU => {
                let work = DeviceWork::open(&mut Run { backend, cancellation: Cancellation::never() }, program)?;
                Ok(Box::new(DeviceSession { planned, work }))
            }
            _ => {
                let work = HostWork::open(program)?;
                Ok(Box::new(HostSession { planned, work }))
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

struct DeviceSession {
    planned: Arc<Planned>,
    work: DeviceWork,
}

impl Session<ChainWorkload> for DeviceSession {
    fn run(&mut self, input: &ChainInput, context: &mut Context<'_, ChainWorkload>) -> Result<Frame, Fault> {
        let plan = &self.planned.plan;
        let given = given(&self.planned, input, context)?;
        let mut run = Run { backend: &mut *context.backend, cancellation: context.cancellation };
        let program = plan.last(input.has_others());
        let bytes = self.work.frame(&mut run, program, input.frame.as_ref().map(Frame::bytes), &given)?;
        Frame::new(plan.output, bytes).map_err(Fault::work)
    }
}

struct HostSession {
    planned: Arc<Planned>,
    work: HostWork,
}

impl Session<ChainWorkload> for HostSession {
    fn run(&mut self, input: &ChainInput, context: &mut Context<'_, ChainWorkload>) -> Result<Frame, Fault> {
        let plan = &self.planned.plan;
        let given = given(&self.planned, input, context)?;
        let views = given.into_iter().map(|buffer| context.backend.view(buffer)).collect::<Result<Vec<_>, _>>()?;
        let given: Vec<&[f32]> = views.iter().map(View::floats).collect();
        if let Some(frame) = &input.frame
            && plan.first().is_none()
            && self.work.leaves(frame.format(), frame.bytes())
        {
            return frame.with_format(plan.output).map_err(Fault::work);
        }
        let program = plan.last(input.has_others());
        let (frame, spare) = (input.frame.as_ref().map(Frame::bytes), input.frame.as_ref().and_then(Frame::spare));
        let room = spare.and_then(|spare| spare.take(plan.output.frame_bytes()));
        let bytes = self.work.frame(program, frame, &given, room, context.cancellation)?;
        Frame::of_stream(plan.output, bytes, spare.cloned()).map_err(Fault::work)
    }
}

/// The planes of the frame itself and then those of the others; none for a chain that looks at no other frames.
fn given<'a>(
    planned: &Planned,
    input: &ChainInput,
    context: &Context<'a, ChainWorkload>,
) -> Result<Vec<&'a Buffer>, Fault> {
    if planned.plan.first().is_some() && input.among.is_empty() {
        return Err(Fault::work("the chain looks at other frames; make its tasks with `task_among`"));
    }
    let mut given = Vec::new();
    for place in &input.among {
        given.extend(context.value(usize::from(*place))?);
    }
    Ok(given)
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
