//! Whether a device may be given work, and when a device that failed is tried again.
//! Never opens a device; it says when the runtime should.

use std::fmt;

use serde::Serialize;

use crate::{Moment, Nanos};

/// The first wait before a failed device is tried again.
pub const RETRY_MIN: Nanos = Nanos::millis(100);
/// The longest wait between two tries: long enough to cost nothing, short enough for a driver update to be noticed.
pub const RETRY_MAX: Nanos = Nanos::seconds(60);
/// Faults in a row, of different tasks and without a result in between, from which on a device waits before it is tried
/// again: it passes its check, and still does no work. Before that it is tried again at once.
pub const FAULTS_MAX: u32 = 3;
/// Failed tries in a row after which a device counts as gone for this process: almost eleven minutes of trying.
pub const TRIES_MAX: u32 = 20;

/// Why a device is in quarantine.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ailment {
    /// It has not yet been seen to work.
    Unproven,
    /// It went away.
    Lost,
    /// It answered wrongly.
    WrongAnswer,
    /// It did not answer.
    Stalled,
}

impl fmt::Display for Ailment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unproven => "not yet seen to work",
            Self::Lost => "lost",
            Self::WrongAnswer => "answered wrongly",
            Self::Stalled => "did not answer",
        })
    }
}

/// A device's health.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It executed its known-answer kernel and the answer was right.
    Well,
    /// No work until it passes again.
    Quarantined {
        /// Why.
        ailment: Ailment,
        /// When to try it again; `None` while a try is under way.
        retry_at: Option<Moment>,
        /// Tries that failed since it was last well.
        tries: u32,
    },
    /// Given up on for the life of this process.
    Gone {
        /// Why.
        ailment: Ailment,
    },
}

impl Health {
    /// A device that has yet to prove itself; a try is under way.
    pub const UNPROVEN: Self = Self::Quarantined { ailment: Ailment::Unproven, retry_at: None, tries: 0 };

    /// Whether it may be given work.
    #[inline]
    pub fn is_well(self) -> bool {
        self == Self::Well
    }

    /// Whether it may be given work again one day.
    pub fn may_return(self) -> bool {
        !matches!(self, Self::Gone { .. })
    }

    /// What is wrong with it.
    pub fn ailment(self) -> Option<Ailment> {
        match self {
            Self::Well => None,
            Self::Quarantined { ailment, .. } | Self::Gone { ailment } => Some(ailment),
        }
    }

    /// The health after a fault, the `in_a_row`-th without a result in between: the first try comes at once, later ones
    /// wait twice as long each time; from the [`FAULTS_MAX`]-th fault on the first try waits too, longer with each.
    #[must_use]
    pub fn after_fault(self, ailment: Ailment, now: Moment, in_a_row: u32) -> Self {
        let wait = in_a_row.checked_sub(FAULTS_MAX).map_or(Nanos::ZERO, pause);
        match self {
            Self::Well => Self::Quarantined { ailment, retry_at: Some(now + wait), tries: 0 },
            unwell => unwell,
        }
    }

    /// The health after a try that failed.
    #[must_use]
    pub fn after_failed_try(self, now: Moment) -> Self {
        match self {
            Self::Quarantined { ailment, tries, .. } if tries + 1 >= TRIES_MAX => Self::Gone { ailment },
            Self::Quarantined { ailment, tries, .. } => {
                Self::Quarantined { ailment, retry_at: Some(now + pause(tries)), tries: tries + 1 }
            }
            other => other,
        }
    }

    /// Starts a try if one is due; says whether it did.
    pub fn begin_try(&mut self, now: Moment) -> bool {
        match self {
            Self::Quarantined { retry_at: due @ Some(_), .. } if due.is_some_and(|at| at <= now) => {
                *due = None;
                true
            }
            _ => false,
        }
    }

    /// When the next try is due.
    pub fn retry_at(self) -> Option<Moment> {
        match self {
            Self::Quarantined { retry_at, .. } => retry_at,
            _ => None,
        }
    }
}

/// Twice as long each time.
fn pause(times: u32) -> Nanos {
    Nanos(RETRY_MIN.0.saturating_mul(1 << times.min(20))).min(RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_come_at_once_then_ever_later_then_stop() {
        let mut now = Moment(1_000);
        let mut health = Health::Well.after_fault(Ailment::Lost, now, 1);
        assert!(health.begin_try(now), "the first try is at once");
        assert!(!health.begin_try(now), "one try at a time");
        let mut waits = Vec::new();
        while health.may_return() {
            health = health.after_failed_try(now);
            if let Some(at) = health.retry_at() {
                waits.push(at.since(now));
                now = at;
                assert!(health.begin_try(now));
            }
        }
        assert_eq!(waits[0], RETRY_MIN);
        assert!(waits.is_sorted() && waits.last() == Some(&RETRY_MAX));
        assert_eq!(waits.len() as u32 + 1, TRIES_MAX);
    }

    #[test]
    fn a_device_that_passes_its_check_and_fails_again_waits_ever_longer() {
        let now = Moment(1_000);
        let waits = (1..=20).map(|in_a_row| Health::Well.after_fault(Ailment::Lost, now, in_a_row).retry_at());
        let waits: Vec<Nanos> = waits.map(|at| at.expect("it is tried again").since(now)).collect();
        assert_eq!(waits[..4], [Nanos::ZERO, Nanos::ZERO, RETRY_MIN, Nanos(2 * RETRY_MIN.0)]);
        assert!(waits.is_sorted() && waits.last() == Some(&RETRY_MAX));
    }
}
