//! Where memory ran out: which cell, how big, how much was free, with which software, when, and until when that counts.
//! Never stores anything but out-of-memory as one: a failure is made from a [`MemoryMoment`], which a timeout, a lost
//! device or the work's own error does not have. What a device cannot do at all is kept beside it (`unsupported`).
//! Invariant: a failure never hides a later success at its size (`a_success_refutes_also_across_a_merge`), and none
//! counts for longer than [`FAILURE_LIFE_S`].
//!
//! A failure is tried again soon, then ever more rarely: the first closes its size for a moment, each further one for
//! twice as long, up to an hour. Clearly more free memory than there was opens it at once, and so does a success.

use std::cmp::Ordering;

use super::key::CellKey;
use super::name::clean;
use super::unsupported::UnsupportedCell;
use crate::{Bytes, MemoryMoment, Moment, Nanos, UnixSeconds};

/// How long a failure counts at the most: an hour. Trying again costs one failed attempt and then a step down; believing
/// for too long in a shortage that another program caused costs every task of that hour. For as long again after it has
/// stopped counting it is remembered how often it happened; then the next one is a first one.
pub const FAILURE_LIFE_S: u64 = 3600;

/// How long the first failure at a size counts, unless the configuration says otherwise: most shortages are other
/// programs', and short.
pub const FAILURE_WAIT_FIRST: Nanos = Nanos::seconds(2);

/// Doublings of that wait that are counted: more than it takes from a microsecond to an hour.
pub const FAILURE_STEP_MAX: u8 = 32;

/// Failures kept. At the limit the one that expires first goes; it is then learnt again the hard way.
pub const FAILURES_MAX: usize = 256;

/// How long a success refutes: until every failure that it could refute is forgotten.
const REFUTATION_LIFE_S: u64 = 2 * FAILURE_LIFE_S;

/// More than any file format's signed number holds is no size.
const NUMBER_MAX: u64 = i64::MAX as u64;

/// One out-of-memory that happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedCell {
    key: CellKey,
    units: u64,
    bytes: Bytes,
    free: Option<Bytes>,
    open: bool,
    step: u8,
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
            free: None,
            open,
            step: 0,
            software: clean(software),
            at: UnixSeconds(at.0.min(NUMBER_MAX)),
            until: UnixSeconds(at.plus(FAILURE_LIFE_S).0.min(NUMBER_MAX)),
        })
    }

    /// The same failure, with what others left free of the device when it happened.
    #[must_use]
    pub fn with_free(mut self, free: Option<Bytes>) -> Self {
        self.free = free.map(|free| Bytes(free.0.min(NUMBER_MAX)));
        self
    }

    /// The same failure, after this many others in a row at its size.
    #[must_use]
    pub fn with_step(mut self, step: u8) -> Self {
        self.step = step.min(FAILURE_STEP_MAX);
        self
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

    /// What others left free of the device when it happened; `None` if that was not written down.
    pub fn free(&self) -> Option<Bytes> {
        self.free
    }

    /// How many others in a row there were at its size before it.
    pub fn step(&self) -> u8 {
        self.step
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
        FailedAt { units: self.units, bytes: self.bytes, free: self.free, step: self.step, until: now + left }
    }

    /// Whether it still says how often memory ran out, counting or not.
    fn is_remembered(&self, now: UnixSeconds) -> bool {
        now < self.until.plus(FAILURE_LIFE_S)
    }

    /// Whether a task of this size needs at least as much of everything.
    fn covers(&self, units: u64, bytes: Bytes) -> bool {
        units >= self.units && bytes >= self.bytes
    }
}

/// One out-of-memory as it happens.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RanOut {
    /// The size of the task.
    pub units: u64,
    /// The bytes the rung needed at that size.
    pub bytes: Bytes,
    /// What others left free of the device, by its last reading.
    pub free: Bytes,
}

/// A failure as the scheduler's hot path asks for it: no names, and on the scheduler's own clock.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FailedAt {
    /// The size at which it happened.
    pub units: u64,
    /// The bytes the rung needed at that size.
    pub bytes: Bytes,
    /// What others left free of the device when it happened; `None` if nobody knows.
    pub free: Option<Bytes>,
    /// How many others in a row there were before it.
    pub step: u8,
    /// When it stops counting.
    pub until: Moment,
}

