//! Learning across processes: the profile file, loaded at the start and saved at the end.
//! Never trusts a profile of another machine or version.

use std::sync::Arc;

use plimsoll_core::profile::{DeviceSummary, Freshness, Machine, Profile};
use xxhash_rust::xxh3::Xxh3;

use crate::clock::today;
use crate::device::DeviceFacts;
use crate::profile_file::{ProfileFile, ProfileFileError};
use crate::shared::Shared;

/// The version that learnt figures belong to.
pub const SOFTWARE: &str = env!("CARGO_PKG_VERSION");

/// Where and as what an orchestrator learns.
pub(crate) struct Learning {
    pub(crate) file: ProfileFile,
    pub(crate) machine: Machine,
    pub(crate) devices: Vec<String>,
    /// Whether everything is measured anew: nothing is loaded, and what is saved takes the place of what was there.
    pub(crate) anew: bool,
}

impl Learning {
    /// The profile on disk, if it is this machine's and fresh enough to rely on.
    pub(crate) fn load(&self) -> Option<Profile> {
        if self.anew {
            return None;
        }
        let now = today();
        let profile = self.file.load(now).ok()?.profile?;
        matches!(profile.freshness(now, &self.machine, SOFTWARE), Freshness::Fresh).then_some(profile)
    }

    pub(crate) fn save(&self, shared: &Shared) -> Result<(), ProfileFileError> {
        let now = today();
        if self.anew {
            let mut profile = Profile::new(self.machine.clone(), SOFTWARE, now);
            shared.lock().scheduler.save(now, &mut profile, &self.devices);
            return self.file.replace(&profile);
        }
        let kept = self.file.load(now)?.profile;
        let kept = kept.filter(|profile| matches!(profile.freshness(now, &self.machine, SOFTWARE), Freshness::Fresh));
        let mut profile = kept.unwrap_or_else(|| Profile::new(self.machine.clone(), SOFTWARE, now));
        shared.lock().scheduler.save(now, &mut profile, &self.devices);
        self.file.save(&profile, now).map(|_| ())
    }
}

/// The machine that these devices make up, as the profile names it.
pub(crate) fn machine_of<'a>(devices: impl IntoIterator<Item = &'a DeviceFacts>) -> Machine {
    let mut hash = Xxh3::new();
    let mut summaries = Vec::new();
    for facts in devices {
        hash.update(facts.key.as_bytes());
        hash.update(&[0]);
        let (name, driver, kind) = (facts.name.clone(), facts.driver.clone(), facts.kind);
        summaries.push(DeviceSummary { name, kind, driver });
    }
    Machine { key: format!("{:016x}", hash.digest()), devices: summaries }
}

/// The profile's names of these devices, in order.
pub(crate) fn device_keys(devices: &[Arc<dyn crate::device::Device>]) -> Vec<String> {
    devices.iter().map(|device| device.facts().key.clone()).collect()
}
