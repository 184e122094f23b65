//! Evict: which idle sessions and references go so that a promise can be kept.
//! Never touches what a running task holds.
//! Invariant: whoever evicts holds all the bytes that this frees until it settles, because they come back only when it has
//! closed what it was told to close.

use smallvec::SmallVec;
use std::fmt;

use super::choose::{prepared_key, session_key};
use super::{Host, Scheduler};
use crate::event::What;
use crate::ledger::{LeaseId, Ledger};
use crate::residency::{PreparedKey, Presence};
use crate::sessions::SessionKey;
use crate::task::TaskSpec;
use crate::{Bytes, DeviceId, Moment, Rung};

/// Idle things that must be dropped before the promised bytes are used.
pub struct Discards<H: Host> {
    /// Sessions to close.
    pub sessions: SmallVec<[H::Session; 1]>,
    /// References to evict.
    pub references: SmallVec<[H::Prepared; 1]>,
    /// Values that nobody reads any more.
    pub values: SmallVec<[H::Value; 1]>,
    /// Payloads that were kept to make values again.
    pub jobs: SmallVec<[H::Job; 1]>,
    /// What sessions held that were closed.
    pub states: SmallVec<[H::State; 1]>,
}

impl<H: Host> fmt::Debug for Discards<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discards")
            .field("sessions", &self.sessions.len())
            .field("references", &self.references.len())
            .field("values", &self.values.len())
            .finish_non_exhaustive()
    }
}

impl<H: Host> Default for Discards<H> {
    fn default() -> Self {
        Self {
            sessions: SmallVec::new(),
            references: SmallVec::new(),
            values: SmallVec::new(),
            jobs: SmallVec::new(),
            states: SmallVec::new(),
        }
    }
}

impl<H: Host> Discards<H> {
    /// Takes over what another has to drop.
    pub fn extend(&mut self, other: Self) {
        self.sessions.extend(other.sessions);
        self.references.extend(other.references);
        self.values.extend(other.values);
        self.jobs.extend(other.jobs);
        self.states.extend(other.states);
    }

    /// Whether there is nothing to drop.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
            && self.references.is_empty()
            && self.values.is_empty()
            && self.jobs.is_empty()
            && self.states.is_empty()
    }
}

/// What a task would have to be promised on a device, beyond what it finds there.
#[derive(Clone, Debug)]
pub(super) struct Needs {
    pub(super) session_key: SessionKey,
    /// Bytes of a session to open; `None` if one is warm.
    pub(super) session: Option<Bytes>,
    /// Whether that session is its sequence's own.
    pub(super) is_held: bool,
    pub(super) references: Vec<PreparedKey>,
    /// Bytes of each reference that is not there.
    pub(super) reference: Bytes,
    pub(super) absent: u64,
    /// Bytes while it runs, copies of values that lie elsewhere included.
    pub(super) task: Bytes,
    /// Bytes of its output that stay.
    pub(super) value: Bytes,
    /// Bytes that are idle but that this very task is about to use: not to be evicted for it.
    kept: Bytes,
}

impl Needs {
    pub(super) fn total(&self) -> Bytes {
        self.task + self.value + self.session.unwrap_or_default() + Bytes(self.reference.0.saturating_mul(self.absent))
    }
}

impl<H: Host> Scheduler<H> {
    pub(super) fn needs(&self, device: DeviceId, spec: &TaskSpec, rung: &Rung) -> Needs {
        let state = self.device(device);
        let session_key = session_key(spec, rung);
        let warm = if spec.holds {
            self.is_held_open(spec).then_some(Bytes::ZERO)
        } else {
            state.sessions.idle_bytes_of(&session_key)
        };
        let mut needs = Needs {
            session_key,
            session: if warm.is_some() { None } else { Some(rung.footprint.session) },
            is_held: spec.holds,
            references: Vec::new(),
            reference: rung.footprint.reference,
            absent: 0,
            task: rung.footprint.task + self.excess(device, spec, rung) + self.distance(spec, device).copies,
            value: rung.value,
            kept: warm.unwrap_or_default(),
        };
        for reference in &spec.references {
            let key = prepared_key(spec, rung, reference.content);
            match state.cache.presence(&key) {
                Presence::Absent => needs.absent += 1,
                Presence::BeingPrepared | Presence::Ready => needs.kept += state.cache.idle_bytes_of(&key),
            }
            needs.references.push(key);
        }
        needs
    }

    /// What the rung was seen to take on this device beyond its declared footprint. The task's own lease covers it.
    pub(super) fn excess(&self, device: DeviceId, spec: &TaskSpec, rung: &Rung) -> Bytes {
        let cell = self.workloads.cell(spec.workload, rung.name, device);
        cell.map_or(Bytes::ZERO, |cell| cell.excess(rung.total(spec.references.len())))
    }

    /// All that a rung takes on this device, as far as that is known.
    pub(super) fn wanted(&self, device: DeviceId, spec: &TaskSpec, rung: &Rung) -> Bytes {
        self.declared(device, spec, rung) + self.excess(device, spec, rung)
    }

    /// What a rung says that it takes, with the copies of values that lie elsewhere.
    #[inline]
    pub(super) fn declared(&self, device: DeviceId, spec: &TaskSpec, rung: &Rung) -> Bytes {
        let copies = if spec.takes.is_empty() { Bytes::ZERO } else { self.distance(spec, device).copies };
        rung.total(spec.references.len()) + copies
    }