impl FailedAt {
    /// What counts after memory ran out where `known` was remembered; `None` if that says it all: the run was under way
    /// when the size was closed, or was the last way left to its task.
    ///
    /// The size is that of the latest failure: a larger one than before shows that the smaller is open again. The step
    /// is the cell's, whatever the size, so that a mixture of sizes is tried more and more rarely as well.
    pub(super) fn after(known: Option<Self>, ran_out: RanOut, wait_first: Nanos, now: Moment) -> Option<Self> {
        let RanOut { units, bytes, free } = ran_out;
        let step = match known.filter(|known| now < known.until + Nanos::seconds(FAILURE_LIFE_S)) {
            None => 0,
            Some(known) if known.refuses(units, bytes, free, now) => return None,
            Some(known) if known.covers(units, bytes) => (known.step + 1).min(FAILURE_STEP_MAX),
            Some(known) => known.step,
        };
        Some(Self { units, bytes, free: Some(free), step, until: now + wait(wait_first, step) })
    }

    /// Whether a task of this size is expected to fail too, where others leave `free` bytes now.
    #[inline]
    pub fn refuses(&self, units: u64, bytes: Bytes, free: Bytes, now: Moment) -> bool {
        now < self.until && self.covers(units, bytes) && !self.is_clearly_more(free)
    }

    /// Whether a task of this size needs at least as much of everything.
    #[inline]
    pub(super) fn covers(&self, units: u64, bytes: Bytes) -> bool {
        units >= self.units && bytes >= self.bytes
    }

    /// Whether so much more is free than when it happened that it says nothing any more: as much as the rung itself
    /// needs, or an eighth of what there was. Less than a sixty-fourth is only what every machine does all the time.
    fn is_clearly_more(&self, free: Bytes) -> bool {
        let Some(then) = self.free else { return false };
        let enough = self.bytes.0.clamp(then.0 / 64, then.0 / 8).max(1);
        (free - then).0 >= enough
    }
}

