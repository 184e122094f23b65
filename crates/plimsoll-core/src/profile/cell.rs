//! A cell: what one (workload, rung, device) costs, and where it is known to run out of memory.
//! Never chooses, and never reads a clock: the caller says what was measured, and dates it when it is saved.
//! Invariant: an estimate exists exactly for what was measured at some size, and a few contaminated samples do not
//! move it (`outliers_do_not_move_a_cell`).

use super::curve::{Curve, Estimate};
use super::failure::FailedAt;
use super::track::Track;
use crate::{Bytes, Moment, Nanos, UnixSeconds};

/// What one rung of a workload costs on one device: opening a session, preparing a reference, running, by size.
///
/// Learning a run and asking for one allocate nothing once its size has been seen.
///
/// ```
/// use plimsoll_core::Nanos;
/// use plimsoll_core::profile::Cell;
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
}

impl Cell {
    /// Learns what one task of this many units took.
    #[inline]
    pub fn learn_run(&mut self, units: u64, took: Nanos) {
        self.run.learn(units, took);
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

    /// Remembers that memory ran out. Of two failures the one at the smaller size is kept; an expired one gives way.
    pub fn fail(&mut self, failed: FailedAt, now: Moment) {
        let keep = self.failed.filter(|old| now < old.until && old.units <= failed.units && old.bytes <= failed.bytes);
        if keep.is_none() {
            self.failed = Some(failed);
        }
    }

    /// Whether a task of this size is known to run out of memory here. One branch where nothing ever failed.
    #[inline]
    pub fn refuses(&self, units: u64, bytes: Bytes, now: Moment) -> Option<FailedAt> {
        self.failed.filter(|failed| failed.refuses(units, bytes, now))
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

    fn failed(units: u64, until: u64) -> FailedAt {
        FailedAt { units, bytes: Bytes(units * 4), until: Moment(until) }
    }

    #[test]
    fn an_unmeasured_cell_says_so() {
        let cell = Cell::default();
        assert!(cell.is_empty());
        assert_eq!((cell.open(), cell.run(1), cell.reference(1)), (None, None, None));
        assert_eq!(cell.refuses(u64::MAX, Bytes::MAX, Moment::START), None);
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
    }

    #[test]
    fn a_failure_refuses_its_size_and_above_until_it_expires() {
        let mut cell = Cell::default();
        cell.fail(failed(100, 50), Moment(1));
        assert!(cell.refuses(100, Bytes(400), Moment(49)).is_some());
        assert!(cell.refuses(500, Bytes(2000), Moment(49)).is_some());
        assert!(cell.refuses(99, Bytes(396), Moment(49)).is_none(), "smaller");
        assert!(cell.refuses(100, Bytes(300), Moment(49)).is_none(), "as many units that need less");
        assert!(cell.refuses(100, Bytes(400), Moment(50)).is_none(), "expired");
    }

    #[test]
    fn the_smaller_failure_counts_until_a_success_refutes_it() {
        let mut cell = Cell::default();
        cell.fail(failed(100, 50), Moment(1));
        cell.fail(failed(200, 90), Moment(2));
        assert!(cell.refuses(150, Bytes(600), Moment(3)).is_some());
        assert!(!cell.succeeded(99, Bytes(396)), "a smaller success says nothing");
        assert!(cell.succeeded(120, Bytes(480)));
        assert!(cell.refuses(150, Bytes(600), Moment(3)).is_none());
        cell.fail(failed(100, 50), Moment(1));
        cell.fail(failed(200, 90), Moment(60));
        assert_eq!(cell.refuses(300, Bytes(1200), Moment(70)), Some(failed(200, 90)), "the first had expired");
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
