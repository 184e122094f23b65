//! The plans of a chain, one for each format of frames, with the ladders of its parts. Both parts of a chain share them.
//! Never opens anything on a device; what a rung holds is counted by its own code.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::Cancellation;

use super::chain::Chain;
use super::device::{DeviceWork, can_launch};
use super::format::Format;
use super::host;
use super::plan::{Plan, PlanError, Program};
use crate::footprint::CountingBackend;
use crate::run::Run;

/// Every plane lies on a GPU, from the first operation to the last.
pub(super) const GPU: &str = "gpu";
/// Rows are pulled through all operations by one core.
pub(super) const CPU: &str = "cpu";

/// Formats whose plans are kept. Most streams have one.
const PLANS_MAX: usize = 16;

/// The plans of one chain.
#[derive(Debug)]
pub(super) struct Plans {
    pub(super) chain: Chain,
    pub(super) fingerprint: u64,
    known: Mutex<HashMap<Format, Arc<Planned>>>,
}

/// A plan and the ways to do each part of it.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) plan: Plan,
    /// What is done to each frame by itself, and stays; of a chain that looks at other frames.
    pub(super) first: Option<Ladder>,
    /// Everything, or the rest to a frame among others.
    pub(super) last: Ladder,
    /// The rest for the only frame of a stream.
    pub(super) last_alone: Ladder,
}

impl Plans {
    pub(super) fn new(chain: Chain) -> Self {
        let fingerprint = chain.fingerprint();
        Self { chain, fingerprint, known: Mutex::default() }
    }

    pub(super) fn planned(&self, format: Format) -> Result<Arc<Planned>, PlanError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(planned) = known.get(&format) {
            return Ok(Arc::clone(planned));
        }
        if known.len() >= PLANS_MAX {
            known.clear();
        }
        let planned = Arc::new(Planned::new(Plan::new(&self.chain, format)?));
        known.insert(format, Arc::clone(&planned));
        Ok(planned)
    }
}

impl Planned {
    fn new(plan: Plan) -> Self {
        let is_for_gpus = plan.first().into_iter().chain([plan.last(true), plan.last(false)]).all(can_launch);
        let ladder = |program: &Program| ladder(program, is_for_gpus);
        let (first, last, last_alone) = (plan.first().map(ladder), ladder(plan.last(true)), ladder(plan.last(false)));
        Self { plan, first, last, last_alone }
    }

    /// What a frame keeps until the last that looks at it is done, on the rung that keeps most.
    pub(super) fn kept(&self) -> Bytes {
        let rungs = self.first.iter().flat_map(|ladder| ladder.rungs());
        rungs.map(|rung| rung.value).max().unwrap_or_default()
    }

    /// What a device must hold so that frames among others get done on it at all: all that one looks at, one more that is
    /// under way, and both parts of the chain.
    pub(super) fn least(&self, around: usize) -> Bytes {
        let total = |ladder: &Ladder| ladder.rungs().iter().map(|rung| rung.total(0)).max().unwrap_or_default();
        let others = Bytes(self.kept().0.saturating_mul(2 * around as u64 + 1));
        self.first.as_ref().map(total).unwrap_or_default() + total(&self.last) + others
    }
}

/// A chain that cannot be done has a rung on which that becomes the task's error.
pub(super) fn ladder_to_an_error() -> Ladder {
    Ladder::from(vec![Rung::new(CPU, Place::On(DeviceKind::Cpu), Footprint::default())])
}

fn ladder(program: &Program, is_for_gpus: bool) -> Ladder {
    let on_cpu = on_host(program);
    if !is_for_gpus {
        return Ladder::from(vec![on_cpu]);
    }
    Ladder::from(vec![on_device(program).expect("counting never fails"), on_cpu])
}

/// Counted by doing what a session does on a device that only counts.
fn on_device(program: &Program) -> Result<Rung, Fault> {
    let (mut counting, cancellation) = (CountingBackend::default(), Cancellation::never());
    let work = DeviceWork::open(&mut Run { backend: &mut counting, cancellation }, program)?;
    let session = counting.held();
    let rung = Rung::new(GPU, Place::On(DeviceKind::Gpu), Footprint { session, ..Footprint::default() });
    if program.to.is_some() {
        return Ok(rung);
    }
    let _kept = work.planes(&mut Run { backend: &mut counting, cancellation }, program, None)?;
    Ok(rung.with_value(Bytes(counting.held().0 - session.0)))
}

fn on_host(program: &Program) -> Rung {
    let (session, result) = host::bytes(program);
    let (task, kept) = if program.to.is_some() { (result, Bytes::ZERO) } else { (Bytes::ZERO, result) };
    let footprint = Footprint { session, task, reference: Bytes::ZERO };
    Rung::new(CPU, Place::On(DeviceKind::Cpu), footprint).with_value(kept)
}
