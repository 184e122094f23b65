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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceId;
    use crate::ledger::Ledger;

    fn key(params: u64) -> SessionKey {
        SessionKey { workload: WorkloadId(0), rung: "full", shape: SessionShape { params, shape: 0 } }
    }

    fn warm(params: u64, bytes: u64, last_used: u64) -> Warm<u64> {
        let mut ledger = Ledger::default();
        ledger.set_line(DeviceId(0), Bytes(1), Bytes(1));
        let lease = ledger.reserve(DeviceId(0), Bytes(1)).unwrap();
        Warm { id: SessionId(last_used), key: key(params), bytes: Bytes(bytes), lease, session: last_used, last_used }
    }

    #[test]
    fn of_equal_sessions_the_one_used_last_is_taken() {
        let mut sessions = Sessions::default();
        for at in 1..=2 {
            assert!(sessions.put(warm(7, 10 * at, at)).is_none());
        }
        assert_eq!((sessions.idle_bytes(), sessions.idle_bytes_of(&key(7))), (Bytes(30), Some(Bytes(20))));
        assert_eq!(sessions.take(&key(7)).map(|warm| warm.session), Some(2));
        assert_eq!((sessions.idle_bytes(), sessions.leases().count()), (Bytes(10), 1));
        assert!(sessions.is_warm(&key(7)) && !sessions.is_warm(&key(8)));
        assert!(sessions.take(&key(8)).is_none());
    }

    #[test]
    fn the_one_used_longest_ago_is_closed_first_but_not_the_one_that_is_needed() {
        let mut sessions = Sessions::default();
        for (params, bytes, used) in [(1, 10, 5), (2, 10, 3), (3, 0, 1), (2, 10, 4)] {
            sessions.put(warm(params, bytes, used));
        }
        assert_eq!(sessions.victim(None), Some((1, 3)), "one without bytes frees nothing");
        assert_eq!(sessions.victim(Some(&key(2))), Some((1, 3)), "of two such the one used last is kept");
        assert_eq!(sessions.close(1).map(|warm| warm.session), Some(3));
        assert_eq!(sessions.victim(Some(&key(2))), Some((0, 5)));
        assert!(sessions.close(3).is_none() && sessions.close(9).is_none(), "there are three");
        assert_eq!(sessions.idle_bytes(), Bytes(20));
        assert_eq!((sessions.clear().len(), sessions.idle_bytes()), (3, Bytes::ZERO));
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut sessions = Sessions::default();
        let closed = (0..WARM_MAX as u64 + 3).filter_map(|at| sessions.put(warm(at, 1, at))).map(|warm| warm.session);
        assert_eq!(closed.collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(sessions.idle_bytes(), Bytes(WARM_MAX as u64));
    }
}
