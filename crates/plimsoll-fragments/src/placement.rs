//! Which fragments stay in a tier of so many bytes: those that are expected to be used soonest, by the cost of bringing them
//! back for each byte that they take. Pure: no clock, no file; time is the number of uses so far.
//!
//! When a fragment is used next is known from a hint, or else expected from its past: what comes round regularly is expected
//! after its period, what comes at random after its mean interval however long ago the last use was. What was used once has no
//! past: it stays only as long as nothing better wants its place, so a scan does not flush what is hot. The past of what has
//! gone is kept for a while.
//!
//! Invariant: bytes held ≤ capacity, unless pins alone are more.

use std::collections::BTreeSet;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Fragments whose past is known at most; beyond that the longest unused are forgotten.
pub const REMEMBERED_MAX: usize = 1 << 16;

/// How much a new interval counts beside those before it.
const NEWEST: f64 = 0.4;
/// What was used once is expected after the longest interval that is known, and this many times that.
const UNKNOWN: f64 = 1e6;

#[derive(Clone, Debug)]
struct Known {
    bytes: u64,
    /// What a byte of it costs to bring back, in any unit.
    cost: f64,
    last: u64,
    /// Mean interval between uses, and how far intervals are from it; no interval before the second use.
    interval: Option<(f64, f64)>,
    /// When somebody said that it is used next.
    hint: Option<u64>,
    is_here: bool,
    pins: u32,
}

/// A tier of so many bytes.
#[derive(Clone, Debug)]
pub struct Placement<K> {
    capacity: u64,
    held: u64,
    now: u64,
    known: FxHashMap<K, Known>,
    /// What is remembered though it has gone, the longest unused first.
    gone: BTreeSet<(u64, K)>,
}

impl<K: Copy + Eq + Ord + Hash> Placement<K> {
    /// An empty tier.
    pub fn new(capacity: u64) -> Self {
        Self { capacity, held: 0, now: 0, known: FxHashMap::default(), gone: BTreeSet::new() }
    }

    /// Bytes that it holds.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Bytes that it may hold.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether a fragment is here.
    pub fn has(&self, key: &K) -> bool {
        self.known.get(key).is_some_and(|known| known.is_here)
    }

    /// A fragment is used, wherever it lies. Gives what has to go one tier down so that it can stay; its own name among
    /// them if it is itself the one that is needed least.
    pub fn used(&mut self, key: K, bytes: u64, cost: f64) -> Vec<K> {
        self.now += 1;
        let now = self.now;
        let known = self.known.entry(key).or_insert(Known { bytes, cost, last: now, interval: None, hint: None, is_here: false, pins: 0 });
        if known.last < now {
            known.interval = Some(learnt(known.interval, (now - known.last) as f64));
        }
        self.gone.remove(&(known.last, key));
        (known.bytes, known.cost, known.last) = (bytes, cost, now);
        known.hint = known.hint.filter(|next| *next > now);
        if !known.is_here {
            known.is_here = true;
            self.held += bytes;
        }
        self.make_room(0)
    }

    /// These will be used next, in this order.
    pub fn hint(&mut self, keys: impl IntoIterator<Item = (K, u64, f64)>) {
        for (at, (key, bytes, cost)) in (self.now + 1..).zip(keys) {
            let known = self.known.entry(key).or_insert(Known { bytes, cost, last: self.now, interval: None, hint: None, is_here: false, pins: 0 });
            known.hint = Some(known.hint.filter(|next| *next > self.now).map_or(at, |next| next.min(at)));
            if !known.is_here {
                self.gone.insert((known.last, key));
            }
        }
    }

    /// It stays until it is unpinned as often as it was pinned.
    pub fn pin(&mut self, key: K, bytes: u64) {
        let now = self.now;
        let fresh = Known { bytes, cost: 1.0, last: now, interval: None, hint: None, is_here: false, pins: 0 };
        self.known.entry(key).or_insert(fresh).pins += 1;
    }

    /// Takes a pin back.
    pub fn unpin(&mut self, key: &K) {
        if let Some(known) = self.known.get_mut(key) {
            known.pins = known.pins.saturating_sub(1);
        }
    }

