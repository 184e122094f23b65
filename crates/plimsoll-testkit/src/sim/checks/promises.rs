//! What is allocated was promised, and what was promised was under the line when it was.
//! Runs take more or less than their footprint says; once a run was measured to take more, the next is promised that.

use plimsoll_core::{Bytes, DeviceId, TaskSpec, WorkloadId};
use rustc_hash::FxHashMap;

use crate::sim::world::{Flight, World};

/// How much of their footprint runs were measured to take, in eighths, where that was more than all of it.
#[derive(Default)]
pub(super) struct KnownPeaks(FxHashMap<(WorkloadId, &'static str, DeviceId), u64>);

impl KnownPeaks {
    /// A run was measured and counted.
    pub(super) fn learn(&mut self, world: &World, flight: &Flight) {
        let spec = &world.tasks()[flight.job].spec;
        let declared = spec.footprint_total(flight.rung);
        let real = world.real_bytes(spec, flight.rung);
        if real > self.bytes(spec, flight.rung, flight.device) {
            let name = spec.ladder.rungs()[flight.rung].name;
            self.0.insert((spec.workload, name, flight.device), real.0 * 8 / declared.0);
        }
    }

    /// What a run of this rung takes on a device, as far as it can be known.
    pub(super) fn bytes(&self, spec: &TaskSpec, rung: usize, device: DeviceId) -> Bytes {
        let declared = spec.footprint_total(rung);
        let known = self.0.get(&(spec.workload, spec.ladder.rungs()[rung].name, device));
        Bytes(declared.0 / 8 * known.copied().unwrap_or(8)).max(declared)
    }
}

/// A promise was just made.
pub(super) fn under_the_line(world: &World, device: DeviceId) -> Result<(), String> {
    let ledger = world.core().ledger();
    let (line, promised) = (ledger.line(device), ledger.promised(device));
    if promised > line {
        return Err(format!("promises: {device}: {promised} promised past the line of {line}"));
    }
    Ok(())
}

/// What nobody could know of is excused as long as it runs.
pub(super) fn allocated_was_promised(world: &World) -> Result<(), String> {
    for device in world.device_ids() {
        let ledger = world.core().ledger();
        let promised = ledger.promised(device) - ledger.programs(device);
        let surprises: Bytes =
            world.flights().filter(|flight| flight.device == device).map(|flight| flight.surprise).sum();
        let real = world.devices()[device.index()].account.bytes();
        if real > promised + surprises {
            return Err(format!("promises: {device}: {real} allocated, but only {promised} promised"));
        }
    }
    Ok(())
}
