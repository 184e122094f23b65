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

use rustc_hash::{FxHashMap, FxHashSet};

/// Fragments whose past is known at most; beyond that the longest unused are forgotten.
pub const REMEMBERED_MAX: usize = 1 << 16;

/// How much a new interval counts in the mean beside those before it.
const NEWEST: f64 = 0.2;
/// What was used once is expected after so many uses while nothing ever came back: later than anything else.
const UNKNOWN: f64 = 1e9;
/// First uses that are counted before older ones count half.
const FIRSTS_COUNTED: f64 = 512.0;
/// What is expected from the past counts as so much later than what somebody said.
const UNCERTAIN: f64 = 3.0;
/// How much the mean interval of what comes at random counts beside the time since it last came: habits change.
const MEAN_SHARE: f64 = 0.5;
/// How regular something is taken to be that came back once.
const REGULAR_AT_FIRST: f64 = 0.5;
/// Next uses of a fragment that are kept of hints: this pass, and the one behind it.
const HINTS: usize = 2;

/// How long it took from one use to the next.
#[derive(Copy, Clone, Debug)]
struct Intervals {
    mean: f64,
    /// The last three: two that are alike make a period, whatever pause lay between.
    last: [f64; 3],
    count: u32,
}

#[derive(Clone, Debug)]
struct Known {
    bytes: u64,
    /// What a byte of it costs to bring back, in any unit.
    cost: f64,
    last: u64,
    /// Of uses so far; none before the second.
    intervals: Option<Intervals>,
    /// When somebody said that it is used next, in order; zero for none.
    hints: [u64; HINTS],
    is_here: bool,
    was_used: bool,
    pins: u32,
}

/// A tier of so many bytes.
#[derive(Clone, Debug)]
pub struct Placement<K> {
    capacity: u64,
    held: u64,
    now: u64,
    known: FxHashMap<K, Known>,
    here: FxHashSet<K>,
    /// What is remembered though it has gone, the longest unused first.
    gone: BTreeSet<(u64, K)>,
    firsts: Firsts,
}

/// What became of fragments after their first use, all together: how many, how many of them came back, and after how long.
#[derive(Copy, Clone, Debug, Default)]
struct Firsts {
    seen: f64,
    came_back: f64,
    after: f64,
}

impl Firsts {
    fn see(&mut self) {
        self.seen += 1.0;
        if self.seen > FIRSTS_COUNTED {
            (self.seen, self.came_back) = (self.seen / 2.0, self.came_back / 2.0);
        }
    }

    fn come_back(&mut self, interval: f64) {
        self.came_back += 1.0;
        self.after += (interval - self.after) / self.came_back.clamp(1.0, 64.0);
    }

    /// When what was used once so long ago is expected: as those before it, if they came back at all.
    fn distance(&self, since: f64) -> f64 {
        if self.came_back < 1.0 { UNKNOWN } else { self.after * (self.seen / self.came_back).max(1.0).powi(2) + since }
    }
}