    /// It is not here any more, for a reason of its own.
    pub fn remove(&mut self, key: &K) {
        if let Some(known) = self.known.get_mut(key).filter(|known| known.is_here) {
            known.is_here = false;
            self.held -= known.bytes;
            self.gone.insert((known.last, *key));
        }
    }

    /// Gives what has to go so that so many bytes are free.
    pub fn make_room(&mut self, bytes: u64) -> Vec<K> {
        let mut demoted = Vec::new();
        while self.held + bytes > self.capacity {
            let here = self.known.iter().filter(|(_, known)| known.is_here && known.pins == 0);
            let least = here.map(|(key, known)| (self.worth(known), *key)).min_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            let Some((_, key)) = least else { break };
            self.remove(&key);
            demoted.push(key);
        }
        while self.known.len() > REMEMBERED_MAX {
            let Some((_, key)) = self.gone.pop_first() else { break };
            if self.known.get(&key).is_some_and(|known| known.pins == 0 && !known.is_here) {
                self.known.remove(&key);
            }
        }
        demoted
    }

    /// What it is worth to have a byte of it here: what bringing it back costs over how long until that is needed.
    fn worth(&self, known: &Known) -> (f64, std::cmp::Reverse<u64>) {
        // Of those without a past the newest goes first: whoever goes through more than fits keeps its beginning.
        (known.cost / self.distance(known).max(1.0), std::cmp::Reverse(known.last))
    }

    /// Uses until it is used next, as far as anybody can tell.
    fn distance(&self, known: &Known) -> f64 {
        if let Some(next) = known.hint.filter(|next| *next > self.now) {
            return (next - self.now) as f64;
        }
        let Some((interval, deviation)) = known.interval else { return UNKNOWN };
        let since = (self.now - known.last) as f64;
        let regular = (1.0 - 2.0 * deviation / interval.max(1.0)).clamp(0.0, 1.0);
        // What should have come and did not may never come: the longer ago, the later it is expected.
        let by_period = if since <= interval * 1.25 { (interval - since).max(1.0) } else { since * 4.0 };
        let by_mean = interval.max(since * 0.5);
        regular * by_period + (1.0 - regular) * by_mean
    }
}

fn learnt(before: Option<(f64, f64)>, interval: f64) -> (f64, f64) {
    match before {
        None => (interval, 0.25 * interval),
        Some((mean, deviation)) => {
            let off = (interval - mean).abs();
            (mean + NEWEST * (interval - mean), deviation + NEWEST * (off - deviation))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_stay_and_capacity_holds() {
        let mut tier = Placement::new(100);
        tier.pin(1, 40);
        assert!(tier.used(1, 40, 1.0).is_empty());
        for key in 2..50 {
            let gone = tier.used(key, 30, 1.0);
            assert!(!gone.contains(&1) && tier.held() <= 100);
        }
        tier.unpin(&1);
        assert!(tier.make_room(100).contains(&1));
        assert_eq!(tier.held(), 0);
    }

    #[test]
    fn a_scan_does_not_flush_what_is_hot() {
        let mut tier = Placement::new(100);
        for round in 0..5 {
            for hot in 0..8 {
                tier.used(hot, 10, 1.0);
            }
            let _ = round;
        }
        for scanned in 1_000..2_000 {
            tier.used(scanned, 10, 1.0);
        }
        assert!((0..8).all(|hot| tier.has(&hot)));
    }

    #[test]
    fn what_is_hinted_stays_and_what_costs_more_stays() {
        let mut tier = Placement::new(30);
        (0..3).for_each(|key| drop(tier.used(key, 10, 1.0)));
        tier.hint([(1, 10, 1.0), (2, 10, 1.0)]);
        tier.used(9, 10, 1.0);
        assert!(tier.has(&1) && tier.has(&2));
        let mut tier = Placement::new(20);
        for _ in 0..4 {
            tier.used(1, 10, 100.0);
            tier.used(2, 10, 1.0);
            tier.used(3, 10, 1.0);
        }
        assert!(tier.has(&1), "it takes a hundred times as long to bring back");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut tier = Placement::new(10);
        for key in 0..(REMEMBERED_MAX as u64 + 5_000) {
            tier.used(key, 10, 1.0);
        }
        assert!(tier.known.len() <= REMEMBERED_MAX + 1 && tier.gone.len() <= tier.known.len());
    }
}
