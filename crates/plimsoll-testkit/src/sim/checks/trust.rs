//! Nothing is delivered from a device that is not trusted, and no fault of a device is ignored, whoever still waits for
//! the run that showed it.

use plimsoll_core::event::{Event, FaultKind, What};
use plimsoll_core::{DeviceId, WorkloadId};
use rustc_hash::FxHashSet;

use crate::sim::world::{Flight, World};

/// A device that has yet to give its known answer after an out-of-memory is given nothing.
pub(super) fn taken(world: &World, job: usize, device: DeviceId) -> Result<(), String> {
    if world.devices()[device.index()].checks > 0 {
        return Err(format!("trust: task {job} was started on {device}, which is being checked"));
    }
    Ok(())
}

/// Rungs that were seen not to be supported by a device.
#[derive(Default)]
pub(super) struct Unsupported(FxHashSet<(WorkloadId, &'static str, DeviceId)>);

impl Unsupported {
    /// An attempt at a task that somebody still waits for showed it.
    pub(super) fn hear(&mut self, world: &World, what: &What) {
        let What::AttemptFailed { task, rung, device, fault: FaultKind::Unsupported } = *what else { return };
        if let Some(job) = world.job(task) {
            self.0.insert((world.tasks()[job].spec.workload, rung, device));
        }
    }

    /// It is not tried again.
    pub(super) fn taken(&self, world: &World, job: usize, rung: usize, device: DeviceId) -> Result<(), String> {
        let spec = &world.tasks()[job].spec;
        let name = spec.ladder.rungs()[rung].name;
        if self.0.contains(&(spec.workload, name, device)) {
            return Err(format!("unsupported: task {job} was started as {name} on {device}, which cannot do that"));
        }
        Ok(())
    }
}

/// Nor does it give anything; nor does a run that was under way when its device was found to answer wrongly.
pub(super) fn delivered(world: &World, flight: &Flight) -> Result<(), String> {
    let device = &world.devices()[flight.device.index()];
    if device.checks > 0 {
        return Err(format!("trust: task {} was delivered from {}, which is being checked", flight.job, flight.device));
    }
    if device.last_wrong > flight.quarantines {
        return Err(format!(
            "trust: task {} was delivered from {}, which was found to answer wrongly while it ran",
            flight.job, flight.device
        ));
    }
    Ok(())
}

/// A loss or a wrong answer puts the device into quarantine, unless it was already after the run had begun.
pub(super) fn fault_counts(world: &World, flight: &Flight, fault: Option<FaultKind>) -> Result<(), String> {
    let is_devices = matches!(fault, Some(FaultKind::DeviceLost | FaultKind::WrongAnswer));
    let state = &world.devices()[flight.device.index()];
    if is_devices && state.quarantines == flight.quarantines && world.core().health(flight.device).is_well() {
        let (job, device) = (flight.job, flight.device);
        return Err(format!("trust: task {job} ended with {fault:?} on {device}, which still counts as well"));
    }
    Ok(())
}

/// So does a run that does not answer.
pub(super) fn stalls_count(world: &World, events: &[Event]) -> Result<(), String> {
    for event in events {
        let What::AttemptFailed { task, device, fault: FaultKind::Stalled, .. } = event.what else { continue };
        let state = &world.devices()[device.index()];
        let of_now = |flight: &&Flight| {
            flight.device == device && flight.quarantines == state.quarantines && world.job(task) == Some(flight.job)
        };
        if world.core().health(device).is_well() && world.flights().any(|flight| of_now(&flight)) {
            return Err(format!("trust: {task} did not answer on {device}, which still counts as well"));
        }
    }
    Ok(())
}
