//! How far along the work is, for a progress bar to poll.
//! Never draws anything and never reads a clock: time is what the events say, so a figure is as old as the last event.
//! Invariant: keeps at most [`SAMPLES_MAX`] samples, however long the work takes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use plimsoll_core::event::{End, Event, What};
use plimsoll_core::{Moment, Nanos};
use serde::Serialize;

use crate::shared::Listener;
use crate::sync::{Mutex, lock};

/// Samples that the rate is taken from.
const SAMPLES_MAX: usize = 64;
/// Time between two samples: the rate looks back over 64 of these, about 16 seconds, so that a change of pace shows
/// soon and a single slow task does not make the bar jump.
const SAMPLE_EVERY: Nanos = Nanos::millis(250);

/// Follows how far along the work is; a handle that is cheap to clone.
///
/// ```
/// # mod plimsoll { pub use plimsoll_core::*; pub use plimsoll_runtime::*; }
/// use plimsoll::{Orchestrator, Shutdown, Task, telemetry::Progress, workload};
/// let progress = Progress::new();
/// progress.expect_total(3);
/// let orchestrator = Orchestrator::builder().cpu(1).listener(progress.listener()).build();
/// let square = orchestrator.register(workload::function("square", |n: &u64| Ok::<_, std::io::Error>(n * n)));
/// orchestrator.run_all(&square, (0..3).map(Task::new)).for_each(drop);
/// orchestrator.shutdown(Shutdown::Cancel);
/// let now = progress.now();
/// assert_eq!((now.done, now.total, now.share()), (3, Some(3), Some(1.0)));
/// ```
#[derive(Clone, Default)]
pub struct Progress(Arc<Mutex<Pace>>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl Progress {
    /// Nothing done, total unknown.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many tasks there will be. A hint: if more are submitted, the total grows with them.
    pub fn expect_total(&self, tasks: u64) {
        lock(&self.0).total = Some(tasks);
    }

    /// The half that hears events, for `Builder::listener`.
    pub fn listener(&self) -> impl Listener + use<> {
        let pace = Arc::clone(&self.0);
        move |events: &[Event]| {
            let mut pace = lock(&pace);
            events.iter().for_each(|event| pace.hear(event));
        }
    }

    /// How far along it is.
    pub fn now(&self) -> ProgressNow {
        lock(&self.0).now()
    }
}

/// How far along the work was at the last event.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProgressNow {
    /// Tasks taken in so far.
    pub submitted: u64,
    /// Tasks that ended with a result.
    pub done: u64,
    /// Tasks that failed or whose deadline passed.
    pub failed: u64,
    /// Tasks stopped by the caller.
    pub cancelled: u64,
    /// How many there will be, if that is known.
    pub total: Option<u64>,
    /// From the first event to the last.
    pub elapsed: Nanos,
    /// Tasks that ended per second, lately.
    pub rate: Option<f64>,
    /// How long the rest takes at this rate.
    pub eta: Option<Nanos>,
}

impl ProgressNow {
    /// Tasks that ended, however they did.
    pub fn ended(&self) -> u64 {
        self.done + self.failed + self.cancelled
    }

    /// The share of the total that has ended, from 0 to 1; `None` while the total is unknown.
    pub fn share(&self) -> Option<f64> {
        let total = self.total?;
        Some(if total == 0 { 1.0 } else { (self.ended() as f64 / total as f64).min(1.0) })
    }
}

#[derive(Default)]
struct Pace {
    submitted: u64,
    done: u64,
    failed: u64,
    cancelled: u64,
    total: Option<u64>,
    first: Option<Moment>,
    latest: Moment,
    /// How many had ended at some moments, oldest first.
    samples: VecDeque<(Moment, u64)>,
}

impl Pace {
    fn hear(&mut self, event: &Event) {
        match event.what {
            What::Submitted { .. } => self.submitted += 1,
            What::Ended { end, .. } => self.ended(end),
            // What goes on before the first task is no part of its pace.
            _ if self.first.is_none() => return,
            _ => {}
        }
        self.first = Some(self.first.map_or(event.at, |first| first.min(event.at)));
        self.latest = self.latest.max(event.at);
        self.sample();
    }

