//! Learning across processes: the profile file, loaded at the start and saved at the end.
//! Never trusts a profile of another machine or version; what is too old in one is left out by the scheduler.

use std::hash::Hasher as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::profile::{DeviceSummary, Hardware, Origin, Profile};
use plimsoll_core::{UnixSeconds, WorkloadId};
use twox_hash::XxHash3_64;

use crate::clock::today;
use crate::device::DeviceFacts;
use crate::profile_file::{ProfileFile, ProfileFileError};
use crate::shared::Shared;

/// The version that learnt figures belong to.
pub const SOFTWARE: &str = env!("CARGO_PKG_VERSION");

/// Where and as what an orchestrator learns.
pub(crate) struct Learning {
    file: ProfileFile,
    machine: Hardware,
    devices: Vec<String>,
    /// Whether cells are measured anew: nothing is loaded, and what is saved first takes the place of what was known of
    /// the same cells. Later saves add to that.
    anew: AtomicBool,
    /// What could not be written the last time. The scheduler hands each failure out once.
    unsaved: Mutex<Option<Profile>>,
}

impl Learning {
    pub(crate) fn new(file: ProfileFile, machine: Hardware, devices: Vec<String>, anew: bool) -> Self {
        Self { file, machine, devices, anew: AtomicBool::new(anew), unsaved: Mutex::new(None) }
    }

    fn here(&self) -> Origin<'_> {
        Origin { machine: &self.machine, software: SOFTWARE }
    }

    /// The profile on disk, if it is this machine's and this version's.
    pub(crate) fn load(&self) -> Option<Profile> {
        if self.anew.load(Relaxed) {
            return None;
        }
        let profile = self.file.load(today()).ok()?.profile?;
        profile.origin().mismatch(self.here()).is_none().then_some(profile)
    }

    /// Adds what was learnt to what is on disk. What cannot be written now is written the next time.
    pub(crate) fn save(&self, shared: &Shared) -> Result<(), ProfileFileError> {
        let mut unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, date) = (shared.now(), today());
        let mut learnt = Profile::new(self.machine.clone(), SOFTWARE, date);
        shared.lock().scheduler.save(now, date, &mut learnt, &self.devices);
        if let Some(earlier) = unsaved.take() {
            learnt.merge(&earlier).expect("both are of this machine and version");
        }
        let written = self.write(&learnt, date);
        if written.is_err() {
            *unsaved = Some(learnt);
        }
        written
    }

    fn write(&self, learnt: &Profile, date: UnixSeconds) -> Result<(), ProfileFileError> {
        if !self.anew.load(Relaxed) {
            return self.file.save(learnt, date).map(|_| ());
        }
        self.file.save_anew(learnt, date)?;
        self.anew.store(false, Relaxed);
        Ok(())
    }

    /// Forgets what failed, of one workload or of all, on disk as well.
    pub(crate) fn forget_failures(&self, workload: Option<&str>) -> Result<(), ProfileFileError> {
        if let Some(unsaved) = &mut *self.unsaved.lock().unwrap_or_else(PoisonError::into_inner) {
            unsaved.failures_mut().forget(workload);
        }
        self.file.forget_failures(self.here(), workload, today()).map(|_| ())
    }
}

/// Forgets what failed, of one workload or of all: in the scheduler, and on disk if anything is kept there.
pub(crate) fn forget_failures(
    shared: &Shared,
    learning: Option<&Learning>,
    workload: Option<(WorkloadId, &str)>,
) -> Result<(), ProfileFileError> {
    if workload.is_some_and(|(id, _)| id == WorkloadId::NONE) {
        // Of another orchestrator.
        return Ok(());
    }
    let mut state = shared.lock();
    state.scheduler.forget_failures(shared.now(), workload.map(|(id, _)| id));
    shared.release(state);
    learning.map_or(Ok(()), |learning| learning.forget_failures(workload.map(|(_, name)| name)))
}

/// The machine that these devices make up, as the profile names it.
pub(crate) fn machine_of<'a>(devices: impl IntoIterator<Item = &'a DeviceFacts>) -> Hardware {
    let mut hash = XxHash3_64::new();
    let mut summaries = Vec::new();
    for facts in devices {
        hash.write(facts.key.as_bytes());
        hash.write(&[0]);
        let (name, driver, kind) = (facts.name.clone(), facts.driver.clone(), facts.kind);
        summaries.push(DeviceSummary { name, kind, driver });
    }
    Hardware { key: format!("{:016x}", hash.finish()), devices: summaries }
}

/// The profile's names of these devices, in order.
pub(crate) fn device_keys(devices: &[Arc<dyn crate::device::Device>]) -> Vec<String> {
    devices.iter().map(|device| device.facts().key.clone()).collect()
}
