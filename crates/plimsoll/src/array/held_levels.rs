//! Levels made on a GPU, in a session that is held: several slabs under way, and none lost with the device.
//! Never gives a slab out twice or out of turn. Invariant: a slab is remembered here until it came out; what is lost with
//! a session is fed again to the next one.

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use plimsoll_arrays::work::{Slab, SlabStep, StagedSlabsWork};
use plimsoll_core::{DeviceId, SubmitErrorKind, TaskError};
use plimsoll_runtime::{Held, Orchestrator, SubmitError, Task, TaskResult, Ticket};

use super::error::ArrayError;
use super::level_maker::{LevelMaker, WithLevels};
use crate::stage_choice::StageChoice;

/// Slabs fed and not come out: one more than are under way on the deepest rung, so that its slots are all in use.
const SLABS_MAX: usize = 4;
/// Sessions that are begun again after a loss. Then the CPU does the rest, or it is an error if that was not allowed.
const RESTARTS_MAX: usize = 3;

pub(super) struct HeldLevels {
    held: Held<StagedSlabsWork>,
    on: StageChoice,
    /// Where tasks may run; empty for everywhere.
    devices: Vec<DeviceId>,
    cpus: Vec<DeviceId>,
    /// Of the tasks that have not ended, first to last.
    tickets: VecDeque<Ticket<Vec<WithLevels>>>,
    /// Slabs that have not come out, first to last.
    unpublished: VecDeque<Arc<Slab>>,
    /// Come out, and not yet given out.
    made: VecDeque<WithLevels>,
    is_lost: bool,
    restarts: usize,
}

impl HeldLevels {
    pub(super) fn new(orchestrator: &Orchestrator, work: StagedSlabsWork, on: StageChoice) -> Self {
        let work = orchestrator.register(work);
        Self {
            held: orchestrator.hold(&work),
            on,
            devices: on.devices(orchestrator).unwrap_or_default(),
            cpus: StageChoice::Cpu.devices(orchestrator).unwrap_or_default(),
            tickets: VecDeque::new(),
            unpublished: VecDeque::new(),
            made: VecDeque::new(),
            is_lost: false,
            restarts: 0,
        }
    }

    /// Submits a step. If the session is lost this is done with all the others when it begins again.
    fn step(&mut self, step: SlabStep) -> Result<(), ArrayError> {
        if self.is_lost {
            return Ok(());
        }
        let is_flush = matches!(step, SlabStep::Flush);
        let task = Task::new(step);
        let task = if is_flush { task.drains() } else { task };
        let devices = self.devices.iter().copied();
        let task = if self.devices.is_empty() { task } else { task.devices(devices) };
        match self.held.submit(task) {
            Ok(ticket) => self.tickets.push_back(ticket),
            Err(SubmitError { reason: SubmitErrorKind::SessionLost { .. }, .. }) => self.is_lost = true,
            Err(SubmitError { reason, .. }) => return Err(ArrayError::Refused { what: self.what(), reason }),
        }
        Ok(())
    }

    /// A task has ended: what came out is in its turn.
    fn settle(&mut self, result: TaskResult<Vec<WithLevels>>) -> Result<(), ArrayError> {
        match result {
            Ok(done) => {
                for slabs in done.output {
                    let oldest = self.unpublished.pop_front();
                    let place = |slab: &Slab| (slab.first, slab.steps);
                    debug_assert!(oldest.is_some_and(|oldest| place(&oldest) == place(&slabs[0])), "out of turn");
                    self.made.push_back(slabs);
                }
                Ok(())
            }
            Err(failure) if is_loss(&failure.error) => {
                self.is_lost = true;
                Ok(())
            }
            Err(failure) => Err(ArrayError::Work { what: self.what(), failure: Arc::new(failure) }),
        }
    }

    /// Begins a session again once all tasks of the lost one have ended, with every slab that has not come out.
    fn restart(&mut self) -> Result<(), ArrayError> {
        self.restarts += 1;
        match self.on {
            _ if self.restarts <= RESTARTS_MAX => {}
            StageChoice::Auto if self.restarts == RESTARTS_MAX + 1 => self.devices.clone_from(&self.cpus),
            _ => return Err(ArrayError::SessionsLost { what: self.what(), times: self.restarts }),
        }
        self.held.restart();
        self.is_lost = false;
        let again: Vec<Arc<Slab>> = self.unpublished.iter().cloned().collect();
        again.into_iter().try_for_each(|slab| self.step(SlabStep::Feed(slab)))
    }

    fn what(&self) -> String {
        let first = self.unpublished.front().map_or(0, |slab| slab.first);
        format!("making levels of the steps from {first} on")
    }
}

/// Whether a task ended because its session is gone, or because that was the end of the one before it.
fn is_loss(error: &TaskError) -> bool {
    match error {
        TaskError::SessionLost { .. } => true,
        TaskError::PredecessorFailed { cause, .. } => is_loss(cause),
        _ => false,
    }
}

impl LevelMaker for HeldLevels {
    fn has_room(&self) -> bool {
        self.unpublished.len() < SLABS_MAX
    }

    fn submit(&mut self, slab: Slab) -> Result<(), ArrayError> {
        let slab = Arc::new(slab);
        self.unpublished.push_back(Arc::clone(&slab));
        self.step(SlabStep::Feed(slab))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<WithLevels, ArrayError>> {
        loop {
            if let Some(slabs) = self.made.pop_front() {
                return Poll::Ready(Ok(slabs));
            }
            let settled = match self.tickets.front_mut() {
                None if self.is_lost => self.restart(),
                None => return Poll::Pending,
                Some(ticket) => match Pin::new(ticket).poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(result) => {
                        self.tickets.pop_front();
                        self.settle(result)
                    }
                },
            };
            if let Err(error) = settled {
                return Poll::Ready(Err(error));
            }
        }
    }

    fn hurry(&mut self) -> Result<bool, ArrayError> {
        let is_kept = self.tickets.is_empty() && !self.unpublished.is_empty();
        if is_kept {
            self.step(SlabStep::Flush)?;
        }
        Ok(is_kept)
    }

    fn is_empty(&self) -> bool {
        self.unpublished.is_empty() && self.made.is_empty()
    }
}

#[cfg(test)]
mod tests;
