//! Which prepared references lie on a device, and which may go when memory is needed.
//! Never prepares or frees anything itself; what is prepared is an opaque `R` that it keeps and hands out.
//! Invariant: what is in use or being prepared is never evicted; each key is prepared by one task at a time.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::ledger::LeaseId;
use crate::{Bytes, ContentKey, WorkloadId};

/// References without a handle kept per device. A sweep visits few references at once; older ones are seldom seen again.
pub const WINDOW: usize = 32;
/// Evicted keys remembered per device, to notice content that comes back too soon.
const GHOSTS: usize = 64;
/// How many uses of other content an item outlives for each time it had to be brought back.
const PROTECTION: u64 = 64;

/// Content as one rung of one workload prepared it. Different rungs prepare the same content differently.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PreparedKey {
    /// What was prepared.
    pub content: ContentKey,
    /// For which workload.
    pub workload: WorkloadId,
    /// For which of its rungs.
    pub rung: &'static str,
    /// With which parameters.
    pub params: u64,
}

/// Counts of one device's references.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResidencyCounts {
    /// Uses that found the reference prepared.
    pub hits: u64,
    /// Uses that had to prepare it.
    pub misses: u64,
    /// References evicted to free memory.
    pub evictions: u64,
    /// Misses on content that had been evicted shortly before.
    pub returns: u64,
}

#[derive(Clone, Debug)]
struct Resident<R> {
    bytes: Bytes,
    lease: LeaseId,
    /// `None` while it is being prepared.
    prepared: Option<R>,
    users: u32,
    last_used: u64,
    pinned: bool,
    /// Its handle is gone: it goes with its last user, unless somebody else uses it meanwhile.
    leaves: bool,
    returns: u64,
}

impl<R> Resident<R> {
    fn is_idle(&self) -> bool {
        self.users == 0 && self.prepared.is_some()
    }

    /// Lower goes first.
    fn worth(&self) -> (bool, u64) {
        (self.pinned, self.last_used + self.returns * PROTECTION)
    }
}

/// What is known of a key on a device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Absent,
    BeingPrepared,
    Ready,
}

/// The references on one device.
#[derive(Clone, Debug)]
pub(crate) struct ReferenceCache<R> {
    /// By key and the epoch it was prepared in. Only the current epoch is found; what older ones left goes with its
    /// last user.
    items: FxHashMap<(PreparedKey, u32), Resident<R>>,
    epoch: u32,
    ghosts: VecDeque<PreparedKey>,
    /// How many queued tasks will need a key: it will be there by the time they run.
    expected: FxHashMap<PreparedKey, u32>,
    idle_bytes: Bytes,
    pub(crate) counts: ResidencyCounts,
}

impl<R> Default for ReferenceCache<R> {
    fn default() -> Self {
        Self {
            items: FxHashMap::default(),
            epoch: 0,
            ghosts: VecDeque::new(),
            expected: FxHashMap::default(),
            idle_bytes: Bytes::ZERO,
            counts: ResidencyCounts::default(),
        }
    }
}

impl<R: Clone> ReferenceCache<R> {
    pub(crate) fn presence(&self, key: &PreparedKey) -> Presence {
        match self.items.get(&(*key, self.epoch)) {
            None => Presence::Absent,
            Some(item) if item.prepared.is_none() => Presence::BeingPrepared,
            Some(_) => Presence::Ready,
        }
    }

    /// Whether a queued task will bring this key anyway.
    pub(crate) fn is_expected(&self, key: &PreparedKey) -> bool {
        self.expected.contains_key(key)
    }

    /// Whether any queued task counts as bringing something.
    pub(crate) fn expects_anything(&self) -> bool {
        !self.expected.is_empty()
    }

    /// A task that needs this key entered the device's queue.
    pub(crate) fn expect(&mut self, key: PreparedKey) {
        *self.expected.entry(key).or_default() += 1;
    }