/// How long a failure counts that this many others came before.
fn wait(first: Nanos, step: u8) -> Nanos {
    Nanos(first.0.saturating_mul(1 << step.min(FAILURE_STEP_MAX))).min(Nanos::seconds(FAILURE_LIFE_S))
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

/// The failures of a machine: bounded, expiring, refuted by success; and what its devices cannot do at all.
///
/// ```
/// # use plimsoll_core as plimsoll;
/// use plimsoll::profile::{CellKey, FailedCell, Failures};
/// use plimsoll::{Bytes, MemoryMoment, UnixSeconds};
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
    unsupported: Vec<UnsupportedCell>,
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

    /// A task of this size ran: failures at this size or below no longer count, here or in a file that this is merged
    /// into. Returns how many there were here.
    pub fn succeeded(&mut self, key: &CellKey, units: u64, bytes: Bytes, now: UnixSeconds) -> usize {
        let units = units.min(NUMBER_MAX);
        let bytes = Bytes(bytes.0.min(NUMBER_MAX));
        let refutation = Refutation { key: key.clone(), units, bytes, at: now };
        let refuted = self.failed.iter().filter(|failed| refutation.refutes(failed)).count();
        self.refuted.push(refutation);
        self.tidy();
        refuted
    }

    /// Forgets what is over: failures that have not counted for [`FAILURE_LIFE_S`], refutations of such, and what a
    /// device could not do a long time ago.
    pub fn expire(&mut self, now: UnixSeconds) {
        self.failed.retain(|failed| failed.is_remembered(now));
        self.refuted.retain(|refuted| now < refuted.at.plus(REFUTATION_LIFE_S));
        self.unsupported.retain(|unsupported| now < unsupported.until());
    }

    /// Forgets where memory ran out and what devices cannot do, of one workload or of all. Returns how much that was.
    pub fn forget(&mut self, workload: Option<&str>) -> usize {
        let before = self.failed.len() + self.unsupported.len();
        let stays = |key: &CellKey| workload.is_some_and(|workload| key.workload() != clean(workload));
        self.failed.retain(|failed| stays(&failed.key));
        self.unsupported.retain(|unsupported| stays(unsupported.key()));
        before - self.failed.len() - self.unsupported.len()
    }

    /// Forgets what is remembered of these cells: they were measured anew.
    pub(super) fn forget_cells(&mut self, measured: impl Fn(&CellKey) -> bool) {
        self.failed.retain(|failed| !measured(&failed.key));
        self.unsupported.retain(|unsupported| !measured(unsupported.key()));
    }

    /// Remembers that a device cannot do a rung.
    pub fn remember_unsupported(&mut self, unsupported: UnsupportedCell) {
        self.unsupported.push(unsupported);
        self.tidy();
    }

    /// Whether a device is known not to do a rung at all, with this version of the software.
    pub fn is_unsupported(&self, key: &CellKey, now: UnixSeconds, software: &str) -> bool {
        self.unsupported.iter().any(|unsupported| {
            now < unsupported.until() && unsupported.software() == software && unsupported.key() == key
        })
    }

    /// What devices cannot do, expired or not.
    pub fn unsupported(&self) -> impl Iterator<Item = &UnsupportedCell> {
        self.unsupported.iter()
    }

    /// All that is remembered, expired or not.
    pub fn iter(&self) -> impl Iterator<Item = &FailedCell> {
        self.failed.iter()
    }

    /// The failure of this cell at the smallest size that still counts; if none does, the one that last did, for its
    /// step.
    pub fn standing(&self, key: &CellKey, now: UnixSeconds, software: &str) -> Option<&FailedCell> {
        let is_known =
            |failed: &&FailedCell| failed.is_remembered(now) && failed.software == software && failed.key == *key;
        let known = || self.failed.iter().filter(is_known);
        let counting = known().filter(|failed| now < failed.until).min_by_key(|failed| (failed.units, failed.bytes));
        counting.or_else(|| known().max_by_key(|failed| (failed.until, failed.step)))
    }

    /// Takes over what the other remembers; what either saw refuted stays refuted.
    pub fn merge(&mut self, other: &Self) {
        self.failed.extend(other.failed.iter().cloned());
        self.refuted.extend(other.refuted.iter().cloned());
        self.unsupported.extend(other.unsupported.iter().cloned());
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
        keep_one(&mut self.failed, |a, b| (&a.key, a.units, a.bytes).cmp(&(&b.key, b.units, b.bytes)), |f| f.at);
        keep_latest(&mut self.failed, |failed| failed.until);
        keep_latest(&mut self.refuted, |refuted| refuted.at);
        keep_one(&mut self.unsupported, |a, b| a.key().cmp(b.key()), UnsupportedCell::at);
        keep_latest(&mut self.unsupported, UnsupportedCell::at);
    }
}

