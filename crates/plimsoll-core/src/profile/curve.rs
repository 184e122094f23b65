//! Time by size: one track for each quarter of an octave of units, and the line through their medians.
//! Never judges samples (that is `robust`).
//! Invariant: an estimate is finite, at least 1 ns, and grows with the units wherever the medians do
//! (`an_estimate_grows_with_the_units`).

use super::robust::TIME_MAX;
use super::track::Track;
use crate::{Nanos, UnixSeconds};

/// More units than any task has. Small enough for a signed file format and for the arithmetic here.
pub const UNITS_MAX: u64 = (1 << 62) - 1;

/// What a time is expected to be, and on what grounds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The expected time.
    pub time: Nanos,
    /// What it is based on.
    pub basis: Basis,
}

/// What an estimate is based on, best first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Samples within a quarter of this size.
    Measured,
    /// A smaller and a larger size were measured.
    Between,
    /// Only smaller or only larger sizes were measured.
    Beyond,
}

/// The median at one size, and the line from there to the next larger one.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
struct Point {
    units: u64,
    time: f64,
    /// Nanoseconds for each further unit.
    slope: f64,
}

impl Point {
    fn new(units: u64, track: &Track) -> Self {
        Self { units, time: float(track.window().median().0), slope: 0.0 }
    }

    #[inline]
    fn rate(self) -> f64 {
        self.time / float(self.units)
    }

    #[inline]
    fn slope_to(self, next: Self) -> f64 {
        (next.time - self.time) / float(next.units - self.units)
    }
}

/// Times of one thing by size.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Curve {
    /// By rising units, at most one in each step. Apart from the tracks, so that a look-up touches a line or two of
    /// the cache; the slopes are kept, so that it takes no division.
    points: Vec<Point>,
    /// The line from no units at all to the first point.
    below: Point,
    /// The track of each point.
    tracks: Vec<Track>,
}

impl Curve {
    /// Says whether any estimate is another now.
    #[inline]
    pub(super) fn learn(&mut self, units: u64, took: Nanos) -> bool {
        let units = bounded(units);
        let at = match self.find(units) {
            Ok(at) => at,
            Err(at) => {
                self.insert(at, units, Track::new(took));
                return true;
            }
        };
        let track = &mut self.tracks[at];
        let point = &mut self.points[at];
        track.learn(carried(took, units, point.units));
        let time = float(track.window().median().0);
        let is_news = time != point.time;
        if is_news {
            point.time = time;
            self.draw(at);
        }
        is_news
    }

    #[inline]
    pub(super) fn estimate(&self, units: u64) -> Option<Estimate> {
        let units = bounded(units);
        let above = self.points.partition_point(|point| point.units <= units);
        let next = self.points.get(above);
        let from = if above == 0 { &self.below } else { &self.points[above - 1] };
        let time = from.time + from.slope * float(units - from.units);
        let near = |point: &Point| same_step(units, point.units);
        let basis = match next {
            None if above == 0 => return None,
            _ if near(from) || next.is_some_and(near) => Basis::Measured,
            Some(_) if above > 0 => Basis::Between,
            _ => Basis::Beyond,
        };
        Some(Estimate { time: Nanos((time as u64).max(1)), basis })
    }

