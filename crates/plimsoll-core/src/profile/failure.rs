//! Where memory ran out: which cell, how big, with which software, when, and until when that counts.
//! Never stores anything but out-of-memory: a failure is made from a [`MemoryMoment`], which a timeout, a lost device
//! or the work's own error does not have.
//! Invariant: a failure never hides a later success at its size (`a_success_refutes_also_across_a_merge`), and none
//! counts for longer than [`FAILURE_LIFE_S`].

use super::key::CellKey;
use super::name::clean;
use crate::{Bytes, MemoryMoment, Moment, Nanos, UnixSeconds};

/// How long a failure counts: an hour. Trying again costs one failed attempt and then a step down; believing for too
/// long in a shortage that another program caused costs every task of that hour.
pub const FAILURE_LIFE_S: u64 = 3600;

/// Failures kept. At the limit the one that expires first goes; it is then learnt again the hard way.
pub const FAILURES_MAX: usize = 256;

/// More than any file format's signed number holds is no size.
const NUMBER_MAX: u64 = i64::MAX as u64;

/// One out-of-memory that happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedCell {
    key: CellKey,
    units: u64,
    bytes: Bytes,
    open: bool,
    software: String,
    at: UnixSeconds,
    until: UnixSeconds,
}

impl FailedCell {
    /// Memory ran out at this size. `bytes` is the footprint of the whole rung, not the one allocation that failed.
    ///
    /// `None` if it was only predicted: the line moves, so a prediction is made again each time and never remembered.
    pub fn out_of_memory(
        key: CellKey,
        units: u64,
        bytes: Bytes,
        moment: MemoryMoment,
        software: &str,
        at: UnixSeconds,
    ) -> Option<Self> {
        let open = match moment {
            MemoryMoment::Predicted => return None,
            MemoryMoment::Open => true,
            MemoryMoment::Run => false,
        };
        Some(Self {
            key,
            units: units.min(NUMBER_MAX),
            bytes: Bytes(bytes.0.min(NUMBER_MAX)),
            open,
            software: clean(software),
            at: UnixSeconds(at.0.min(NUMBER_MAX)),
            until: UnixSeconds(at.plus(FAILURE_LIFE_S).0.min(NUMBER_MAX)),
        })
    }

    /// The same failure, counting no longer than until `until`.
    #[must_use]
    pub fn until_at_most(mut self, until: UnixSeconds) -> Self {
        self.until = self.until.min(until);
        self
    }

    /// Which workload, rung and device.
    pub fn key(&self) -> &CellKey {
        &self.key
    }

    /// The size at which it happened.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// The bytes the rung needed at that size.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// While opening, or while running.
    pub fn moment(&self) -> MemoryMoment {
        if self.open { MemoryMoment::Open } else { MemoryMoment::Run }
    }

    /// The version of the software that it happened to.
    pub fn software(&self) -> &str {
        &self.software
    }

    /// When it happened.
    pub fn at(&self) -> UnixSeconds {
        self.at
    }

    /// When it stops counting.
    pub fn until(&self) -> UnixSeconds {
        self.until
    }

    /// The same as a scheduler keeps it, whose own clock shows `now` at the calendar's `today`.
    pub fn dense(&self, today: UnixSeconds, now: Moment) -> FailedAt {
        let left = Nanos::seconds(self.until.0.saturating_sub(today.0));
        FailedAt { units: self.units, bytes: self.bytes, until: now + left }
    }

    /// Whether a task of this size needs at least as much of everything.
    fn covers(&self, units: u64, bytes: Bytes) -> bool {
        units >= self.units && bytes >= self.bytes
    }
}

/// A failure as the scheduler's hot path asks for it: no names, and on the scheduler's own clock.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FailedAt {
    /// The size at which it happened.
    pub units: u64,
    /// The bytes the rung needed at that size.
    pub bytes: Bytes,
    /// When it stops counting.
    pub until: Moment,
}

impl FailedAt {
    /// Whether a task of this size is expected to fail too.
    #[inline]
    pub fn refuses(&self, units: u64, bytes: Bytes, now: Moment) -> bool {
        now < self.until && self.covers(units, bytes)
    }

    /// Whether a task of this size needs at least as much of everything.
    #[inline]
    pub(super) fn covers(&self, units: u64, bytes: Bytes) -> bool {
        units >= self.units && bytes >= self.bytes
    }
}

/// A success that refuted a failure, kept so that another process's copy of that failure does not come back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Refutation {
    pub(super) key: CellKey,
    pub(super) units: u64,
    pub(super) bytes: Bytes,
    pub(super) at: UnixSeconds,
}

impl Refutation {
    /// In the same second nobody can say which came first; then the success counts.
    fn refutes(&self, failed: &FailedCell) -> bool {
        self.key == failed.key && self.at >= failed.at && failed.covers(self.units, self.bytes)
    }
}

