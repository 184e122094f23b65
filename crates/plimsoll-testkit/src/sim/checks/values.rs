//! A value lies where it is said to, says what it should, is there before a reader starts, and goes with the last of them.
//! One that was lost is made again if any device can, and nobody hears of it.

use std::rc::Rc;

use plimsoll_core::event::{Event, FaultKind, What};
use plimsoll_core::scheduler::ValueTurn;
use plimsoll_core::{DeviceId, Moment, TaskError, TaskId};
use rustc_hash::FxHashMap;

use super::promises::KnownPeaks;
use super::refusals;
use crate::sim::truth::VirtualValue;
use crate::sim::world::{Errand, World};

/// What was seen of a task that no caller handed in.
#[derive(Clone, Debug, Default)]
pub(super) struct Unasked {
    pub(super) since: Moment,
    pub(super) starts: usize,
    pub(super) failures: Vec<(&'static str, DeviceId, FaultKind)>,
}

/// The tasks that no caller handed in.
#[derive(Default)]
pub(super) struct ValueWatch(FxHashMap<TaskId, Unasked>);

impl ValueWatch {
    pub(super) fn hear(&mut self, world: &World, event: &Event) {
        match event.what {
            What::Submitted { task, .. } if world.job(task).is_none() => {
                self.0.insert(task, Unasked { since: event.at, ..Unasked::default() });
            }
            What::Started { task, .. } => self.0.get_mut(&task).into_iter().for_each(|seen| seen.starts += 1),
            What::AttemptFailed { task, rung, device, fault } => {
                if let Some(seen) = self.0.get_mut(&task) {
                    seen.failures.push((rung, device, fault));
                }
            }
            _ => {}
        }
    }

    /// A task ended because a value that it takes could not be made again: one of those it goes back to could not.
    pub(super) fn ended(&self, world: &World, peaks: &KnownPeaks, job: usize, error: &TaskError) -> Result<(), String> {
        let TaskError::PredecessorFailed { task, cause } = error else { return Ok(()) };
        if world.job(*task).is_some() || world.tasks()[job].takes.is_empty() {
            return Ok(());
        }
        let Some(seen) = self.0.get(task) else {
            return Err(format!("values: task {job} ended by {task}, of which nobody has heard"));
        };
        if matches!(**cause, TaskError::ShutDown) && world.is_closed() {
            return Ok(());
        }
        let (mut makers, mut wrong) = (world.tasks()[job].takes.clone(), None);
        while let Some(maker) = makers.pop() {
            match refusals::check_again(world, peaks, (maker, seen), cause) {
                Ok(()) => return Ok(()),
                Err(broken) => wrong = Some(broken),
            }
            makers.extend(&world.tasks()[maker].takes);
        }
        Err(wrong.unwrap_or_else(|| format!("values: task {job} could have been done: {error}")))
    }

    /// What is there is still to be read, or somebody may still name it to a reader.
    pub(super) fn at_rest(world: &World) -> Result<(), String> {
        for (maker, value) in world.values_there() {
            // One is asked for here, and runs may hold it until they are over, or not have handed it over yet.
            let in_flight = world.flights().any(|flight| flight.has_in_hand(&value));
            if !in_flight && !may_lie(world, maker) {
                return Err(format!("values: what job {maker} made lies on {} for nobody", value.device));
            }
        }
        Ok(())
    }
}

/// Whether a value may lie anywhere: somebody can name it, a reader has not ended, or something that was made from it is
/// to be made again.
fn may_lie(world: &World, maker: usize) -> bool {
    let task = &world.tasks()[maker];
    let is_to_be_made = |reader: usize| {
        let value = world.tasks()[reader].value;
        value.is_some_and(|(value, _)| world.core().value_lies_on(value).is_none()) && may_lie(world, reader)
    };
    let reads = |reader: usize| world.tasks()[reader].id.is_some() && world.tasks()[reader].end.is_none();
    task.value.is_some_and(|(_, handles)| handles > 0)
        || task.readers.iter().any(|&reader| reads(reader) || is_to_be_made(reader))
}

/// The values that a run starts with: all of them, where they are said to lie, in that device's present life, and each as
/// its maker has to make it.
pub(in crate::sim) fn values_at_hand(
    world: &World,
    device: DeviceId,
    (job, errand): (usize, Errand),
    turns: &[ValueTurn<Rc<VirtualValue>>],
) -> Result<(), String> {
    let takes: &[usize] = if errand == Errand::Leave { &[] } else { &world.tasks()[job].takes };
    if takes.len() != turns.len() {
        return Err(format!("values: task {job} was started with {} of its {} values", turns.len(), takes.len()));
    }
    for (&maker, turn) in takes.iter().zip(turns) {
        let (said, value) = match turn {
            ValueTurn::Here(value) => (device, value),
            ValueTurn::Fetch(from, value) => (*from, value),
        };
        let lives = &world.devices()[said.index()];
        let is_there = value.device == said && value.epoch == lives.epoch;
        let is_of_now = value.generation == lives.generation || lives.is_lost;
        if !is_there || !is_of_now {
            return Err(format!("values: task {job} was told that {value:?} lies on {said}, epoch {}", lives.epoch));
        }
        if matches!(turn, ValueTurn::Fetch(..)) && said == device {
            return Err(format!("values: task {job} was to copy a value to where it lies"));
        }
        if value.content != world.right_content(maker) {
            return Err(format!("values: task {job} was given something else than what job {maker} makes"));
        }
    }
    Ok(())
}
