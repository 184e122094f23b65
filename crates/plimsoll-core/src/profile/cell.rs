//! A cell: what one (workload, rung, device) costs, and where it is known to run out of memory.
//! Never chooses, and never reads a clock: the caller says what was measured, and dates it when it is saved.
//! Invariant: an estimate exists exactly for what was measured at some size, and a few contaminated samples do not
//! move it (`outliers_do_not_move_a_cell`).

use super::curve::{Curve, Estimate};
use super::failure::{FailedAt, RanOut};
use super::machine::is_fresh;
use super::track::Track;
use crate::{Bytes, Moment, Nanos, UnixSeconds};

/// What one rung of a workload costs on one device: opening a session, preparing a reference, running, by size.
///
/// Learning a run and asking for one allocate nothing once its size has been seen.
///
/// ```
/// # use plimsoll_core as plimsoll;
/// use plimsoll::Nanos;
/// use plimsoll::profile::Cell;
///
/// let mut cell = Cell::default();
/// cell.learn_open(Nanos::millis(12));
/// for _ in 0..3 {
///     cell.learn_run(1 << 20, Nanos::micros(900));
///     cell.learn_run(1 << 24, Nanos::millis(12));
/// }
/// cell.learn_run(1 << 20, Nanos::seconds(3)); // the machine was busy: set aside
/// assert_eq!(cell.open(), Some(Nanos::millis(12)));
/// assert_eq!(cell.run(1 << 20).map(|estimate| estimate.time), Some(Nanos::micros(900)));
/// assert_eq!(cell.reference(1 << 20), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    pub(super) run: Curve,
    pub(super) reference: Curve,
    pub(super) open: Option<Track>,
    failed: Option<FailedAt>,
    unsupported: bool,
}

impl Cell {
    /// Learns what one task of this many units took.
    #[inline]
    pub fn learn_run(&mut self, units: u64, took: Nanos) {
        self.run.learn(units, took);
    }

    /// The same; says whether tasks are now expected to take another time.
    #[inline]
    pub(crate) fn learn_run_for_news(&mut self, units: u64, took: Nanos) -> bool {
        self.run.learn(units, took)
    }

    /// Learns what preparing one reference of this many units took.
    pub fn learn_reference(&mut self, units: u64, took: Nanos) {
        self.reference.learn(units, took);
    }

    /// Learns what opening a session took.
    pub fn learn_open(&mut self, took: Nanos) {
        match &mut self.open {
            Some(track) => track.learn(took),
            None => self.open = Some(Track::new(took)),
        }
    }

    /// What a task of this many units should take; `None` if no task was measured.
    #[inline]
    pub fn run(&self, units: u64) -> Option<Estimate> {
        self.run.estimate(units)
    }

    /// What preparing a reference of this many units should take; `None` if none was measured.
    #[inline]
    pub fn reference(&self, units: u64) -> Option<Estimate> {
        self.reference.estimate(units)
    }

    /// What opening a session should take; `None` if none was measured.
    #[inline]
    pub fn open(&self) -> Option<Nanos> {
        self.open.as_ref().map(|track| track.window().median())
    }

    /// Memory ran out: closes that size and above for a while, `wait_first` the first time, longer each time it happens
    /// again. Says what counts from now on; `None` if it was closed already.
    pub fn fail(&mut self, ran_out: RanOut, wait_first: Nanos, now: Moment) -> Option<FailedAt> {
        let failed = FailedAt::after(self.failed, ran_out, wait_first, now)?;
        self.failed = Some(failed);
        Some(failed)
    }

    /// Remembers a failure that an earlier process saw.
    pub fn remember(&mut self, failed: FailedAt) {
        self.failed = Some(failed);
    }

