//! The only place that reads the time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_core::{Moment, UnixSeconds};

/// Time since this orchestrator began.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { epoch: Instant::now() }
    }

    pub(crate) fn now(self) -> Moment {
        self.at(Instant::now())
    }

    pub(crate) fn at(self, instant: Instant) -> Moment {
        Moment(u64::try_from(instant.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX))
    }

    /// The instant of a moment; one that the clock cannot count to is now.
    pub(crate) fn instant(self, moment: Moment) -> Instant {
        self.epoch.checked_add(Duration::from_nanos(moment.0)).unwrap_or_else(Instant::now)
    }
}

/// The calendar's time.
pub fn today() -> UnixSeconds {
    UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}
