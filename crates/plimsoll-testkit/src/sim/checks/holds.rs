//! What a held session holds that was not drained is known, and nothing waits for one that is lost. That each task runs
//! on what those before it left is held against the truth where it starts.

use crate::sim::world::{Holder, World};

pub(super) fn at_rest(world: &World) -> Result<(), String> {
    world.holders().filter(|holder| !holder.is_closed).try_for_each(|holder| check(world, holder))
}

fn check(world: &World, holder: &Holder) -> Result<(), String> {
    let (core, sequence) = (world.core(), holder.sequence);
    let said = core.undrained(sequence);
    let (done, since) = (holder.undrained.len() as u64, holder.since);
    if (said.tasks, said.since) != (done, since) {
        return Err(format!("holds: {said:?} of {sequence:?}, but {done} were done since {since:?}"));
    }
    let is_running = |job: usize| world.flights().any(|flight| flight.job == job);
    let waits = holder.jobs.iter().find(|&&job| world.tasks()[job].end.is_none() && !is_running(job));
    match waits.filter(|_| core.is_hold_lost(sequence)) {
        Some(job) => Err(format!("holds: task {job} waits for the session of {sequence:?}, which is lost")),
        None => Ok(()),
    }
}
