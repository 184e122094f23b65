//! The warm sessions of a device: which are idle, and which may be closed when memory is needed.
//! Never opens or closes one itself; a session is an opaque `S` that it keeps and hands out.
//! Invariant: a session is either idle here or held by exactly one running task.

use crate::ledger::LeaseId;
use crate::rung::same_name;
use crate::task::SessionShape;
use crate::{Bytes, SessionId, WorkloadId};

/// Idle sessions kept per device. Enough for every metric at a few sizes; each costs memory and open cost is learnt.
pub(crate) const WARM_MAX: usize = 64;

/// All that must match for a session to be used again.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SessionKey {
    /// The workload.
    pub(crate) workload: WorkloadId,
    /// The rung it was opened for.
    pub(crate) rung: &'static str,
    /// Parameters and shape.
    pub(crate) shape: SessionShape,
}

impl PartialEq for SessionKey {
    fn eq(&self, other: &Self) -> bool {
        self.workload == other.workload && self.shape == other.shape && same_name(self.rung, other.rung)
    }
}

/// A session and what it holds.
#[derive(Clone, Debug)]
pub(crate) struct Warm<S> {
    pub(crate) id: SessionId,
    pub(crate) key: SessionKey,
    pub(crate) bytes: Bytes,
    pub(crate) lease: LeaseId,
    pub(crate) session: S,
    pub(crate) last_used: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Sessions<S> {
    idle: Vec<Warm<S>>,
    idle_bytes: Bytes,
}

impl<S> Default for Sessions<S> {
    fn default() -> Self {
        Self { idle: Vec::new(), idle_bytes: Bytes::ZERO }
    }
}

impl<S> Sessions<S> {
    /// Bytes that could be freed now.
    pub(crate) fn idle_bytes(&self) -> Bytes {
        self.idle_bytes
    }

    pub(crate) fn is_warm(&self, key: &SessionKey) -> bool {
        self.idle.iter().any(|warm| warm.key == *key)
    }

    /// The bytes of the idle session that a task with this key would take; `None` if it would have to open one.
    pub(crate) fn idle_bytes_of(&self, key: &SessionKey) -> Option<Bytes> {
        self.idle.iter().rfind(|warm| warm.key == *key).map(|warm| warm.bytes)
    }

    /// Takes an idle session with this key, the one used last.
    pub(crate) fn take(&mut self, key: &SessionKey) -> Option<Warm<S>> {
        let at = self.idle.iter().rposition(|warm| warm.key == *key)?;
        let warm = self.idle.remove(at);
        self.idle_bytes -= warm.bytes;
        Some(warm)
    }

    /// Puts a session back. Returns one to close if there are too many.
    pub(crate) fn put(&mut self, warm: Warm<S>) -> Option<Warm<S>> {
        self.idle_bytes += warm.bytes;
        self.idle.push(warm);
        if self.idle.len() > WARM_MAX { self.close(0) } else { None }
    }

    /// Where the session used longest ago stands, and when that was. Of those with the key to keep, only the one that
    /// [`Sessions::take`] would give is kept.
    pub(crate) fn victim(&self, keep: Option<&SessionKey>) -> Option<(usize, u64)> {
        let kept = keep.and_then(|key| self.idle.iter().rposition(|warm| warm.key == *key));
        let held = self.idle.iter().enumerate().filter(|(at, warm)| warm.bytes > Bytes::ZERO && Some(*at) != kept);
        held.min_by_key(|(_, warm)| warm.last_used).map(|(at, warm)| (at, warm.last_used))
    }

    /// Takes the session at this place out, to be closed.
    pub(crate) fn close(&mut self, at: usize) -> Option<Warm<S>> {
        if at >= self.idle.len() {
            return None;
        }
        let warm = self.idle.remove(at);
        self.idle_bytes -= warm.bytes;
        Some(warm)
    }

    /// Takes all out.
    pub(crate) fn clear(&mut self) -> Vec<Warm<S>> {
        self.idle_bytes = Bytes::ZERO;
        std::mem::take(&mut self.idle)
    }

    pub(crate) fn leases(&self) -> impl Iterator<Item = LeaseId> + '_ {
        self.idle.iter().map(|warm| warm.lease)
    }
}
