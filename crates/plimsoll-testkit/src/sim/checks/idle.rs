//! No slot sleeps while its device has work that could start: a wake-up that the scheduler forgot.

use plimsoll_core::{DeviceId, Moment, TaskId};

use super::order::{OrderWatch, copies, waits_for_reference, waits_for_session};
use super::promises::KnownPeaks;
use crate::sim::world::{ROUND, World};

/// How far into its queue a slot looks.
const LOOK: usize = 32;

/// Since when each device has had a free slot and work for it.
pub(super) struct IdleWatch(Vec<Option<(Moment, TaskId)>>);

impl IdleWatch {
    pub(super) fn new(devices: usize) -> Self {
        Self(vec![None; devices])
    }

    /// Every slot that was woken has looked; now time passes.
    pub(super) fn check(&mut self, world: &World, peaks: &KnownPeaks, order: &OrderWatch) -> Result<(), String> {
        for device in world.device_ids() {
            let neglected = neglected(world, peaks, order, device);
            let since = &mut self.0[device.index()];
            *since = neglected.map(|task| match *since {
                Some((since, _)) => (since, task),
                None => (world.now(), task),
            });
            if let Some((since, task)) = *since
                && world.now().since(since) > ROUND
            {
                return Err(format!("idle: {device} had a free slot and {task} to start since {since:?}"));
            }
        }
        Ok(())
    }
}

/// A task in this device's queue that could start, although a slot of it sleeps.
fn neglected(world: &World, peaks: &KnownPeaks, order: &OrderWatch, device: DeviceId) -> Option<TaskId> {
    let (core, state) = (world.core(), &world.devices()[device.index()]);
    let sleeps = state.slots.waiting() > 0 && state.slots.busy() < core.slots_wanted(device);
    if !sleeps || !core.health(device).is_well() || state.checks > 0 {
        return None;
    }
    let free = core.ledger().free(device);
    for (task, rung) in core.queued(device).take(LOOK) {
        let Some(job) = world.job(task) else { continue };
        let fits = peaks.bytes(&world.tasks()[job].spec, rung, device) + copies(world, job, device) <= free;
        if fits && !waits_for_reference(world, job, rung, device) && !waits_for_session(world, job) {
            return Some(task);
        }
        if order.may_be_waited_for(task) {
            return None;
        }
    }
    None
}
