//! A machine that programs share: language models, image generators and batch sweeps ask the core for leases, as a daemon
//! would pass them on, while strangers come and go. Some programs obey, some are slow, some lie, some never answer.
//! Never runs a task, and never tells the scheduler what is true: it sees readings of memory, like any daemon.
//! Invariant: after every step everything in `checks` holds; in the end everybody has gone and nothing is promised.
//!
//! | file | what it is |
//! |---|---|
//! | `programs.rs` | who asks for what, and with which manners |
//! | `machine.rs` | the clock, the devices in truth, and what happens next |
//! | `checks.rs` | what must hold, worked out from what programs did |

mod checks;
mod machine;
mod programs;

use plimsoll_core::Nanos;

use machine::Machine;

/// What happened in a run. Each is there so that a test can see that it did.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Things that programs and strangers did.
    pub steps: u64,
    /// Leases given.
    pub given: u64,
    /// Leases that were not given in time.
    pub refused: u64,
    /// How often a holder was asked to step down.
    pub stepped_down: u64,
    /// How often one was asked to leave.
    pub made_to_leave: u64,
    /// How often one was stopped.
    pub stopped: u64,
    /// How often one was told that it may rise.
    pub rose: u64,
    /// How often a holder gave way to strangers.
    pub yielded: u64,
    /// How often a program said that it had freed bytes and had not.
    pub lies: u64,
    /// How often a batch was asked for its bytes although it had items left.
    pub batches_broken: u64,
    /// The longest that anybody waited.
    pub waited_max: Nanos,
    /// The most grants that the scheduler knew at once.
    pub grants_max: usize,
    /// The most leases that were in the ledger at once.
    pub leases_max: usize,
}

/// Plays a seed for so many steps.
///
/// # Errors
/// What did not hold, in words.
pub fn play(seed: u64, steps: u64) -> Result<Passed, String> {
    Machine::new(seed).run(|machine| machine.passed.steps < steps)
}

/// Plays a seed for so much virtual time.
///
/// # Errors
/// What did not hold, in words.
pub fn play_for(seed: u64, span: Nanos) -> Result<Passed, String> {
    Machine::new(seed).run(|machine| machine.now.since(plimsoll_core::Moment::START) < span)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each policy three times; `SEEDS` plays as many as you like.
    const SEEDS: u64 = 15;
    const STEPS: u64 = 10_000;
    /// The longest that anybody waits, also of those who wait as long as it takes. A lease lasts up to seven and a half
    /// minutes.
    const WAITED_MAX: Nanos = Nanos::seconds(1_800);

    /// Never past the line, nobody starves, every lease that was given ends, every preemption is seen before its bytes are
    /// given to anybody else.
    #[test]
    fn models_images_and_batches_share_a_machine() {
        let wanted = std::env::var("SEEDS").map_or(SEEDS, |count| count.parse().expect("a number of seeds"));
        let mut all = Passed::default();
        for seed in 0..wanted {
            let passed = play(seed, STEPS).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
            assert!(passed.given > 100 && passed.waited_max < WAITED_MAX, "seed {seed}: {passed:?}");
            all.given += passed.given;
            all.waited_max = all.waited_max.max(passed.waited_max);
            all.stepped_down += passed.stepped_down;
            all.made_to_leave += passed.made_to_leave;
            all.stopped += passed.stopped;
            all.rose += passed.rose;
            all.yielded += passed.yielded;
            all.lies += passed.lies;
            all.batches_broken += passed.batches_broken;
            all.refused += passed.refused;
        }
        let happened = [all.stepped_down, all.made_to_leave, all.stopped, all.rose, all.yielded, all.lies];
        assert!(happened.iter().all(|times| *times > 10), "{all:?}");
        assert!(all.batches_broken > 0 && all.refused > 0, "{all:?}");
        println!("{all:?}");
    }

    /// What is known of programs that have gone is forgotten: after a day there is no more than after an hour.
    #[test]
    fn a_day_leaves_nothing_behind() {
        let hour = play_for(7, Nanos::seconds(3_600)).expect("an hour");
        let day = play_for(7, Nanos::seconds(24 * 3_600)).expect("a day");
        assert!(day.given > 10 * hour.given, "{hour:?} {day:?}");
        assert!(day.grants_max <= checks::GRANTS_MAX && day.leases_max <= checks::LEASES_MAX, "{day:?}");
    }

    #[test]
    fn a_broken_ledger_is_caught() {
        let broken = |seed| {
            let mut machine = Machine::new(seed);
            machine.scheduler.break_ledger_on_purpose();
            machine.run(|machine| machine.passed.steps < 1_000).is_err()
        };
        assert!((0..3).all(broken), "a ledger that forgets half of each promise went unnoticed");
    }

    #[test]
    fn a_seed_gives_the_same_run_again() {
        assert_eq!(play(3, 2_000), play(3, 2_000));
    }
}
