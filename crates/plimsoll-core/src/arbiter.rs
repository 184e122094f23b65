//! Who goes first: priority, age and deadline folded into one number that never has to be computed again.
//! Never looks at devices or memory.
//! Invariant: a task waits for later, more urgent ones at most [`AGEING_STEP`] per level of difference; only
//! [`Priority::Critical`] goes before everything else for ever.

use crate::{Moment, Nanos, Priority};

/// How much later a task one level more urgent may come and still go first. Two seconds keep a person's request ahead
/// of a batch, and let a background task through after eight seconds of nothing but urgent ones.
pub const AGEING_STEP: Nanos = Nanos::seconds(2);

/// How much older than it is a stage of a pipeline counts for each stage before it: what was begun is finished before more
/// is begun.
pub const STAGE_STEP: Nanos = Nanos::millis(100);
/// Stages beyond this many count for no more, so that a pipeline never gains a whole level of priority by its length.
pub const STAGES_COUNTED: u8 = 15;

/// A task's turn. Smaller goes first.
///
/// Urgency counts as having come earlier, so waiting tasks overtake by age alone and the order of a queue is fixed
/// when a task enters it. A deadline pulls a task forward as far as its own run needs, but by one level at the most:
/// background work with a deadline stays background work.
#[inline]
pub fn turn(submitted: Moment, priority: Priority, deadline: Option<Moment>, run: Nanos, stage: u8) -> Moment {
    let levels_below = (Priority::LEVELS - 1 - priority.level()) as u64;
    if levels_below == 0 {
        return Moment::START;
    }
    let lift = Nanos(STAGE_STEP.0 * u64::from(stage.min(STAGES_COUNTED)));
    let by_age = submitted + (Nanos(AGEING_STEP.0 * levels_below) - lift);
    match deadline {
        Some(deadline) => by_age.min((deadline - run).max(by_age - AGEING_STEP)),
        None => by_age,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(at: u64, priority: Priority) -> Moment {
        turn(Moment(Nanos::millis(at).0), priority, None, Nanos::ZERO, 0)
    }

    #[test]
    fn a_later_stage_goes_first_but_never_before_another_level() {
        let at = |at, priority, stage| turn(Moment(Nanos::millis(at).0), priority, None, Nanos::ZERO, stage);
        assert!(at(50, Priority::Normal, 1) < at(0, Priority::Normal, 0));
        assert!(
            at(150, Priority::Normal, 1) > at(0, Priority::Normal, 0),
            "what has waited long enough goes before it"
        );
        assert!(at(250, Priority::Normal, 3) < at(0, Priority::Normal, 0));
        assert!(at(0, Priority::Low, u8::MAX) > at(0, Priority::Normal, 0));
        assert!(at(0, Priority::High, u8::MAX) > at(0, Priority::Critical, 0));
    }

    #[test]
    fn urgent_goes_first_until_the_other_has_aged() {
        assert!(plain(100, Priority::High) < plain(0, Priority::Normal));
        assert!(plain(2_100, Priority::High) > plain(0, Priority::Normal));
        assert!(plain(5_900, Priority::High) < plain(0, Priority::Background));
        assert!(plain(6_100, Priority::High) > plain(0, Priority::Background));
    }

    #[test]
    fn critical_goes_first_for_ever() {
        for other in [Priority::Background, Priority::Low, Priority::Normal, Priority::High] {
            assert!(plain(1_000_000_000, Priority::Critical) < plain(0, other));
        }
    }

    #[test]
    fn a_deadline_pulls_forward_by_what_the_run_needs_and_by_one_level_at_most() {
        let ms = |at| Moment(Nanos::millis(at).0);
        let pulled = |due, run| turn(Moment(0), Priority::Low, Some(ms(due)), Nanos::millis(run), 0);
        assert_eq!(pulled(5_500, 200), ms(5_300), "six seconds without a deadline");
        assert_eq!(pulled(9_000, 200), ms(6_000), "it would be in time anyway");
        assert_eq!(pulled(500, 200), ms(4_000), "as one of normal priority");
        assert_eq!(pulled(500, 9_000), ms(4_000), "hopeless");
    }
}
