//! Which fragments stay in a tier of so many bytes: those whose next use is expected soonest, by the cost of bringing them
//! back for each byte that they take. Pure: no clock, no file; time is the number of uses so far.
//!
//! When a fragment is used next is known from a hint, or forecast from its past. There are three forecasts, and each is right
//! for some programs: what was used last comes soonest (LRU), what was used most often comes soonest (LFU), what came in
//! intervals comes in such intervals again. Which one holds here is not guessed: each forecast has a pretended tier, which
//! holds names and no bytes, and the one whose pretended tier had to bring the fewest bytes is followed. What was used once
//! has no past of its own: it is expected as others were after their first use, so a scan does not flush what is hot. The past
//! of what has gone is kept for a while.
//!
//! | file | what it owns |
//! |---|---|
//! | `forecast.rs` | how soon a fragment is expected, by each of the three |
//! | `members.rs` | the names in one tier, real or pretended |
//!
//! Invariant: bytes held ≤ capacity, unless pins alone are more.

mod forecast;
mod members;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use forecast::{FORECASTS, Firsts, Forecast, Hints, Intervals};
use members::{ABSENT, Members};

/// Fragments whose past is known at most; beyond that the longest unused are forgotten.
pub const REMEMBERED_MAX: usize = 1 << 16;

/// Fragments of a tier that are looked at to find the one that goes. In a larger tier they are the next so many in turn: the
/// least of 256 is hardly worth more than the least of all, and looking at all would take longer than bringing one back.
pub const CANDIDATES_MAX: usize = 256;

/// The real tier, and the pretended one of each forecast.
const TIERS: usize = 1 + FORECASTS;
const REAL: usize = 0;

#[derive(Clone, Debug)]
struct Known {
    bytes: u64,
    /// What a byte of it costs to bring back, in any unit.
    cost: f64,
    /// When it was used last, or first heard of.
    last: u64,
    uses: u32,
    intervals: Intervals,
    hints: Hints,
    /// Where it stands in the list of each tier.
    places: [u32; TIERS],
    pins: u32,
}

impl Known {
    fn new(bytes: u64, cost: f64, now: u64) -> Self {
        Self {
            bytes,
            cost,
            last: now,
            uses: 0,
            intervals: Intervals::default(),
            hints: Hints::default(),
            places: [ABSENT; TIERS],
            pins: 0,
        }
    }

    fn is_in(&self, tier: usize) -> bool {
        self.places[tier] != ABSENT
    }
}

/// A tier of so many bytes.
#[derive(Clone, Debug)]
pub struct Placement<K> {
    capacity: u64,
    now: u64,
    known: FxHashMap<K, Known>,
    tiers: [Members<K>; TIERS],
    /// What is remembered though it has gone, the longest unused first.
    gone: BTreeSet<(u64, K)>,
    firsts: Firsts,
    hints_kept: forecast::Share,
    /// How much more each pretended tier had to bring than the best of them, at what it costs; at most a tier's worth, so that
    /// a change of habits is noticed.
    behind: [f64; FORECASTS],
    cost_max: f64,
}