    fn ended(&mut self, end: End) {
        match end {
            End::Done => self.done += 1,
            End::Failed | End::DeadlinePassed => self.failed += 1,
            End::Cancelled => self.cancelled += 1,
        }
    }

    fn sample(&mut self) {
        let due = self.samples.back().is_none_or(|(at, _)| self.latest.since(*at) >= SAMPLE_EVERY);
        if !due {
            return;
        }
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back((self.latest, self.done + self.failed + self.cancelled));
    }

    fn now(&self) -> ProgressNow {
        let Self { submitted, done, failed, cancelled, .. } = *self;
        let total = self.total.map(|total| total.max(submitted));
        let elapsed = self.latest.since(self.first.unwrap_or(self.latest));
        let rate = self.rate();
        let left = total.map(|total| total.saturating_sub(done + failed + cancelled));
        let eta = match (left, rate) {
            (Some(0), _) => Some(Nanos::ZERO),
            (Some(left), Some(rate)) if rate > 0.0 => Some(Nanos::seconds(1).scaled(left as f64 / rate)),
            _ => None,
        };
        ProgressNow { submitted, done, failed, cancelled, total, elapsed, rate, eta }
    }

    fn rate(&self) -> Option<f64> {
        let (since, before) = *self.samples.front()?;
        let span = self.latest.since(since).as_secs_f64();
        let ended = self.done + self.failed + self.cancelled - before;
        (span > 0.0).then(|| ended as f64 / span)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::{DeviceId, TaskId, WorkloadId};

    use super::*;

    const TASK: TaskId = TaskId(1);

    fn submitted(at: Nanos) -> Event {
        Event { at: Moment(at.0), what: What::Submitted { task: TASK, workload: WorkloadId(0), units: 1 } }
    }

    fn ended(at: Nanos, end: End) -> Event {
        Event { at: Moment(at.0), what: What::Ended { task: TASK, end } }
    }

    fn after(total: Option<u64>, events: &[Event]) -> ProgressNow {
        let progress = Progress::new();
        total.into_iter().for_each(|total| progress.expect_total(total));
        progress.listener().hear(events);
        progress.now()
    }

    #[test]
    fn nothing_is_known_before_the_first_task() {
        let opened = Event { at: Moment(9), what: What::Returned { device: DeviceId(0) } };
        assert_eq!(after(None, &[opened]), ProgressNow::default());
    }

    #[test]
    fn the_rest_takes_as_long_as_the_pace_says() {
        let mut events = vec![submitted(Nanos::seconds(1))];
        events.extend((1..=10).map(|n| ended(Nanos::seconds(1) + Nanos::millis(100 * n), End::Done)));
        let now = after(Some(40), &events);
        assert_eq!((now.done, now.total, now.elapsed), (10, Some(40), Nanos::seconds(1)));
        assert_eq!((now.rate, now.eta, now.share()), (Some(10.0), Some(Nanos::seconds(3)), Some(0.25)));
    }

    #[test]
    fn an_early_pace_is_forgotten() {
        let slow = (1..=10).map(|n| ended(Nanos::seconds(10 * n), End::Done));
        let fast = (1..=2000).map(|n| ended(Nanos::seconds(100) + Nanos::millis(10 * n), End::Failed));
        let events: Vec<Event> = [submitted(Nanos::ZERO)].into_iter().chain(slow).chain(fast).collect();
        let rate = after(None, &events).rate.expect("much has ended");
        assert!((rate - 100.0).abs() < 1.0, "{rate}");
    }

    #[test]
    fn a_total_that_was_guessed_too_low_grows() {
        let events = [submitted(Nanos(1)), submitted(Nanos(2)), ended(Nanos(3), End::DeadlinePassed)];
        let now = after(Some(1), &events);
        assert_eq!((now.total, now.failed, now.ended(), now.share()), (Some(2), 1, 1, Some(0.5)));
        let all = [events[0], events[1], events[2], ended(Nanos(4), End::Cancelled)];
        assert_eq!(after(Some(1), &all).eta, Some(Nanos::ZERO));
    }
}