    /// Whether anything is remembered of failures here. Where nothing ever failed, that is all that choosing asks.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failed.is_some() || self.unsupported
    }

    /// Whether a task of this size is known to run out of memory here, while others leave `free` bytes of the device.
    pub fn refuses(&self, units: u64, bytes: Bytes, free: Bytes, now: Moment) -> Option<FailedAt> {
        self.failed.filter(|failed| failed.refuses(units, bytes, free, now))
    }

    /// A task of this size did run: a failure at this size or below no longer counts. Says whether there was one.
    #[inline]
    pub fn succeeded(&mut self, units: u64, bytes: Bytes) -> bool {
        let refuted = self.failed.is_some_and(|failed| failed.covers(units, bytes));
        if refuted {
            self.failed = None;
        }
        refuted
    }

    /// The device cannot do this rung at all.
    pub fn set_unsupported(&mut self) {
        self.unsupported = true;
    }

    /// Whether the device is known not to do this rung at all.
    pub fn is_unsupported(&self) -> bool {
        self.unsupported
    }

    /// Forgets where memory ran out and that the device cannot do it.
    pub fn forget_failures(&mut self) {
        (self.failed, self.unsupported) = (None, false);
    }

    /// Runs learnt in all, at any size.
    pub fn learnt(&self) -> u64 {
        self.run.iter().fold(0, |sum, (_, track)| sum.saturating_add(track.window().learnt()))
    }

    /// Every size at which runs were measured, smallest first.
    pub fn sizes(&self) -> impl Iterator<Item = Measured> + '_ {
        self.run.iter().map(|(units, track)| Measured {
            units,
            median: track.window().median(),
            spread: track.window().spread(),
            learnt: track.window().learnt(),
        })
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.tracks().next().is_none()
    }

    /// When it last learnt something, as far as it was dated.
    pub fn learnt_at(&self) -> UnixSeconds {
        self.tracks().map(Track::at).max().unwrap_or_default()
    }

    /// Whether nothing in it is fresh: all of it was learnt [`STALE_AFTER_DAYS`](super::STALE_AFTER_DAYS) ago or longer.
    pub fn is_stale(&self, now: UnixSeconds) -> bool {
        !self.tracks().any(|track| is_fresh(track.at(), now))
    }

    /// The same without what is too old to rely on, size by size: that is measured again in passing. What was not dated
    /// yet is of now.
    #[must_use]
    pub fn without_stale(mut self, now: UnixSeconds) -> Self {
        self.run.retain(|track| track.is_undated() || is_fresh(track.at(), now));
        self.reference.retain(|track| track.is_undated() || is_fresh(track.at(), now));
        self.open = self.open.filter(|track| track.is_undated() || is_fresh(track.at(), now));
        self
    }

    /// Dates what was learnt since it was last dated.
    pub fn stamp(&mut self, now: UnixSeconds) {
        self.run.stamp(now);
        self.reference.stamp(now);
        if let Some(open) = &mut self.open {
            open.stamp(now);
        }
    }

    /// Takes over what the other learnt later, size by size. What is not in the profile file (a failure) stays.
    pub fn merge(&mut self, other: &Self) {
        self.run.merge(&other.run);
        self.reference.merge(&other.reference);
        match (&mut self.open, &other.open) {
            (Some(ours), Some(theirs)) => ours.merge(theirs),
            (None, theirs) => self.open.clone_from(theirs),
            (Some(_), None) => {}
        }
    }

    fn tracks(&self) -> impl Iterator<Item = &Track> {
        let by_size = self.run.iter().chain(self.reference.iter());
        by_size.map(|(_, track)| track).chain(&self.open)
    }
}