impl<K: Copy + Eq + Ord + Hash> Placement<K> {
    /// An empty tier.
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            now: 0,
            known: FxHashMap::default(),
            tiers: std::array::from_fn(|_| Members::default()),
            gone: BTreeSet::new(),
            firsts: Firsts::default(),
            hints_kept: forecast::Share::default(),
            behind: [0.0; FORECASTS],
            cost_max: 0.0,
        }
    }

    /// Bytes that it holds.
    pub fn held(&self) -> u64 {
        self.tiers[REAL].held()
    }

    /// Bytes that it may hold.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether a fragment is here.
    pub fn has(&self, key: &K) -> bool {
        self.known.get(key).is_some_and(|known| known.is_in(REAL))
    }

    /// A fragment is used, wherever it lies. Gives what has to go one tier down so that it can stay; its own name among
    /// them if it is itself the one that is needed least.
    pub fn used(&mut self, key: K, bytes: u64, cost: f64) -> Vec<K> {
        self.now += 1;
        self.note(key, bytes, cost);
        self.judge(&key);
        for tier in 1..TIERS {
            self.enter(tier, key);
            self.make_room_in(tier, 0);
        }
        self.enter(REAL, key);
        let demoted = self.make_room(0);
        self.forget();
        demoted
    }

    /// Writes down that it was used now.
    fn note(&mut self, key: K, bytes: u64, cost: f64) {
        let now = self.now;
        let known = self.known.entry(key).or_insert_with(|| Known::new(bytes, cost, now));
        self.gone.remove(&(known.last, key));
        match known.uses {
            0 => self.firsts.see(),
            1 => self.firsts.come_back(now - known.last),
            _ => {}
        }
        if known.uses > 0 {
            known.intervals.add(now - known.last);
        }
        known.hints.take_first(&mut self.hints_kept);
        known.uses = known.uses.saturating_add(1);
        (known.last, known.cost) = (now, cost);
        self.cost_max = self.cost_max.max(cost);
        if known.bytes != bytes {
            self.leave_all(&key);
            self.known.get_mut(&key).expect("it was just there").bytes = bytes;
        }
    }

    /// Counts what each pretended tier has to bring for this use.
    fn judge(&mut self, key: &K) {
        let known = &self.known[key];
        let price = known.bytes as f64 * known.cost;
        for (at, behind) in self.behind.iter_mut().enumerate() {
            *behind += if known.is_in(1 + at) { 0.0 } else { price };
        }
        let best = self.behind.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.capacity as f64 * self.cost_max;
        self.behind.iter_mut().for_each(|behind| *behind = (*behind - best).min(most));
    }

    /// The forecast that a tier goes by: its own, or the best of them for the real one.
    fn forecast_of(&self, tier: usize) -> Forecast {
        let best = || (0..FORECASTS).min_by(|a, b| self.behind[*a].total_cmp(&self.behind[*b])).unwrap_or(0);
        Forecast::ALL[tier.checked_sub(1).unwrap_or_else(best)]
    }

    /// These will be used next, in this order; what was said before of them counts no more.
    pub fn hint(&mut self, keys: impl IntoIterator<Item = (K, u64, f64)>) {
        let before = self.now;
        for (at, (key, bytes, cost)) in (before + 1..).zip(keys).take(REMEMBERED_MAX) {
            let known = self.known.entry(key).or_insert_with(|| Known::new(bytes, cost, before));
            known.hints.say(at, before, &mut self.hints_kept);
            if !known.is_in(REAL) {
                self.gone.insert((known.last, key));
            }
        }
        self.forget();
    }

    /// What was said of these does not hold any more: whoever said it has ended early.
    pub fn withdraw(&mut self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            if let Some(known) = self.known.get_mut(&key) {
                known.hints.withdraw(&mut self.hints_kept);
            }
        }
    }

    /// It stays until it is unpinned as often as it was pinned.
    pub fn pin(&mut self, key: K, bytes: u64) {
        let now = self.now;
        self.known.entry(key).or_insert_with(|| Known::new(bytes, 1.0, now)).pins += 1;
    }

    /// Takes a pin back.
    pub fn unpin(&mut self, key: &K) {
        if let Some(known) = self.known.get_mut(key) {
            known.pins = known.pins.saturating_sub(1);
            if known.pins == 0 && !known.is_in(REAL) {
                self.gone.insert((known.last, *key));
            }
        }
    }

    /// It is not here any more, for a reason of its own.
    pub fn remove(&mut self, key: &K) {
        if self.has(key) {
            self.leave_all(key);
            self.gone.insert((self.known[key].last, *key));
        }
    }

    /// Gives what has to go so that so many bytes are free.
    pub fn make_room(&mut self, bytes: u64) -> Vec<K> {
        let demoted = self.make_room_in(REAL, bytes);
        self.gone.extend(demoted.iter().map(|key| (self.known[key].last, *key)));
        demoted
    }

    fn enter(&mut self, tier: usize, key: K) {
        let known = self.known.get_mut(&key).expect("whatever enters is known");
        if !known.is_in(tier) {
            known.places[tier] = self.tiers[tier].enter(key, known.bytes);
        }
    }

    fn leave(&mut self, tier: usize, key: &K) {
        let known = self.known.get_mut(key).expect("whatever leaves is known");
        if !known.is_in(tier) {
            return;
        }
        let place = std::mem::replace(&mut known.places[tier], ABSENT);
        if let Some(moved) = self.tiers[tier].leave(place, known.bytes) {
            self.known.get_mut(&moved).expect("whatever is in a tier is known").places[tier] = place;
        }
    }

    fn leave_all(&mut self, key: &K) {
        (0..TIERS).for_each(|tier| self.leave(tier, key));
    }

    fn make_room_in(&mut self, tier: usize, bytes: u64) -> Vec<K> {
        let mut demoted = Vec::new();
        while self.tiers[tier].held() + bytes > self.capacity {
            let Some(key) = self.least(tier) else { break };
            self.leave(tier, &key);
            demoted.push(key);
        }
        demoted
    }

    /// What is worth least of a tier, if not everything is pinned.
    fn least(&mut self, tier: usize) -> Option<K> {
        let forecast = self.forecast_of(tier);
        let looked_at = self.tiers[tier].next_candidates(CANDIDATES_MAX);
        let of = |key: &K| Some((self.worth(self.known.get(key).filter(|known| known.pins == 0)?, forecast), *key));
        let least = |keys: &mut dyn Iterator<Item = &K>| {
            let least = keys.filter_map(of).min_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            least.map(|(_, key)| key)
        };
        let members = &self.tiers[tier];
        least(&mut members.at(looked_at)).or_else(|| least(&mut members.all()))
    }

    /// What it is worth to have a byte of it here: what bringing it back costs over how long until that is needed.
    fn worth(&self, known: &Known, forecast: Forecast) -> (f64, Reverse<u64>) {
        // What is larger than the tier would empty it and go all the same.
        let fits = if known.bytes > self.capacity { 0.0 } else { 1.0 };
        // Of those that are worth the same the newest goes first: whoever goes through more than fits keeps its beginning.
        (fits * known.cost * self.nearness(known, forecast), Reverse(known.last))
    }

    /// How near its next use is, as far as anybody can tell: one over the uses until then.
    fn nearness(&self, known: &Known, forecast: Forecast) -> f64 {
        let age = self.now - known.last;
        let past = match known.uses {
            0 | 1 => self.firsts.nearness(age),
            uses => forecast.nearness(&known.intervals, uses, age, self.now),
        };
        // Hints count as far as they came true so far.
        known.hints.next(self.now).map_or(past, |next| {
            let kept = self.hints_kept.share();
            kept / (next - self.now) as f64 + (1.0 - kept) * past
        })
    }

    /// Forgets the past of what was not used for longest, if too much is remembered.
    fn forget(&mut self) {
        while self.known.len() > REMEMBERED_MAX {
            let Some((_, key)) = self.gone.pop_first() else { break };
            if self.known.get(&key).is_some_and(|known| known.pins == 0 && !known.is_in(REAL)) {
                self.leave_all(&key);
                self.known.remove(&key);
            }
        }
    }
}
