//! Who goes first: priority, age and deadline folded into one number that never has to be computed again.
//! Never looks at devices or memory.
//! Invariant: a task waits for later, more urgent ones at most [`AGEING_STEP`] per level of difference.

use crate::{Moment, Nanos, Priority};

/// How much later a task one level more urgent may come and still go first. Two seconds keep a person's request ahead
/// of a batch, and let a background task through after eight seconds of nothing but urgent ones.
pub const AGEING_STEP: Nanos = Nanos::seconds(2);

/// A task's turn: the moment at which a task of [`Priority::Critical`] submitted then would stand beside it.
///
/// Urgency counts as having come earlier, so waiting tasks overtake by age alone and the order of a queue is fixed
/// when a task enters it. A deadline pulls a task forward as far as its own run needs.
pub fn turn(submitted: Moment, priority: Priority, deadline: Option<Moment>, run: Nanos) -> Moment {
    let levels_below = (Priority::LEVELS - 1 - priority.level()) as u64;
    let by_age = submitted + Nanos(AGEING_STEP.0 * levels_below);
    match deadline {
        Some(deadline) => by_age.min((deadline - run).max(submitted)),
        None => by_age,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(at: u64, priority: Priority) -> Moment {
        turn(Moment(Nanos::millis(at).0), priority, None, Nanos::ZERO)
    }

    #[test]
    fn urgent_goes_first_until_the_other_has_aged() {
        assert!(plain(100, Priority::High) < plain(0, Priority::Normal));
        assert!(plain(2_100, Priority::High) > plain(0, Priority::Normal));
        assert!(plain(7_900, Priority::Critical) < plain(0, Priority::Background));
        assert!(plain(8_100, Priority::Critical) > plain(0, Priority::Background));
    }

    #[test]
    fn a_deadline_pulls_forward_by_what_the_run_needs() {
        let due = Moment(Nanos::millis(500).0);
        let pulled = turn(Moment(0), Priority::Low, Some(due), Nanos::millis(200));
        assert_eq!(pulled, Moment(Nanos::millis(300).0));
        let hopeless = turn(Moment(0), Priority::Low, Some(due), Nanos::seconds(9));
        assert_eq!(hopeless, Moment(0), "never before its own submission");
    }
}
