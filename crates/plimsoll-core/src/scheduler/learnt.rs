//! Learnt: what outlives the process. Costs and failures come in from a profile and go out into one.
//! Never reads or writes a file; the runtime does.

use std::sync::Arc;

use super::{Host, Scheduler};
use crate::profile::{Cell, CellKey, FailedCell, Profile};
use crate::sessions::SessionKey;
use crate::{Bytes, DeviceId, MemoryMoment, Moment, UnixSeconds};

/// Facts kept between two saves; beyond it the oldest are forgotten.
const PENDING_MAX: usize = 256;

/// A profile to start from.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadedProfile {
    profile: Option<Arc<Profile>>,
    /// The profile's names of our devices.
    devices: Vec<String>,
    today: UnixSeconds,
    now: Moment,
    software: String,
}

impl LoadedProfile {
    /// The cell as it was saved, with what is remembered of its failures.
    pub(super) fn cell(&self, workload: &str, rung: &str, device: DeviceId) -> Cell {
        let (Some(profile), Some(name)) = (&self.profile, self.devices.get(device.index())) else {
            return Cell::default();
        };
        let key = CellKey::new(workload, rung, name);
        let mut cell = profile.cell(&key).cloned().unwrap_or_default();
        if let Some(failed) = profile.failures().smallest(&key, self.today, &self.software) {
            cell.fail(failed.dense(self.today, self.now), self.now);
        }
        cell
    }
}

/// What was learnt of memory since the last save.
#[derive(Debug, Default)]
pub(super) struct Learnt(Vec<Fact>);

#[derive(Debug)]
struct Fact {
    key: SessionKey,
    device: DeviceId,
    units: u64,
    bytes: Bytes,
    /// When memory ran out; `None` if it did not.
    failed: Option<MemoryMoment>,
}

impl<H: Host> Scheduler<H> {
    /// Starts from a profile. `devices` are the profile's names of the devices, in order.
    pub fn load(&mut self, now: Moment, today: UnixSeconds, profile: Arc<Profile>, devices: Vec<String>) {
        let software = self.config.software.clone();
        self.workloads.loaded = LoadedProfile { profile: Some(profile), devices, today, now, software };
    }

    /// Puts everything learnt into a profile. `devices` are the profile's names of the devices, in order.
    pub fn save(&mut self, today: UnixSeconds, profile: &mut Profile, devices: &[String]) {
        for (workload, rung, device, cell) in self.workloads.cells_mut() {
            if let Some(name) = devices.get(device.index()) {
                profile.record(&CellKey::new(workload, rung, name), cell, today);
            }
        }
        for fact in std::mem::take(&mut self.learnt.0) {
            let Some(name) = devices.get(fact.device.index()) else { continue };
            let key = CellKey::new(self.workloads.name(fact.key.workload), fact.key.rung, name);
            match fact.failed {
                None => {
                    profile.failures_mut().succeeded(&key, fact.units, fact.bytes, today);
                }
                Some(moment) => {
                    let software = &self.config.software;
                    let failed = FailedCell::out_of_memory(key, fact.units, fact.bytes, moment, software, today);
                    if let Some(failed) = failed {
                        profile.failures_mut().remember(failed);
                    }
                }
            }
        }
    }

    pub(super) fn note_failure(
        &mut self,
        key: SessionKey,
        device: DeviceId,
        units: u64,
        bytes: Bytes,
        moment: MemoryMoment,
    ) {
        self.note_fact(Fact { key, device, units, bytes, failed: Some(moment) });
    }

    pub(super) fn note_success(&mut self, key: SessionKey, device: DeviceId, units: u64, bytes: Bytes) {
        self.note_fact(Fact { key, device, units, bytes, failed: None });
    }

    fn note_fact(&mut self, fact: Fact) {
        if self.learnt.0.len() == PENDING_MAX {
            self.learnt.0.remove(0);
        }
        self.learnt.0.push(fact);
    }
}
