//! Learnt: what outlives the process. Costs and failures come in from a profile and go out into one.
//! Never reads or writes a file; the runtime does.

use std::sync::Arc;

use super::{Host, Scheduler};
use crate::profile::{Cell, CellKey, FailedAt, FailedCell, Profile, RanOut, UnsupportedCell};
use crate::sessions::SessionKey;
use crate::{Bytes, DeviceId, MemoryMoment, Moment, UnixSeconds, WorkloadId};

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
    /// The cell as it was saved, without figures that are too old, and with what is remembered of its failures.
    pub(super) fn cell(&self, workload: &str, rung: &str, device: DeviceId) -> Cell {
        let (Some(profile), Some(name)) = (&self.profile, self.devices.get(device.index())) else {
            return Cell::default();
        };
        let key = CellKey::new(workload, rung, name);
        let mut cell = profile.cell(&key).cloned().unwrap_or_default().without_stale(self.today);
        if let Some(failed) = profile.failures().standing(&key, self.today, &self.software) {
            cell.remember(failed.dense(self.today, self.now));
        }
        if profile.failures().is_unsupported(&key, self.today, &self.software) {
            cell.set_unsupported();
        }
        cell
    }

    /// Forgets what failed, so that rungs that are first used later do not bring it back.
    fn forget_failures(&mut self, workload: Option<&str>) {
        if let Some(profile) = &mut self.profile {
            Arc::make_mut(profile).failures_mut().forget(workload);
        }
    }
}

/// What was learnt of failures since the last save.
#[derive(Debug, Default)]
pub(super) struct Learnt(Vec<Fact>);

#[derive(Debug)]
struct Fact {
    key: SessionKey,
    device: DeviceId,
    at: Moment,
    what: Happened,
}

#[derive(Debug)]
enum Happened {
    RanOut { failed: FailedAt, moment: MemoryMoment },
    Unsupported { detail: String },
    Succeeded { units: u64, bytes: Bytes },
}

/// The scheduler's clock and the calendar at the same moment.
#[derive(Copy, Clone)]
struct Date {
    now: Moment,
    today: UnixSeconds,
}

impl Date {
    fn of(self, moment: Moment) -> UnixSeconds {
        let ago = std::time::Duration::from(self.now.since(moment)).as_secs();
        UnixSeconds(self.today.0.saturating_sub(ago))
    }

    /// Rounded up: what is closed for less than a second more is still closed.
    fn of_end(self, moment: Moment) -> UnixSeconds {
        let left = std::time::Duration::from(moment.since(self.now));
        self.today.plus(left.as_secs() + u64::from(left.subsec_nanos() > 0))
    }
}

impl<H: Host> Scheduler<H> {
    /// Starts from a profile. `devices` are the profile's names of the devices, in order.
    pub fn load(&mut self, now: Moment, today: UnixSeconds, profile: Arc<Profile>, devices: Vec<String>) {
        let software = self.config.software.clone();
        self.workloads.loaded = LoadedProfile { profile: Some(profile), devices, today, now, software };
    }

    /// Puts everything learnt into a profile. `devices` are the profile's names of the devices, in order; `today` is
    /// what the calendar shows at `now`.
    pub fn save(&mut self, now: Moment, today: UnixSeconds, profile: &mut Profile, devices: &[String]) {
        for (workload, rung, device, cell) in self.workloads.cells_mut() {
            if let Some(name) = devices.get(device.index()) {
                profile.record(&CellKey::new(workload, rung, name), cell, today);
            }
        }
        for fact in std::mem::take(&mut self.learnt.0) {
            let Some(name) = devices.get(fact.device.index()) else { continue };
            let key = CellKey::new(self.workloads.name(fact.key.workload), fact.key.rung, name);
            fact.into_profile(key, Date { now, today }, &self.config.software, profile);
        }
    }

