//! A window of samples and when it last learnt, so that what two processes learnt can be told apart.
//! Never judges samples (that is `robust`) and never reads a clock: the time is stamped on later, when it is saved.
//! Invariant: of two tracks of the same thing the one that learnt last wins, whichever is asked first.

use super::robust::{Reception, WINDOW, Window};
use crate::{Nanos, UnixSeconds};

/// One thing that is measured over and over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Track {
    window: Window,
    at: UnixSeconds,
    /// Whether it has learnt since `at`. Learning itself must not cost a look at the calendar.
    unstamped: bool,
}

impl Track {
    pub(super) fn new(first: Nanos) -> Self {
        Self { window: Window::new(first), at: UnixSeconds::default(), unstamped: true }
    }

    pub(super) fn restore(times: &[Nanos], learnt: u64, at: UnixSeconds) -> Option<Self> {
        Some(Self { window: Window::restore(times, learnt)?, at, unstamped: false })
    }

    #[inline]
    pub(super) fn learn(&mut self, sample: Nanos) {
        if self.window.learn(sample) != Reception::Quarantined {
            self.unstamped = true;
        }
    }

    #[inline]
    pub(super) fn window(&self) -> &Window {
        &self.window
    }

    pub(super) fn at(&self) -> UnixSeconds {
        self.at
    }

    /// Whether it has learnt since it was last dated.
    pub(super) fn is_undated(&self) -> bool {
        self.unstamped
    }

    /// Dates what was learnt since the last stamp. A clock set back does not make it older than it was.
    pub(super) fn stamp(&mut self, now: UnixSeconds) {
        if std::mem::take(&mut self.unstamped) {
            self.at = self.at.max(now);
        }
    }

    /// Keeps the newer of the two.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.rank() > self.rank() {
            *self = other.clone();
        }
    }

    /// Later wins; in the same second, more samples; the samples themselves break the last tie, so that the order
    /// in which two files are merged never matters.
    pub(super) fn rank(&self) -> (bool, UnixSeconds, u64, [Nanos; WINDOW]) {
        let mut times = [Nanos::ZERO; WINDOW];
        for (place, time) in times.iter_mut().zip(self.window.times()) {
            *place = time;
        }
        (self.unstamped, self.at, self.window.learnt(), times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(time: u64, at: u64) -> Track {
        let mut track = Track::new(Nanos(time));
        track.stamp(UnixSeconds(at));
        track
    }

    #[test]
    fn only_what_learnt_is_stamped_anew() {
        let mut track = track(5, 10);
        track.stamp(UnixSeconds(20));
        assert_eq!(track.at(), UnixSeconds(10));
        track.learn(Nanos(5));
        track.stamp(UnixSeconds(20));
        assert_eq!(track.at(), UnixSeconds(20));
        track.learn(Nanos(5));
        track.stamp(UnixSeconds(3));
        assert_eq!(track.at(), UnixSeconds(20), "the clock was set back");
    }

    #[test]
    fn a_quarantined_sample_is_not_news() {
        let mut track = track(1_000_000, 10);
        for _ in 0..5 {
            track.learn(Nanos(1_000_000));
        }
        track.stamp(UnixSeconds(20));
        track.learn(Nanos(90_000_000));
        track.stamp(UnixSeconds(30));
        assert_eq!(track.at(), UnixSeconds(20));
    }

    #[test]
    fn the_later_one_wins_then_the_one_with_more_samples() {
        let (old, new) = (track(5, 10), track(7, 11));
        for (mut a, b) in [(old.clone(), &new), (new.clone(), &old)] {
            a.merge(b);
            assert_eq!(a, new);
        }
        let mut more = old.clone();
        more.learn(Nanos(5));
        more.stamp(UnixSeconds(10));
        let mut merged = old.clone();
        merged.merge(&more);
        assert_eq!(merged, more);
    }
}
