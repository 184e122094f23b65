//! When work that was kicked on a virtual device ends: after its pace, and not before the test lets it.
//! Never computes: the answer was there when the work was recorded.
//! Invariant: the kicks of one slot end in order, and a device that is lost ends none.

use std::time::{Duration, Instant};

/// One kick.
#[derive(Copy, Clone, Debug)]
pub(super) struct Work {
    /// Counts the kicks of its device, from 1.
    number: u64,
    ends: Instant,
}

impl Work {
    /// How long it still lasts if nothing holds it up.
    pub(super) fn rest(self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }
}

/// All that was kicked on one device.
#[derive(Debug)]
pub(super) struct Kicked {
    made: u64,
    /// Later ones are held up.
    let_through: u64,
    last: Option<Work>,
}

impl Default for Kicked {
    fn default() -> Self {
        Self { made: 0, let_through: u64::MAX, last: None }
    }
}

impl Kicked {
    /// One more, of a slot whose kick before was `before`.
    pub(super) fn kick(&mut self, before: Option<Work>, pace: Duration) -> Work {
        self.made += 1;
        let now = Instant::now();
        let begins = before.map_or(now, |before| before.ends.max(now));
        let work = Work { number: self.made, ends: begins + pace };
        // All slots together have done everything when the one that lasts longest has.
        let ends = self.last.map_or(work.ends, |last| last.ends.max(work.ends));
        self.last = Some(Work { ends, ..work });
        work
    }

    /// Stands for all of them; none if there was none.
    pub(super) fn all(&self) -> Option<Work> {
        self.last
    }

    /// Whether it does not end, however long one waits.
    pub(super) fn holds(&self, work: Work) -> bool {
        work.number > self.let_through
    }

    /// Of what is kicked from now on, only so many end.
    pub(super) fn hold_after(&mut self, kicks: u64) {
        self.let_through = self.made.saturating_add(kicks);
    }

    pub(super) fn release(&mut self) {
        self.let_through = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kicks_of_one_slot_follow_each_other_and_those_of_two_do_not() {
        let (mut kicked, pace) = (Kicked::default(), Duration::from_secs(100));
        let first = kicked.kick(None, pace);
        let second = kicked.kick(Some(first), pace);
        let beside = kicked.kick(None, pace);
        assert_eq!(second.ends, first.ends + pace);
        assert!(beside.ends < second.ends);
        let all = kicked.all().unwrap();
        assert_eq!((all.number, all.ends), (3, second.ends), "the last to end, and the last to be let through");
    }
}