    /// The sizes that were measured, and their tracks, by rising units.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Track)> {
        self.points.iter().map(|point| point.units).zip(&self.tracks)
    }

    /// Adds a track as it was saved. Of two at the same step the newer is kept.
    pub(super) fn add(&mut self, units: u64, track: Track) {
        let units = bounded(units);
        match self.find(units) {
            Err(at) => self.insert(at, units, track),
            // The size goes with the track: its times are times at that size.
            Ok(at) if (track.rank(), units) > (self.tracks[at].rank(), self.points[at].units) => {
                self.points[at] = Point::new(units, &track);
                self.tracks[at] = track;
                self.draw(at);
            }
            Ok(_) => {}
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (units, track) in other.iter() {
            self.add(units, track.clone());
        }
    }

    /// Keeps these tracks only.
    pub(super) fn retain(&mut self, stays: impl Fn(&Track) -> bool) {
        if self.tracks.iter().all(&stays) {
            return;
        }
        let all = std::mem::take(self);
        for (point, track) in all.points.into_iter().zip(all.tracks).filter(|(_, track)| stays(track)) {
            self.add(point.units, track);
        }
    }

    pub(super) fn stamp(&mut self, now: UnixSeconds) {
        self.tracks.iter_mut().for_each(|track| track.stamp(now));
    }

    /// Where the point of this size's step is, or where it would go.
    #[inline]
    fn find(&self, units: u64) -> Result<usize, usize> {
        let above = self.points.partition_point(|point| point.units <= units);
        let near = |at: usize| self.points.get(at).is_some_and(|point| same_step(units, point.units));
        if near(above.wrapping_sub(1)) {
            Ok(above - 1)
        } else if near(above) {
            Ok(above)
        } else {
            Err(above)
        }
    }

    #[cold]
    fn insert(&mut self, at: usize, units: u64, track: Track) {
        self.points.insert(at, Point::new(units, &track));
        self.tracks.insert(at, track);
        self.draw(at);
    }

    /// Draws the lines that meet at a point.
    fn draw(&mut self, at: usize) {
        if at > 0 {
            self.points[at - 1].slope = self.points[at - 1].slope_to(self.points[at]);
        }
        let point = self.points[at];
        // Beyond the largest size each unit takes the same: rather too much than a bargain that is not there.
        self.points[at].slope = self.points.get(at + 1).map_or(point.rate(), |next| point.slope_to(*next));
        if at < 2 {
            self.draw_below();
        }
    }

    /// Below the smallest size: on down the line of the two smallest, so that a fixed cost stays; but never below
    /// zero, nor up again.
    fn draw_below(&mut self) {
        let first = self.points[0];
        let slope = first.slope.clamp(0.0, first.rate());
        self.below = Point { units: 0, time: first.time - slope * float(first.units), slope };
    }
}

#[inline]
fn bounded(units: u64) -> u64 {
    units.clamp(1, UNITS_MAX)
}

/// Whether two sizes share a track. There are four steps to the octave (1, 1¼, 1½, 1¾): two sizes of one step differ by
/// less than a quarter, which is within the jitter that `robust` tolerates, so size alone never makes a sample look off.
#[inline]
fn same_step(units: u64, other: u64) -> bool {
    let width = (1_u64 << units.ilog2() >> 2).max(1);
    units ^ other < width
}

/// A time at one size, carried in proportion to another size of the same step.
#[inline]
fn carried(took: Nanos, from: u64, to: u64) -> Nanos {
    if from == to {
        return took;
    }
    let took = took.0.min(TIME_MAX.0);
    Nanos((float(took) * float(to) / float(from)) as u64)
}