/// The failures of a machine: bounded, expiring, refuted by success.
///
/// ```
/// use plimsoll_core::profile::{CellKey, FailedCell, Failures};
/// use plimsoll_core::{Bytes, MemoryMoment, UnixSeconds};
///
/// let (key, now) = (CellKey::new("blur", "gpu-full", "card"), UnixSeconds(1_000));
/// let mut failures = Failures::default();
/// failures.remember(
///     FailedCell::out_of_memory(key.clone(), 4096, Bytes::gib(9), MemoryMoment::Run, "0.1.0", now).unwrap(),
/// );
/// assert!(failures.refuses(&key, 8192, Bytes::gib(18), now, "0.1.0").is_some());
/// assert!(failures.refuses(&key, 8192, Bytes::gib(18), now, "0.2.0").is_none());
/// failures.succeeded(&key, 8192, Bytes::gib(18), now.plus(5));
/// assert!(failures.refuses(&key, 8192, Bytes::gib(18), now.plus(5), "0.1.0").is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    failed: Vec<FailedCell>,
    refuted: Vec<Refutation>,
}

impl Failures {
    /// Remembers a failure.
    pub fn remember(&mut self, failed: FailedCell) {
        self.failed.push(failed);
        self.tidy();
    }

    /// The failure because of which a task of this size should not be tried here: at this size or below, with this
    /// version of the software, and not expired.
    pub fn refuses(
        &self,
        key: &CellKey,
        units: u64,
        bytes: Bytes,
        now: UnixSeconds,
        software: &str,
    ) -> Option<&FailedCell> {
        self.failed.iter().find(|failed| {
            now < failed.until && failed.covers(units, bytes) && failed.software == software && failed.key == *key
        })
    }

    /// A task of this size ran: failures at this size or below no longer count. Returns how many there were.
    pub fn succeeded(&mut self, key: &CellKey, units: u64, bytes: Bytes, now: UnixSeconds) -> usize {
        let units = units.min(NUMBER_MAX);
        let bytes = Bytes(bytes.0.min(NUMBER_MAX));
        let refutation = Refutation { key: key.clone(), units, bytes, at: now };
        let refuted = self.failed.iter().filter(|failed| refutation.refutes(failed)).count();
        if refuted > 0 {
            self.refuted.push(refutation);
            self.tidy();
        }
        refuted
    }

    /// Forgets what has expired.
    pub fn expire(&mut self, now: UnixSeconds) {
        self.failed.retain(|failed| now < failed.until);
        self.refuted.retain(|refuted| now < refuted.at.plus(FAILURE_LIFE_S));
    }

    /// All that is remembered, expired or not.
    pub fn iter(&self) -> impl Iterator<Item = &FailedCell> {
        self.failed.iter()
    }

    /// The failure of this cell at the smallest size that still counts.
    pub fn smallest(&self, key: &CellKey, now: UnixSeconds, software: &str) -> Option<&FailedCell> {
        let counts = |failed: &&FailedCell| now < failed.until && failed.software == software && failed.key == *key;
        self.failed.iter().filter(counts).min_by_key(|failed| (failed.units, failed.bytes))
    }

    /// Takes over what the other remembers; what either saw refuted stays refuted.
    pub fn merge(&mut self, other: &Self) {
        self.failed.extend(other.failed.iter().cloned());
        self.refuted.extend(other.refuted.iter().cloned());
        self.tidy();
    }

    pub(super) fn refutations(&self) -> impl Iterator<Item = &Refutation> {
        self.refuted.iter()
    }

    pub(super) fn refute(&mut self, refutation: Refutation) {
        self.refuted.push(refutation);
        self.tidy();
    }

    /// Applies refutations, then the limits. Sorted, so that two merges in either order end the same.
    fn tidy(&mut self) {
        self.failed.retain(|failed| !self.refuted.iter().any(|refuted| refuted.refutes(failed)));
        keep_latest(&mut self.failed, |failed| failed.until);
        keep_latest(&mut self.refuted, |refuted| refuted.at);
    }
}