/// What is known of one size.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Measured {
    /// The size.
    pub units: u64,
    /// The median time.
    pub median: Nanos,
    /// How far the samples lie apart, as a share of the median.
    pub spread: f64,
    /// How many samples were learnt in all.
    pub learnt: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(cell: &Cell, units: u64) -> Nanos {
        cell.run(units).expect("measured").time
    }

    const FREE: Bytes = Bytes(10_000);

    /// Memory runs out at a moment; the first time it counts for 50 ns.
    fn fail(cell: &mut Cell, units: u64, at: u64) -> Option<FailedAt> {
        cell.fail(RanOut { units, bytes: Bytes(units * 4), free: FREE }, Nanos(50), Moment(at))
    }

    fn refuses(cell: &Cell, units: u64, bytes: u64, at: u64) -> bool {
        cell.refuses(units, Bytes(bytes), FREE, Moment(at)).is_some()
    }

    #[test]
    fn an_unmeasured_cell_says_so() {
        let cell = Cell::default();
        assert!(cell.is_empty());
        assert_eq!((cell.open(), cell.run(1), cell.reference(1)), (None, None, None));
        assert_eq!(cell.refuses(u64::MAX, Bytes::MAX, Bytes::ZERO, Moment::START), None);
    }

    #[test]
    fn open_reference_and_run_are_learnt_apart() {
        let mut cell = Cell::default();
        cell.learn_open(Nanos(7));
        cell.learn_reference(10, Nanos(70));
        cell.learn_run(10, Nanos(700));
        assert_eq!(cell.open(), Some(Nanos(7)));
        assert_eq!(cell.reference(20).map(|e| e.time), Some(Nanos(140)));
        assert_eq!(time(&cell, 20), Nanos(1400));
        assert_eq!(cell.learnt(), 1);
        (0..2).for_each(|_| cell.learn_run(1_000, Nanos(70_000)));
        assert_eq!(cell.learnt(), 3, "runs of any size");
        (0..2).for_each(|_| cell.learn_open(Nanos(9)));
        assert_eq!(cell.open(), Some(Nanos(9)), "the median of three");
    }

    #[test]
    fn a_failure_refuses_its_size_and_above_until_it_expires() {
        let mut cell = Cell::default();
        fail(&mut cell, 100, 1);
        assert!(refuses(&cell, 100, 400, 50));
        assert!(refuses(&cell, 500, 2000, 50));
        assert!(!refuses(&cell, 99, 396, 50), "smaller");
        assert!(!refuses(&cell, 100, 300, 50), "as many units that need less");
        assert!(!refuses(&cell, 100, 400, 51), "expired");
        assert!(cell.refuses(100, Bytes(400), FREE + Bytes(400), Moment(2)).is_none(), "more is free");
    }

    #[test]
    fn the_smaller_failure_counts_until_a_success_refutes_it_and_then_the_next_is_a_first_one() {
        let mut cell = Cell::default();
        fail(&mut cell, 200, 1);
        fail(&mut cell, 100, 2);
        assert_eq!(fail(&mut cell, 200, 3), None, "known already");
        assert!(refuses(&cell, 150, 600, 4));
        assert!(!cell.succeeded(99, Bytes(396)), "a smaller success says nothing");
        let again = fail(&mut cell, 100, 52).expect("it was open");
        assert_eq!((again.step, again.until), (1, Moment(152)));
        assert!(cell.succeeded(120, Bytes(480)));
        assert!(!refuses(&cell, 150, 600, 60));
        assert_eq!(fail(&mut cell, 150, 61).map(|failed| failed.step), Some(0));
    }

    #[test]
    fn what_failed_is_forgotten_when_asked() {
        let mut cell = Cell::default();
        fail(&mut cell, 100, 1);
        cell.set_unsupported();
        assert!(refuses(&cell, 100, 400, 2) && cell.is_unsupported());
        cell.forget_failures();
        assert!(!refuses(&cell, 100, 400, 2) && !cell.is_unsupported() && !cell.has_failed());
    }

    #[test]
    fn each_size_grows_old_by_itself() {
        let day = |n: u64| UnixSeconds(1_760_000_000 + n * 24 * 3600);
        let mut cell = Cell::default();
        cell.learn_open(Nanos(7));
        cell.learn_reference(10, Nanos(70));
        cell.learn_run(10, Nanos(100));
        cell.stamp(day(0));
        cell.learn_run(1_000, Nanos(9_000));
        cell.stamp(day(5));
        let left = |now| {
            let cell = cell.clone().without_stale(now);
            (cell.sizes().map(|size| size.units).collect::<Vec<_>>(), cell.open(), cell.reference(10).is_some())
        };
        assert_eq!(left(UnixSeconds(day(7).0 - 1)), (vec![10, 1_000], Some(Nanos(7)), true));
        assert_eq!(left(day(7)), (vec![1_000], None, false));
        assert_eq!(cell.clone().without_stale(day(7)).run(1_000).map(|e| e.time), Some(Nanos(9_000)));
        assert!(!cell.is_stale(day(7)) && cell.is_stale(day(12)));
        cell.learn_run(10, Nanos(100));
        assert_eq!(cell.clone().without_stale(day(30)).sizes().count(), 1, "learnt just now, not dated yet");
    }

    #[test]
    fn two_processes_that_measured_different_sizes_both_count() {
        let learnt = |units, took, at| {
            let mut cell = Cell::default();
            cell.learn_run(units, Nanos(took));
            cell.stamp(UnixSeconds(at));
            cell
        };
        let mut ours = learnt(1_000, 5_000, 10);
        ours.merge(&learnt(64_000, 320_000, 5));
        assert_eq!((time(&ours, 1_000), time(&ours, 64_000)), (Nanos(5_000), Nanos(320_000)));
        assert_eq!(ours.learnt_at(), UnixSeconds(10));
    }

    fn learnt_cell() -> impl Strategy<Value = Cell> {
        let samples = prop::collection::vec((1_u64..1 << 30, 1_u64..1 << 40, 0_u64..5), 0..30);
        (samples, prop::option::of(1_u64..1 << 40)).prop_map(|(samples, open)| {
            let mut cell = Cell::default();
            for (units, took, at) in samples {
                cell.learn_run(units, Nanos(took));
                cell.learn_reference(took, Nanos(units));
                cell.stamp(UnixSeconds(at));
            }
            if let Some(open) = open {
                cell.learn_open(Nanos(open));
                cell.stamp(UnixSeconds(open % 5));
            }
            cell
        })
    }

    proptest! {
        #[test]
        fn outliers_do_not_move_a_cell(
            jitter in prop::collection::vec(0.95_f64..1.05, 3..20),
            outliers in prop::collection::vec(2.0_f64..1e6, 0..5),
            units in 1_u64..1 << 40,
        ) {
            let mut cell = Cell::default();
            jitter.iter().for_each(|factor| cell.learn_run(units, Nanos::millis(2).scaled(*factor)));
            let before = cell.clone();
            outliers.iter().for_each(|factor| cell.learn_run(units, Nanos::millis(2).scaled(*factor)));
            for asked in [1, units, units * 3] {
                prop_assert_eq!(cell.run(asked), before.run(asked));
            }
        }

        #[test]
        fn merging_does_not_depend_on_the_order(a in learnt_cell(), b in learnt_cell(), c in learnt_cell()) {
            let merged = |parts: [&Cell; 3]| {
                let mut all = Cell::default();
                parts.iter().for_each(|part| all.merge(part));
                all
            };
            let all = merged([&a, &b, &c]);
            prop_assert_eq!(&merged([&c, &a, &b]), &all);
            prop_assert_eq!(&merged([&b, &c, &a]), &all);
            let mut again = all.clone();
            again.merge(&a);
            prop_assert_eq!(&again, &all, "merging twice changes nothing");
        }
    }
}
