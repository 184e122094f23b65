//! What a chain does to each frame by itself before it looks at it among others, as a workload. What it gives stays where
//! it was made, as a value that the frames around it take.
//! Invariant: a frame's planes go with the last frame that looks at them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use plimsoll_core::task::SessionShape;
use plimsoll_core::{Fault, Ladder, Rung};
use plimsoll_runtime::{Backend, Cancellation, Context, Session, Workload};

use super::device::DeviceWork;
use super::frame::Frame;
use super::host::HostWork;
use super::plan::Program;
use super::planned::{GPU, Planned, Plans, ladder_to_an_error};
use crate::run::Run;

/// The first part of a chain that looks at other frames: see
/// [`ChainWorkload::first_part`](super::ChainWorkload::first_part). Its task is a frame; what it keeps is claimed with
/// [`Orchestrator::submit_for_value`](plimsoll_runtime::Orchestrator::submit_for_value).
#[derive(Debug)]
pub struct FirstPart {
    name: String,
    plans: Arc<Plans>,
}

impl FirstPart {
    pub(super) fn new(plans: &Arc<Plans>) -> Self {
        Self { name: format!("frames {} (each by itself)", plans.chain), plans: Arc::clone(plans) }
    }
}

const LOOKS_AT_NO_OTHERS: &str = "this chain looks at no other frames, so it has one part only";

impl Workload for FirstPart {
    type Input = Frame;
    type Reference = ();
    type Prepared = ();
    type Output = ();

    fn name(&self) -> &str {
        &self.name
    }

    fn units(&self, frame: &Frame) -> u64 {
        frame.format().size().pixels()
    }

    fn ladder(&self, frame: &Frame) -> Ladder {
        let planned = self.plans.planned(frame.format()).ok();
        planned.and_then(|planned| planned.first.clone()).unwrap_or_else(ladder_to_an_error)
    }

    fn shape(&self, frame: &Frame) -> SessionShape {
        let mut hasher = DefaultHasher::new();
        frame.format().hash(&mut hasher);
        SessionShape { params: self.plans.fingerprint, shape: hasher.finish() }
    }

    fn open(&self, rung: &Rung, frame: &Frame, backend: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        let planned = self.plans.planned(frame.format()).map_err(Fault::work)?;
        let program = program(&planned)?;
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

fn program(planned: &Planned) -> Result<&Program, Fault> {
    planned.plan.first().ok_or_else(|| Fault::work(LOOKS_AT_NO_OTHERS))
}

struct DeviceSession {
    planned: Arc<Planned>,
    work: DeviceWork,
}

impl Session<FirstPart> for DeviceSession {
    fn run(&mut self, frame: &Frame, context: &mut Context<'_, FirstPart>) -> Result<(), Fault> {
        let mut run = Run { backend: &mut *context.backend, cancellation: context.cancellation };
        let planes = self.work.planes(&mut run, program(&self.planned)?, Some(frame.bytes()))?;
        // Whoever looks at it claimed it when the task was handed in.
        context.keep(planes).map(drop)
    }
}

struct HostSession {
    planned: Arc<Planned>,
    work: HostWork,
}

impl Session<FirstPart> for HostSession {
    fn run(&mut self, frame: &Frame, context: &mut Context<'_, FirstPart>) -> Result<(), Fault> {
        let planes = self.work.planes(program(&self.planned)?, Some(frame.bytes()), context.cancellation)?;
        let words = planes.into_iter().map(|plane| plane.into_iter().map(f32::to_bits).collect());
        let buffers = words.map(|words| context.backend.adopt(words)).collect::<Result<_, _>>()?;
        context.keep(buffers).map(drop)
    }
}