/// Sorts, drops duplicates, and keeps the latest [`FAILURES_MAX`].
fn keep_latest<T: Ord>(items: &mut Vec<T>, time: impl Fn(&T) -> UnixSeconds) {
    items.sort_unstable_by(|a, b| time(b).cmp(&time(a)).then_with(|| a.cmp(b)));
    items.dedup();
    items.truncate(FAILURES_MAX);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: UnixSeconds = UnixSeconds(1_000_000);

    fn key(device: &str) -> CellKey {
        CellKey::new("blur", "gpu-full", device)
    }

    fn failed(device: &str, units: u64, at: u64) -> FailedCell {
        let bytes = Bytes(units * 4);
        FailedCell::out_of_memory(key(device), units, bytes, MemoryMoment::Run, "1.0", UnixSeconds(at)).expect("it ran")
    }

    fn refuses(failures: &Failures, units: u64, now: UnixSeconds) -> bool {
        failures.refuses(&key("a"), units, Bytes(units * 4), now, "1.0").is_some()
    }

    #[test]
    fn a_failure_carries_where_when_and_how_big() {
        let mut failures = Failures::default();
        failures.remember(failed("a", 100, NOW.0));
        let found = failures.refuses(&key("a"), 100, Bytes(400), NOW, "1.0").expect("remembered");
        assert_eq!((found.key(), found.units(), found.bytes()), (&key("a"), 100, Bytes(400)));
        assert_eq!((found.moment(), found.software()), (MemoryMoment::Run, "1.0"));
        assert_eq!((found.at(), found.until()), (NOW, NOW.plus(FAILURE_LIFE_S)));
    }

    #[test]
    fn it_counts_at_its_size_and_above_on_its_device_with_its_software_until_it_expires() {
        let mut failures = Failures::default();
        failures.remember(failed("a", 100, NOW.0));
        assert!(refuses(&failures, 100, NOW) && refuses(&failures, 900, NOW));
        assert!(!refuses(&failures, 99, NOW));
        assert!(!refuses(&failures, 900, NOW.plus(FAILURE_LIFE_S)));
        assert!(failures.refuses(&key("b"), 900, Bytes::MAX, NOW, "1.0").is_none());
        assert!(failures.refuses(&key("a"), 900, Bytes::MAX, NOW, "1.1").is_none());
        failures.expire(NOW.plus(FAILURE_LIFE_S));
        assert_eq!(failures, Failures::default());
    }

    #[test]
    fn a_prediction_is_not_remembered() {
        let predicted = FailedCell::out_of_memory(key("a"), 1, Bytes(1), MemoryMoment::Predicted, "1.0", NOW);
        assert_eq!(predicted, None);
    }

    #[test]
    fn a_success_clears_failures_at_its_size_and_below_only() {
        let mut failures = Failures::default();
        for units in [100, 200, 300] {
            failures.remember(failed("a", units, NOW.0));
        }
        assert_eq!(failures.succeeded(&key("a"), 200, Bytes(800), NOW), 2);
        assert!(!refuses(&failures, 299, NOW) && refuses(&failures, 300, NOW));
        assert_eq!(failures.smallest(&key("a"), NOW, "1.0").map(FailedCell::units), Some(300));
    }

    #[test]
    fn a_success_refutes_also_across_a_merge() {
        let mut ours = Failures::default();
        ours.remember(failed("a", 100, NOW.0));
        let theirs = ours.clone();
        ours.succeeded(&key("a"), 100, Bytes(400), NOW.plus(5));
        ours.merge(&theirs);
        assert!(!refuses(&ours, 100, NOW.plus(6)), "their old copy does not bring it back");
        ours.remember(failed("a", 100, NOW.0 + 10));
        assert!(refuses(&ours, 100, NOW.plus(11)), "a new failure counts");
    }

    #[test]
    fn the_set_is_bounded_and_the_latest_stay() {
        let mut failures = Failures::default();
        for i in 0..2 * FAILURES_MAX as u64 {
            failures.remember(failed("a", 1_000_000 - i, NOW.0 + i));
        }
        assert_eq!(failures.iter().count(), FAILURES_MAX);
        assert!(failures.iter().all(|failed| failed.at().0 >= NOW.0 + FAILURES_MAX as u64));
    }

    #[test]
    fn the_dense_form_runs_on_the_schedulers_clock() {
        let dense = failed("a", 100, NOW.0).dense(NOW.plus(FAILURE_LIFE_S - 2), Moment(77));
        assert_eq!(dense.until, Moment(77) + Nanos::seconds(2));
        assert!(dense.refuses(100, Bytes(400), Moment(77)));
        assert!(!dense.refuses(100, Bytes(400), dense.until));
    }

    fn some_failures() -> impl Strategy<Value = Failures> {
        prop::collection::vec((any::<bool>(), 1_u64..50, 0_u64..50), 0..40).prop_map(|facts| {
            let mut failures = Failures::default();
            for (fails, units, at) in facts {
                if fails {
                    failures.remember(failed("a", units, at));
                } else {
                    failures.succeeded(&key("a"), units, Bytes(units * 4), UnixSeconds(at));
                }
            }
            failures
        })
    }

    proptest! {
        #[test]
        fn merging_does_not_depend_on_the_order(a in some_failures(), b in some_failures()) {
            let (mut ab, mut ba) = (a.clone(), b.clone());
            ab.merge(&b);
            ba.merge(&a);
            prop_assert_eq!(ab, ba);
        }

        #[test]
        fn no_failure_outlives_a_success_at_its_size(mut failures in some_failures(), units in 1_u64..60) {
            failures.succeeded(&key("a"), units, Bytes(units * 4), UnixSeconds(50));
            prop_assert!(!refuses(&failures, units, UnixSeconds(50)));
        }
    }
}