/// Exact for every time and for units below 2^53; the detour over i64 is one instruction where u64 takes ten.
#[inline]
fn float(value: u64) -> f64 {
    value as i64 as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn curve(samples: &[(u64, u64)]) -> Curve {
        let mut curve = Curve::default();
        for &(units, took) in samples {
            curve.learn(units, Nanos(took));
        }
        curve
    }

    fn time(curve: &Curve, units: u64) -> u64 {
        curve.estimate(units).expect("measured").time.0
    }

    #[test]
    fn nothing_measured_nothing_said() {
        assert_eq!(Curve::default().estimate(10), None);
    }

    #[test]
    fn a_fixed_cost_is_kept_between_and_below_what_was_measured() {
        let affine = |units: u64| 50_000 + 3 * units;
        let curve = curve(&[(1 << 16, affine(1 << 16)), (1 << 20, affine(1 << 20))]);
        for units in [1, 1 << 10, 1 << 16, 1 << 18, 700_000, 1 << 20] {
            assert!(time(&curve, units).abs_diff(affine(units)) <= 1, "{units}");
        }
    }

    #[test]
    fn beyond_the_largest_size_each_unit_takes_the_same() {
        let curve = curve(&[(1_000, 5_000), (100_000, 104_000)]);
        assert_eq!(time(&curve, 1_000_000), 1_040_000);
        assert_eq!(time(&self::curve(&[(1, 1_000_000)]), u64::MAX), u64::MAX, "large, never wrapped");
    }

    #[test]
    fn noise_between_small_sizes_never_promises_less_than_in_proportion_nor_more_than_was_measured() {
        let falling = curve(&[(1_000, 9_000), (2_000, 8_000)]);
        assert_eq!(time(&falling, 10), 9_000);
        let steep = curve(&[(1_000, 9_000), (2_000, 90_000)]);
        assert_eq!(time(&steep, 500), 4_500);
    }

    #[test]
    fn an_estimate_says_what_it_is_based_on() {
        let curve = curve(&[(1_000, 5_000), (100_000, 104_000)]);
        let basis = |units| curve.estimate(units).map(|estimate| estimate.basis);
        assert_eq!(basis(1_000), Some(Basis::Measured));
        assert_eq!(basis(1_010), Some(Basis::Measured));
        assert_eq!(basis(10_000), Some(Basis::Between));
        assert_eq!(basis(10), Some(Basis::Beyond));
        assert_eq!(basis(1_000_000), Some(Basis::Beyond));
    }

    #[test]
    fn two_sizes_of_one_step_share_a_track() {
        let curve = curve(&[(1_024, 10_240), (1_279, 12_790), (1_279, 12_790), (1_280, 12_800)]);
        assert_eq!(curve.points.iter().map(|p| p.units).collect::<Vec<_>>(), [1_024, 1_280]);
        assert_eq!(time(&curve, 1_024), 10_240, "in proportion, they are equal");
        let jumped = self::curve(&[(1_024, u64::MAX), (1_279, u64::MAX)]);
        assert!(time(&jumped, 1_024) > TIME_MAX.0 / 2, "a clock that jumped: long, never wrapped");
    }

    #[test]
    fn what_lies_between_follows_when_a_size_is_measured_anew() {
        let mut curve = curve(&[(1_000, 10_000), (3_000, 90_000)]);
        assert_eq!(time(&curve, 2_000), 50_000);
        (0..20).for_each(|_| _ = curve.learn(1_000, Nanos(30_000)));
        assert_eq!((time(&curve, 1_000), time(&curve, 2_000)), (30_000, 60_000));
        (0..20).for_each(|_| _ = curve.learn(3_000, Nanos(50_000)));
        assert_eq!((time(&curve, 2_000), time(&curve, 500)), (40_000, 25_000), "and what lies below");
    }

    #[test]
    fn of_two_tracks_at_one_step_the_newer_keeps_its_size() {
        let dated = |units, took, at| {
            let mut curve = curve(&[(units, took)]);
            curve.stamp(UnixSeconds(at));
            curve
        };
        let (old, new) = (dated(1_024, 10_000, 1), dated(1_100, 30_000, 2));
        for (mut a, b) in [(old.clone(), &new), (new.clone(), &old)] {
            a.merge(b);
            assert_eq!(a, new);
        }
    }

    proptest! {
        #[test]
        fn a_step_is_no_wider_than_a_quarter(units in 1..UNITS_MAX, share in 0.7_f64..1.4) {
            let other = bounded((units as f64 * share) as u64);
            prop_assert!(same_step(units, units) && same_step(units, other) == same_step(other, units));
            prop_assert!(!same_step(units, units + units / 4 + 1));
            let (small, large) = (units.min(other), units.max(other));
            prop_assert!(!same_step(small, large) || (large - small) * 4 < small, "{small} {large}");
        }

        #[test]
        fn any_samples_give_finite_estimates(
            samples in prop::collection::vec((any::<u64>(), any::<u64>()), 1..60),
            units: u64,
        ) {
            let curve = curve(&samples);
            prop_assert!(curve.points.is_sorted_by(|a, b| a.units < b.units && !same_step(a.units, b.units)));
            prop_assert!(time(&curve, units) >= 1);
        }

        #[test]
        fn an_estimate_grows_with_the_units(
            sizes in prop::collection::vec(1_u64..1 << 40, 1..30),
            fixed in 0_u64..1_000_000,
            each in 0_u64..100,
            asked in (1_u64..1 << 44, 1_u64..1 << 44),
        ) {
            let mut sizes = sizes;
            sizes.sort_unstable();
            sizes.dedup_by(|a, b| same_step(*a, *b));
            let curve = curve(&sizes.iter().map(|&u| (u, fixed + each * u)).collect::<Vec<_>>());
            let (small, large) = (asked.0.min(asked.1), asked.0.max(asked.1));
            prop_assert!(time(&curve, small) <= time(&curve, large));
        }
    }
}