impl<K: Copy + Eq + Ord + Hash> Placement<K> {
    /// An empty tier.
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            held: 0,
            now: 0,
            known: FxHashMap::default(),
            here: FxHashSet::default(),
            gone: BTreeSet::new(),
            firsts: Firsts::default(),
        }
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
        if !self.known.get(&key).is_some_and(|known| known.was_used) {
            self.firsts.see();
        }
        let known = self.known.entry(key).or_insert(Known {
            bytes,
            cost,
            last: now,
            intervals: None,
            hints: [0; HINTS],
            is_here: false,
            was_used: false,
            pins: 0,
        });
        if known.was_used {
            if known.intervals.is_none() {
                self.firsts.come_back((now - known.last) as f64);
            }
            known.intervals = Some(Intervals::with(known.intervals, (now - known.last) as f64));
        }
        self.gone.remove(&(known.last, key));
        (known.bytes, known.cost, known.last, known.was_used) = (bytes, cost, now, true);
        if known.hints[0] != 0 {
            // This is the use that was expected next.
            known.hints.rotate_left(1);
            known.hints[HINTS - 1] = 0;
        }
        if !known.is_here {
            known.is_here = true;
            self.here.insert(key);
            self.held += bytes;
        }
        self.make_room(0)
    }

    /// These will be used next, in this order; what was said before of them counts no more.
    pub fn hint(&mut self, keys: impl IntoIterator<Item = (K, u64, f64)>) {
        let before = self.now;
        for (at, (key, bytes, cost)) in (before + 1..).zip(keys) {
            let fresh = Known {
                bytes,
                cost,
                last: before,
                intervals: None,
                hints: [0; HINTS],
                is_here: false,
                was_used: false,
                pins: 0,
            };
            let known = self.known.entry(key).or_insert(fresh);
            if known.hints[0] <= before {
                known.hints = [0; HINTS];
            }
            match known.hints.iter().position(|hint| *hint == 0 || *hint >= at) {
                Some(place) if known.hints[place] != at => {
                    known.hints[place] = at;
                    known.hints[place + 1..].fill(0);
                }
                _ => {}
            }
            if !known.is_here {
                self.gone.insert((known.last, key));
            }
        }
    }

    /// What was said of these does not hold any more: whoever said it has ended early.
    pub fn withdraw(&mut self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            if let Some(known) = self.known.get_mut(&key) {
                known.hints = [0; HINTS];
            }
        }
    }

    /// It stays until it is unpinned as often as it was pinned.
    pub fn pin(&mut self, key: K, bytes: u64) {
        let now = self.now;
        let fresh = Known {
            bytes,
            cost: 1.0,
            last: now,
            intervals: None,
            hints: [0; HINTS],
            is_here: false,
            was_used: false,
            pins: 0,
        };
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
            self.here.remove(key);
            self.held -= known.bytes;
            self.gone.insert((known.last, *key));
        }
    }

    /// Gives what has to go so that so many bytes are free.
    pub fn make_room(&mut self, bytes: u64) -> Vec<K> {
        let mut demoted = Vec::new();
        while self.held + bytes > self.capacity {
            let here = self.here.iter().filter_map(|key| Some((key, self.known.get(key)?)));
            let may_go = here.filter(|(_, known)| known.pins == 0);
            let least = may_go
                .map(|(key, known)| (self.worth(known), *key))
                .min_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
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
        if let Some(next) = known.hints.iter().find(|next| **next > self.now) {
            return (next - self.now) as f64;
        }
        let since = (self.now - known.last) as f64;
        let Some(intervals) = &known.intervals else { return UNCERTAIN * self.firsts.distance(since) };
        let (period, regular) = intervals.period();
        // What should have come and did not is in a pause, or never comes: the longer ago, the later it is expected.
        let by_period = if since <= period * 1.25 { (period - since).max(1.0) } else { since };
        let by_mean = MEAN_SHARE * intervals.mean + since;
        UNCERTAIN * (regular * by_period + (1.0 - regular) * by_mean)
    }
}

impl Intervals {
    fn with(before: Option<Self>, interval: f64) -> Self {
        match before {
            None => Self { mean: interval, last: [interval; 3], count: 1 },
            Some(Self { mean, last: [_, second, third], count }) => Self {
                mean: mean + NEWEST * (interval - mean),
                last: [second, third, interval],
                count: count.saturating_add(1),
            },
        }
    }

    /// The interval that came twice, or nearly so, and how alike the two were: 1 if they were the same, 0 if by half.
    fn period(&self) -> (f64, f64) {
        let [a, b, c] = self.last;
        if self.count == 1 {
            return (c, REGULAR_AT_FIRST);
        }
        let alike = |x: f64, y: f64| (x.min(y), (1.0 - 8.0 * (x - y).abs() / x.max(y)).max(0.0));
        [alike(b, c), alike(a, c), alike(a, b)].into_iter().max_by(|x, y| x.1.total_cmp(&y.1)).unwrap_or((c, 0.0))
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