    /// Forgets where memory ran out and what devices cannot do, of one workload or of all: everything may be tried
    /// again. What is on disk is the host's to forget.
    pub fn forget_failures(&mut self, now: Moment, workload: Option<WorkloadId>) {
        if workload.is_some_and(|workload| !self.workloads.contains(workload)) {
            return;
        }
        self.things_changed();
        self.learnt.0.retain(|fact| workload.is_some_and(|workload| fact.key.workload != workload));
        let name = workload.map(|workload| self.workloads.name(workload).to_owned());
        for (of, _, _, cell) in self.workloads.cells_mut() {
            if name.as_deref().is_none_or(|name| name == of) {
                cell.forget_failures();
            }
        }
        self.workloads.loaded.forget_failures(name.as_deref());
        self.place_stranded(now);
    }

    /// What others leave of a device, by its last reading: what is free and what we hold ourselves. It is this that a
    /// remembered out-of-memory is compared by, since our own runs come and go under the ledger's eyes.
    #[inline]
    pub(super) fn left_by_others(&self, device: DeviceId) -> Bytes {
        let memory = self.device(device).memory;
        memory.free + memory.ours - self.granted_in_use(device)
    }

    /// Memory ran out on a rung: its size is not tried again for a while. Says whether it was open before.
    pub(super) fn learn_ran_out(
        &mut self,
        at: Moment,
        key: SessionKey,
        device: DeviceId,
        units: u64,
        bytes: Bytes,
        moment: MemoryMoment,
    ) -> bool {
        let ran_out = RanOut { units, bytes, free: self.left_by_others(device) };
        let wait_first = self.config.memory_retry_first;
        let cell = self.workloads.cell_mut(key.workload, key.rung, device);
        let Some(failed) = cell.cost.fail(ran_out, wait_first, at) else { return false };
        self.note_fact(Fact { key, device, at, what: Happened::RanOut { failed, moment } });
        true
    }

    /// A device cannot do a rung at all. Says whether that is new.
    pub(super) fn learn_unsupported(&mut self, at: Moment, key: SessionKey, device: DeviceId, detail: &str) -> bool {
        let cell = self.workloads.cell_mut(key.workload, key.rung, device);
        if cell.cost.is_unsupported() {
            return false;
        }
        cell.cost.set_unsupported();
        let detail = detail.to_owned();
        self.note_fact(Fact { key, device, at, what: Happened::Unsupported { detail } });
        true
    }

    /// A task of a size that had run out of memory was done.
    pub(super) fn note_success(&mut self, at: Moment, key: SessionKey, device: DeviceId, units: u64, bytes: Bytes) {
        self.note_fact(Fact { key, device, at, what: Happened::Succeeded { units, bytes } });
    }

    fn note_fact(&mut self, fact: Fact) {
        if self.learnt.0.len() == PENDING_MAX {
            self.learnt.0.remove(0);
        }
        self.learnt.0.push(fact);
    }
}

impl Fact {
    fn into_profile(self, key: CellKey, date: Date, software: &str, profile: &mut Profile) {
        let at = date.of(self.at);
        let failures = profile.failures_mut();
        match self.what {
            Happened::Succeeded { units, bytes } => {
                failures.succeeded(&key, units, bytes, at);
            }
            Happened::Unsupported { detail } => {
                failures.remember_unsupported(UnsupportedCell::new(key, &detail, software, at));
            }
            Happened::RanOut { failed: FailedAt { units, bytes, free, step, until }, moment } => {
                let failed = FailedCell::out_of_memory(key, units, bytes, moment, software, at);
                if let Some(failed) = failed {
                    let failed = failed.with_free(free).with_step(step).until_at_most(date.of_end(until));
                    failures.remember(failed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{Nothing, a_box};

    #[test]
    fn what_is_learnt_between_two_saves_is_bounded_and_the_latest_is_kept() {
        let mut scheduler: Scheduler<Nothing> = a_box(crate::balancer::Strategy::EarliestFinish, 0);
        let key = SessionKey { workload: scheduler.register("w"), rung: "any", shape: Default::default() };
        for at in 1..=PENDING_MAX as u64 + 3 {
            scheduler.note_success(Moment(at), key, DeviceId(0), 10, Bytes(10));
        }
        let (facts, first) = (scheduler.learnt.0.len(), scheduler.learnt.0[0].at);
        assert_eq!((facts, first), (PENDING_MAX, Moment(4)));
    }
}
