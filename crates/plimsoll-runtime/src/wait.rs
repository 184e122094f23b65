//! How long a caller waits for something: not at all, until a moment, or as long as it takes.
//! Never sleeps itself.

use std::time::{Duration, Instant};

/// The longest that anybody sleeps before it looks again, however long it may wait.
const NAP_MAX: Duration = Duration::from_secs(60);

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Looks once.
    Try,
    /// Looks again until then.
    Until(Instant),
    /// Looks again for ever.
    Forever,
}

impl Wait {
    /// From now on, at most this long. A span beyond what the clock can count is for ever.
    pub(crate) fn at_most(span: Duration) -> Self {
        Instant::now().checked_add(span).map_or(Self::Forever, Self::Until)
    }

    /// How long to sleep before looking again; `None` once there is no time left.
    pub(crate) fn nap(self) -> Option<Duration> {
        let left = match self {
            Self::Try => Duration::ZERO,
            Self::Until(until) => until.saturating_duration_since(Instant::now()),
            Self::Forever => NAP_MAX,
        };
        (!left.is_zero()).then(|| left.min(NAP_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_sleeps_as_long_as_it_may_and_no_longer() {
        assert_eq!(Wait::Try.nap(), None);
        assert_eq!(Wait::at_most(Duration::ZERO).nap(), None);
        assert_eq!(Wait::Until(Instant::now() - Duration::from_secs(1)).nap(), None);
        assert_eq!(Wait::at_most(Duration::MAX), Wait::Forever);
        for long in [Wait::Forever, Wait::at_most(Duration::from_secs(10_000))] {
            assert_eq!(long.nap(), Some(NAP_MAX));
        }
        assert!(Wait::at_most(Duration::from_secs(5)).nap().is_some_and(|nap| nap <= Duration::from_secs(5)));
    }
}