/// Of several about the same thing, the latest.
fn keep_one<T: Ord>(items: &mut Vec<T>, subject: impl Fn(&T, &T) -> Ordering, time: impl Fn(&T) -> UnixSeconds) {
    items.sort_unstable_by(|a, b| subject(a, b).then_with(|| time(b).cmp(&time(a))).then_with(|| b.cmp(a)));
    items.dedup_by(|later, first| subject(later, first) == Ordering::Equal);
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
        let refuses_bytes = |units, bytes| failures.refuses(&key("a"), units, Bytes(bytes), NOW, "1.0").is_some();
        assert!(!refuses_bytes(900, 399) && !refuses_bytes(99, 900), "more of one thing and less of the other");
        assert!(!refuses(&failures, 900, NOW.plus(FAILURE_LIFE_S)));
        assert!(failures.refuses(&key("b"), 900, Bytes::MAX, NOW, "1.0").is_none());
        assert!(failures.refuses(&key("a"), 900, Bytes::MAX, NOW, "1.1").is_none());
        failures.expire(NOW.plus(2 * FAILURE_LIFE_S - 1));
        let step = |now| failures.standing(&key("a"), now, "1.0").map(FailedCell::step);
        assert_eq!(step(NOW.plus(FAILURE_LIFE_S)), Some(0), "it counts no more, but it happened");
        failures.expire(NOW.plus(2 * FAILURE_LIFE_S));
        assert_eq!(failures, Failures::default());
    }

    /// A success is kept as long as there may be failures that it refutes; what a device cannot do, for a month.
    #[test]
    fn successes_and_what_is_unsupported_expire_too() {
        let mut failures = Failures::default();
        failures.succeeded(&key("a"), 1, Bytes(4), NOW);
        let unsupported = UnsupportedCell::new(key("b"), "no f64", "1.0", NOW);
        let month = unsupported.until().0 - NOW.0;
        failures.remember_unsupported(unsupported);
        let steps =
            [(REFUTATION_LIFE_S - 1, (1, 1)), (REFUTATION_LIFE_S, (0, 1)), (month - 1, (0, 1)), (month, (0, 0))];
        for (after, kept) in steps {
            failures.expire(NOW.plus(after));
            assert_eq!((failures.refutations().count(), failures.unsupported().count()), kept, "after {after} s");
        }
    }

    #[test]
    fn what_is_unsupported_is_kept_once_for_each_cell_and_bounded() {
        let mut failures = Failures::default();
        let cannot = |device: &str, at| UnsupportedCell::new(key(device), "no f64", "1.0", NOW.plus(at));
        [5, 9, 7].into_iter().for_each(|at| failures.remember_unsupported(cannot("a", at)));
        assert_eq!(failures.unsupported().map(UnsupportedCell::at).collect::<Vec<_>>(), [NOW.plus(9)]);
        for at in 10..13 + FAILURES_MAX as u64 {
            failures.remember_unsupported(cannot(&format!("device {at}"), at));
        }
        assert_eq!(failures.unsupported().count(), FAILURES_MAX);
        assert!(failures.unsupported().all(|unsupported| unsupported.at() >= NOW.plus(13)), "the latest stay");
    }

    /// The scheduler keeps one failure a cell: what it is given decides from which size on nothing is tried.
    #[test]
    fn of_several_failures_the_smallest_that_counts_stands() {
        let mut failures = Failures::default();
        let short = |units, until| failed("a", units, NOW.0).until_at_most(NOW.plus(until));
        for failed in [failed("a", 300, NOW.0), short(100, 20), short(50, 10).with_step(7), failed("b", 1, NOW.0)] {
            failures.remember(failed);
        }
        let stands = |after, software| failures.standing(&key("a"), NOW.plus(after), software).map(FailedCell::units);
        assert_eq!([9, 10, 20].map(|after| stands(after, "1.0")), [50, 100, 300].map(Some));
        assert_eq!(stands(9, "1.1"), None);
        assert_eq!(stands(2 * FAILURE_LIFE_S, "1.0"), None, "so long ago that the next one is a first one");
    }

    #[test]
    fn when_none_counts_the_last_that_did_says_how_often_it_happened() {
        let mut failures = Failures::default();
        for (units, until, step) in [(100, 10, 1), (300, 30, 3), (200, 20, 2)] {
            failures.remember(failed("a", units, NOW.0).until_at_most(NOW.plus(until)).with_step(step));
        }
        assert_eq!(failures.standing(&key("a"), NOW.plus(40), "1.0").map(FailedCell::step), Some(3));
    }

    #[test]
    fn the_latest_at_a_size_takes_the_place_of_the_one_before() {
        let mut failures = Failures::default();
        failures.remember(failed("a", 100, NOW.0 + 9).with_step(3).with_free(Some(Bytes(5))));
        failures.remember(failed("a", 100, NOW.0));
        let kept: Vec<_> = failures.iter().map(|failed| (failed.at(), failed.step(), failed.free())).collect();
        assert_eq!(kept, [(NOW.plus(9), 3, Some(Bytes(5)))]);
    }

    #[test]
    fn what_is_forgotten_is_that_workloads_or_everything() {
        let mut failures = Failures::default();
        let other = CellKey::new("sum", "gpu-full", "a");
        failures.remember(failed("a", 100, NOW.0));
        failures.remember_unsupported(UnsupportedCell::new(other.clone(), "no f64", "1.0", NOW));
        let before = failures.clone();
        assert_eq!(failures.forget(Some("nothing")), 0);
        assert_eq!(failures, before);
        assert_eq!(failures.forget(Some("blur")), 1);
        assert!(!refuses(&failures, 100, NOW) && failures.is_unsupported(&other, NOW, "1.0"));
        assert_eq!(failures.forget(None), 1);
        assert!(!failures.is_unsupported(&other, NOW, "1.0"));
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
        assert_eq!(failures.standing(&key("a"), NOW, "1.0").map(FailedCell::units), Some(300));
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
        let before = ours.clone();
        ours.merge(&before);
        assert_eq!(ours, before, "once more changes nothing");
    }

    /// A file may hold both, if two processes wrote into it.
    #[test]
    fn a_success_that_is_read_from_a_file_refutes_too() {
        let mut failures = Failures::default();
        failures.remember(failed("a", 100, NOW.0));
        failures.refute(Refutation { key: key("a"), units: 100, bytes: Bytes(400), at: NOW });
        assert_eq!(failures.iter().count(), 0);
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
        let cell = failed("a", 100, NOW.0).with_step(4).with_free(Some(Bytes(900)));
        let dense = cell.dense(NOW.plus(FAILURE_LIFE_S - 2), Moment(77));
        assert_eq!(dense.until, Moment(77) + Nanos::seconds(2));
        assert_eq!((dense.step, dense.free), (4, Some(Bytes(900))));
        assert!(dense.refuses(100, Bytes(400), Bytes(900), Moment(77)));
        assert!(!dense.refuses(100, Bytes(400), Bytes(900), dense.until));
    }

    fn second(n: u64) -> Moment {
        Moment(Nanos::seconds(n).0)
    }

    /// Memory runs out whenever the size is open: how long is it closed each time?
    #[test]
    fn it_is_tried_again_soon_and_ever_more_rarely() {
        let ran_out = RanOut { units: 1, bytes: Bytes(100), free: Bytes(900) };
        let (mut known, mut now, mut waits) = (None, second(5), Vec::new());
        for _ in 0..14 {
            let failed = FailedAt::after(known, ran_out, FAILURE_WAIT_FIRST, now).expect("it was open");
            assert_eq!(FailedAt::after(Some(failed), ran_out, FAILURE_WAIT_FIRST, now), None, "known already");
            waits.push(failed.until.since(now).0 / Nanos::seconds(1).0);
            (known, now) = (Some(failed), failed.until);
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600]);
        let long_after = now + Nanos::seconds(FAILURE_LIFE_S);
        assert_eq!(FailedAt::after(known, ran_out, FAILURE_WAIT_FIRST, long_after).map(|failed| failed.step), Some(0));
    }

    /// Runs that were under way together fail together: that is one failure, not eight.
    #[test]
    fn a_smaller_size_does_not_count_as_once_more() {
        let ran_out = |units: u64| RanOut { units, bytes: Bytes(units), free: Bytes(900) };
        let steps = [80, 70, 60, 65].map(|units| (units, second(1)));
        let mut known = None;
        for (units, now) in steps {
            known = FailedAt::after(known, ran_out(units), FAILURE_WAIT_FIRST, now).or(known);
        }
        assert_eq!(known.map(|failed| (failed.units, failed.step)), Some((60, 0)));
        let larger = FailedAt::after(known, ran_out(80), FAILURE_WAIT_FIRST, second(9));
        assert_eq!(larger.map(|failed| (failed.units, failed.step)), Some((80, 1)), "60 is open again");
    }

    #[test]
    fn clearly_more_free_memory_than_there_was_opens_it_again() {
        let ran_out = |bytes| RanOut { units: 1, bytes: Bytes(bytes), free: Bytes(6_400) };
        let refuses = |bytes, free| {
            let failed = FailedAt::after(None, ran_out(bytes), FAILURE_WAIT_FIRST, Moment(1)).expect("the first");
            failed.refuses(1, Bytes(bytes), Bytes(free), Moment(2))
        };
        assert!(refuses(5_000, 6_400) && refuses(5_000, 100), "as much, or less");
        assert!(refuses(5_000, 7_199) && !refuses(5_000, 7_200), "an eighth more");
        assert!(refuses(300, 6_699) && !refuses(300, 6_700), "as much more as the rung needs");
        assert!(refuses(1, 6_499) && !refuses(1, 6_500), "but not what comes and goes all the time");
        let unknown = FailedAt { units: 1, bytes: Bytes(1), free: None, step: 0, until: Moment(9) };
        assert!(unknown.refuses(1, Bytes(1), Bytes::MAX, Moment(2)), "nobody knows how much there was");
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