    /// A task that needs this key left the device's queue.
    pub(crate) fn no_longer_expect(&mut self, key: &PreparedKey) {
        if let Some(count) = self.expected.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.expected.remove(key);
            }
        }
    }

    /// The bytes of this key if it is idle: they count as free for others, but not for who needs it.
    pub(crate) fn idle_bytes_of(&self, key: &PreparedKey) -> Bytes {
        self.items.get(&(*key, self.epoch)).filter(|item| item.is_idle()).map_or(Bytes::ZERO, |item| item.bytes)
    }

    /// Bytes that could be freed now.
    pub(crate) fn idle_bytes(&self) -> Bytes {
        self.idle_bytes
    }

    /// Takes a ready item into use.
    pub(crate) fn hit(&mut self, key: &PreparedKey, tick: u64) -> Option<R> {
        let item = self.items.get_mut(&(*key, self.epoch))?;
        let prepared = item.prepared.clone()?;
        if item.users == 0 {
            self.idle_bytes -= item.bytes;
        }
        item.users += 1;
        item.leaves = false;
        item.last_used = tick;
        self.counts.hits += 1;
        Some(prepared)
    }

    /// Notes that a task prepares this key now, and uses it.
    pub(crate) fn miss(&mut self, key: PreparedKey, bytes: Bytes, lease: LeaseId, pinned: bool, tick: u64) {
        self.counts.misses += 1;
        let returned = self.ghosts.iter().position(|ghost| *ghost == key);
        let returns = match returned.and_then(|at| self.ghosts.remove(at)) {
            Some(_) => {
                self.counts.returns += 1;
                1
            }
            None => 0,
        };
        let item = Resident { bytes, lease, prepared: None, users: 1, last_used: tick, pinned, leaves: false, returns };
        self.items.insert((key, self.epoch), item);
    }

    /// The task that was preparing this key is done with it; others may use it.
    pub(crate) fn ready(&mut self, key: &PreparedKey, epoch: u32, prepared: R) {
        if let Some(item) = self.items.get_mut(&(*key, epoch)) {
            item.prepared = Some(prepared);
        }
    }

    /// A task no longer uses this key. If it was never prepared, or belongs to the past and has no other user, it goes.
    pub(crate) fn release(&mut self, key: &PreparedKey, epoch: u32) -> Option<(Option<R>, LeaseId)> {
        let item = self.items.get_mut(&(*key, epoch))?;
        item.users = item.users.saturating_sub(1);
        if item.prepared.is_none() || (item.users == 0 && (epoch != self.epoch || item.leaves)) {
            return self.items.remove(&(*key, epoch)).map(|item| (item.prepared, item.lease));
        }
        if item.users == 0 {
            self.idle_bytes += item.bytes;
        }
        None
    }

    /// Somebody holds a handle to this content.
    pub(crate) fn hold(&mut self, content: ContentKey) {
        for (_, item) in self.items.iter_mut().filter(|((key, _), _)| key.content == content) {
            (item.pinned, item.leaves) = (true, false);
        }
    }

    /// Nobody holds a handle to this content any more: what is idle comes back now, the rest leaves with its last user.
    pub(crate) fn let_go(&mut self, content: ContentKey) -> Vec<(R, LeaseId)> {
        for (_, item) in self.items.iter_mut().filter(|((key, _), _)| key.content == content) {
            (item.pinned, item.leaves) = (false, true);
        }
        let epoch = self.epoch;
        let is_idle = |(key, made): &(PreparedKey, u32), item: &mut Resident<R>| {
            key.content == content && *made == epoch && item.is_idle()
        };
        let mut idle: Vec<_> = self.items.extract_if(is_idle).collect();
        idle.sort_unstable_by_key(|(key, _)| *key);
        self.idle_bytes -= idle.iter().map(|(_, item)| item.bytes).sum();
        idle.into_iter().filter_map(|(_, item)| Some((item.prepared?, item.lease))).collect()
    }

    /// The idle item that should go first, and when it was last worth keeping.
    pub(crate) fn victim(&self, keep: &[PreparedKey]) -> Option<(PreparedKey, bool, u64)> {
        let idle = self.items.iter().filter(|((key, _), item)| item.is_idle() && !keep.contains(key));
        // The key breaks ties, so that the order of a hash map never shows.
        idle.map(|((key, _), item)| (item.worth(), *key)).min().map(|((pinned, used), key)| (key, pinned, used))
    }

    /// Takes an idle item off the cache.
    pub(crate) fn evict(&mut self, key: &PreparedKey) -> Option<(R, LeaseId, Bytes)> {
        let current = (*key, self.epoch);
        if !self.items.get(&current)?.is_idle() {
            return None;
        }
        let item = self.items.remove(&current)?;
        self.idle_bytes -= item.bytes;
        self.counts.evictions += 1;
        if self.ghosts.len() == GHOSTS {
            self.ghosts.pop_front();
        }
        self.ghosts.push_back(*key);
        Some((item.prepared?, item.lease, item.bytes))
    }

    /// The idle item without a handle that is one too many, if there is one.
    pub(crate) fn beyond_window(&self) -> Option<PreparedKey> {
        let is_window_full = self.items.len() > WINDOW && self.without_handle() > WINDOW;
        self.victim(&[]).filter(|&(_, pinned, _)| is_window_full && !pinned).map(|(key, ..)| key)
    }

    /// Idle items that nobody holds a handle to.
    pub(crate) fn without_handle(&self) -> usize {
        self.items.values().filter(|item| item.is_idle() && !item.pinned).count()
    }

    /// Starts a new epoch: nothing prepared so far is found again. What nobody uses comes back at once.
    pub(crate) fn start_epoch(&mut self) -> Vec<(Option<R>, LeaseId)> {
        self.epoch += 1;
        self.idle_bytes = Bytes::ZERO;
        self.ghosts.clear();
        let mut idle: Vec<_> = self.items.extract_if(|_, item| item.is_idle()).collect();
        idle.sort_unstable_by_key(|(key, _)| *key);
        idle.into_iter().map(|(_, item)| (item.prepared, item.lease)).collect()
    }

    pub(crate) fn leases(&self) -> impl Iterator<Item = LeaseId> + '_ {
        self.items.values().map(|item| item.lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceId;
    use crate::ledger::Ledger;

    fn key(content: u128) -> PreparedKey {
        PreparedKey { content: ContentKey(content), workload: WorkloadId(0), rung: "full", params: 0 }
    }

    fn lease() -> LeaseId {
        let mut ledger = Ledger::default();
        ledger.set_line(DeviceId(0), Bytes(1), Bytes(1));
        ledger.reserve(DeviceId(0), Bytes(1)).unwrap()
    }

    fn cache_of(count: u128) -> ReferenceCache<u128> {
        let mut cache = ReferenceCache::default();
        for content in 0..count {
            cache.miss(key(content), Bytes(10), lease(), false, content as u64);
            cache.ready(&key(content), 0, content);
            assert!(cache.release(&key(content), 0).is_none());
        }
        cache
    }

    #[test]
    fn the_least_recently_used_goes_first_and_users_protect() {
        let mut cache = cache_of(3);
        assert_eq!(cache.idle_bytes(), Bytes(30));
        assert_eq!(cache.hit(&key(0), 10), Some(0));
        assert_eq!(cache.victim(&[]).unwrap().0, key(1));
        assert_eq!(cache.victim(&[key(1)]).unwrap().0, key(2));
        assert!(cache.evict(&key(0)).is_none(), "in use");
        assert_eq!(cache.idle_bytes(), Bytes(20));
        assert_eq!(
            [0, 1, 9].map(|content| cache.idle_bytes_of(&key(content))),
            [0, 10, 0].map(Bytes),
            "in use, idle, gone"
        );
        cache.release(&key(0), 0);
        assert_eq!(cache.victim(&[key(1), key(2)]).unwrap(), (key(0), false, 10), "used last of all");
        assert_eq!(cache.victim(&[]).unwrap().0, key(1));
    }

    #[test]
    fn what_came_back_too_soon_is_kept_longer() {
        let mut cache = cache_of(2);
        cache.evict(&key(0)).unwrap();
        cache.miss(key(0), Bytes(10), lease(), false, 5);
        cache.ready(&key(0), 0, 0);
        cache.release(&key(0), 0);
        assert_eq!(cache.counts.returns, 1);
        cache.hit(&key(1), 20);
        cache.release(&key(1), 0);
        assert_eq!(cache.victim(&[]).unwrap().0, key(1), "used later, but never had to come back");
    }

    #[test]
    fn every_use_is_counted_as_what_it_was() {
        let mut cache = cache_of(2);
        for _ in 0..3 {
            cache.hit(&key(0), 9).unwrap();
            cache.release(&key(0), 0);
        }
        cache.evict(&key(0)).unwrap();
        cache.miss(key(0), Bytes(10), lease(), false, 10);
        assert_eq!(cache.counts, ResidencyCounts { hits: 3, misses: 3, evictions: 1, returns: 1 });
    }

    #[test]
    fn a_key_is_expected_while_a_queued_task_needs_it() {
        let mut cache: ReferenceCache<()> = ReferenceCache::default();
        assert!(!cache.expects_anything());
        (0..2).for_each(|_| cache.expect(key(1)));
        assert!(cache.is_expected(&key(1)) && !cache.is_expected(&key(2)));
        cache.no_longer_expect(&key(1));
        assert!(cache.is_expected(&key(1)), "another one does");
        cache.no_longer_expect(&key(1));
        assert!(!cache.is_expected(&key(1)) && !cache.expects_anything());
    }

    /// Content with a handle goes last, and all that was prepared of it goes with the handle.
    #[test]
    fn what_a_handle_holds_goes_last_and_all_at_once() {
        let mut cache = cache_of(3);
        let prepared = |params| PreparedKey { params, ..key(0) };
        for params in 1..20 {
            cache.miss(prepared(params), Bytes(10), lease(), false, 0);
            cache.ready(&prepared(params), 0, u128::from(params));
            cache.release(&prepared(params), 0);
        }
        cache.hold(ContentKey(0));
        assert_eq!(cache.victim(&[]).unwrap().0, key(1));
        let dropped: Vec<u128> = cache.let_go(ContentKey(0)).into_iter().map(|(prepared, _)| prepared).collect();
        assert_eq!(dropped, (0..20).collect::<Vec<_>>(), "in the order of their keys, not of a hash map");
        assert_eq!((cache.idle_bytes(), cache.presence(&key(1))), (Bytes(20), Presence::Ready));
    }

    #[test]
    fn what_was_evicted_in_an_older_epoch_does_not_come_back_too_soon() {
        let mut cache = cache_of(20);
        cache.evict(&key(0)).unwrap();
        let dropped: Vec<_> = cache.start_epoch().into_iter().filter_map(|(prepared, _)| prepared).collect();
        assert_eq!(dropped, (1..20).collect::<Vec<_>>());
        cache.miss(key(0), Bytes(10), lease(), false, 50);
        assert_eq!(cache.counts.returns, 0);
    }

    #[test]
    fn a_failed_preparation_leaves_nothing() {
        let mut cache: ReferenceCache<()> = ReferenceCache::default();
        cache.miss(key(7), Bytes(10), lease(), false, 0);
        assert_eq!(cache.presence(&key(7)), Presence::BeingPrepared);
        assert!(cache.release(&key(7), 0).is_some());
        assert_eq!(cache.presence(&key(7)), Presence::Absent);
    }

    #[test]
    fn what_is_in_use_outlives_its_epoch_and_is_not_found_again() {
        let mut cache = cache_of(2);
        cache.hit(&key(0), 9);
        assert_eq!(cache.start_epoch().len(), 1, "the idle one goes at once");
        assert_eq!(cache.presence(&key(0)), Presence::Absent);
        assert!(cache.release(&key(0), 0).is_some(), "the other with its last user");
        assert_eq!(cache.idle_bytes(), Bytes::ZERO);
    }

    #[test]
    fn the_window_bounds_what_has_no_handle() {
        let mut cache = cache_of(WINDOW as u128);
        assert_eq!(cache.beyond_window(), None);
        let add = |cache: &mut ReferenceCache<u128>, content, pinned| {
            cache.miss(key(content), Bytes(10), lease(), pinned, content as u64);
            cache.ready(&key(content), 0, content);
            cache.release(&key(content), 0);
        };
        add(&mut cache, 99, true);
        assert_eq!(cache.beyond_window(), None, "a handle does not count");
        add(&mut cache, 98, false);
        assert_eq!(cache.beyond_window(), Some(key(0)));
        cache.hit(&key(1), 100);
        assert_eq!(cache.beyond_window(), None, "nor does what is in use");
    }

    #[test]
    fn what_was_let_go_leaves_unless_somebody_else_uses_it() {
        let mut cache = cache_of(2);
        for content in [0, 1] {
            cache.hold(ContentKey(content));
        }
        cache.hit(&key(1), 5);
        assert_eq!(cache.let_go(ContentKey(0)).len(), 1);
        assert!(cache.let_go(ContentKey(1)).is_empty(), "in use");
        cache.hit(&key(1), 6);
        assert!(cache.release(&key(1), 0).is_none() && cache.release(&key(1), 0).is_none(), "used without a handle");
        assert_eq!((cache.presence(&key(0)), cache.presence(&key(1))), (Presence::Absent, Presence::Ready));
        assert_eq!(cache.idle_bytes(), Bytes(10));
    }

    /// Keys that were evicted are remembered, but only so many: what comes back later than that is new.
    #[test]
    fn evicted_keys_are_forgotten_after_a_while() {
        let mut cache = cache_of(GHOSTS as u128 + 1);
        for content in 0..=GHOSTS as u128 {
            cache.evict(&key(content)).expect("it is idle");
        }
        assert_eq!((cache.ghosts.len(), cache.idle_bytes()), (GHOSTS, Bytes::ZERO));
        let mut returns_after = |content| {
            cache.miss(key(content), Bytes(10), lease(), false, 0);
            cache.counts.returns
        };
        assert_eq!((returns_after(0), returns_after(1)), (0, 1));
    }
}