    /// How many bytes are missing now, even if everything idle went.
    pub(super) fn shortfall(&self, device: DeviceId, spec: &TaskSpec, rung: &Rung) -> Option<Bytes> {
        let needs = self.needs(device, spec, rung);
        let missing = needs.total() - (self.free_with_idle_evicted(device) - needs.kept);
        (missing > Bytes::ZERO).then_some(missing)
    }

    /// Bytes that could be promised to a task if everything idle went. A line that moved below what is promised, or is
    /// kept for a grant, must first be made good before anything idle counts as free.
    fn free_with_idle_evicted(&self, device: DeviceId) -> Bytes {
        self.ledger.line(device) + self.idle_bytes(device) - (self.ledger.promised(device) + self.ledger.kept(device))
    }

    /// Bytes that could be promised to a grant if everything idle went, those kept for one included.
    pub(super) fn free_for_grants(&self, device: DeviceId) -> Bytes {
        match self.devices.get(device.index()) {
            Some(_) => self.ledger.line(device) + self.idle_bytes(device) - self.ledger.promised(device),
            None => Bytes::ZERO,
        }
    }

    /// What would go if somebody needed its bytes.
    pub(super) fn idle_bytes(&self, device: DeviceId) -> Bytes {
        let state = self.device(device);
        state.sessions.idle_bytes() + state.cache.idle_bytes()
    }

    /// Gives up idle things, the least useful first, until this many bytes are free. Returns the bytes freed.
    pub(super) fn evict_idle(
        &mut self,
        now: Moment,
        device: DeviceId,
        wanted: Bytes,
        keep: &Needs,
        discards: &mut Discards<H>,
    ) -> Bytes {
        self.evict_while(now, device, |ledger| ledger.free(device) < wanted, keep, discards)
    }

    /// Gives up idle things, the least useful first, as long as bytes are short. Returns the bytes freed.
    pub(super) fn evict_while(
        &mut self,
        now: Moment,
        device: DeviceId,
        is_short: impl Fn(&Ledger) -> bool,
        keep: &Needs,
        discards: &mut Discards<H>,
    ) -> Bytes {
        let mut freed = Bytes::ZERO;
        let (sessions_before, references_before) = (discards.sessions.len(), discards.references.len());
        while is_short(&self.ledger) {
            let Some(bytes) = self.evict_one(device, keep, discards) else { break };
            freed += bytes;
        }
        let sessions = (discards.sessions.len() - sessions_before) as u16;
        let references = (discards.references.len() - references_before) as u16;
        if sessions + references > 0 {
            self.note(now, || What::Evicted { device, sessions, references });
        }
        freed
    }

    fn evict_one(&mut self, device: DeviceId, keep: &Needs, discards: &mut Discards<H>) -> Option<Bytes> {
        let state = self.device_mut(device);
        let session = state.sessions.victim(Some(&keep.session_key));
        let reference = state.cache.victim(&keep.references);
        let session_first = match (session, reference) {
            (Some((_, session_used)), Some((_, pinned, used))) => pinned || session_used <= used,
            (session, _) => session.is_some(),
        };
        let (lease, bytes) = if session_first {
            let warm = state.sessions.close(session?.0)?;
            discards.sessions.push(warm.session);
            self.things_changed();
            (warm.lease, warm.bytes)
        } else {
            let (prepared, lease, bytes) = state.cache.evict(&reference?.0)?;
            discards.references.push(prepared);
            (lease, bytes)
        };
        self.give_back(lease);
        Some(bytes)
    }

    /// Keeps the number of idle references without a handle within the window.
    pub(super) fn trim_window(&mut self, device: DeviceId) {
        while let Some(key) = self.device(device).cache.beyond_window() {
            let Some((prepared, lease, _)) = self.device_mut(device).cache.evict(&key) else { return };
            self.discarded.references.push(prepared);
            self.give_back(lease);
        }
    }

    pub(super) fn give_back(&mut self, lease: LeaseId) {
        let returned = self.ledger.release(lease);
        debug_assert!(returned.is_ok(), "the scheduler returns each lease once");
    }
}

impl Needs {
    /// What somebody needs who uses none of the sessions and references here.
    pub(super) fn nothing() -> Self {
        let session_key =
            SessionKey { workload: crate::WorkloadId::NONE, rung: "", shape: crate::task::SessionShape::default() };
        let (session, references, reference) = (None, Vec::new(), Bytes::ZERO);
        Self {
            session_key,
            session,
            is_held: false,
            references,
            reference,
            absent: 0,
            task: Bytes::ZERO,
            value: Bytes::ZERO,
            kept: Bytes::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers;

    impl Host for Numbers {
        type Job = u8;
        type Session = u8;
        type Prepared = u8;
        type Value = u8;
        type State = u8;
    }

    /// One thing of each kind, the others empty.
    fn one_of_each() -> [Discards<Numbers>; 5] {
        let mut all: [Discards<Numbers>; 5] = Default::default();
        all[0].sessions.push(1);
        all[1].references.push(2);
        all[2].values.push(3);
        all[3].jobs.push(4);
        all[4].states.push(5);
        all
    }

    #[test]
    fn nothing_that_has_to_be_dropped_is_lost() {
        let mut discards: Discards<Numbers> = Discards::default();
        assert!(discards.is_empty());
        for one in one_of_each() {
            assert!(!one.is_empty());
            discards.extend(one);
        }
        let Discards { sessions, references, values, jobs, states } = discards;
        assert_eq!([sessions, references, values, jobs, states].concat(), [1, 2, 3, 4, 5]);
    }
}
