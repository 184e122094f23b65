//! What each device did for one stream, counted from the reports of its frames.
//! Other work on the same devices does not show. Of the scheduler it asks only how many slots are in use.
//! Invariant: on every device, dispatched = completed + failed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use plimsoll_core::histogram::Histogram;
use plimsoll_core::scheduler::Report;
use plimsoll_core::window::StreamDevice;
use plimsoll_core::{Attempt, DeviceId, Nanos, Setback, TaskError};
use serde::Serialize;

use super::distributor::Pool;

/// Weight of the latest frame in the moving average of what a frame takes.
const PACE_ALPHA: f64 = 0.1;

/// The figures of a stream, on every device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrameStats {
    /// Frames delivered.
    pub frames: u64,
    /// From the start of the stream to its end, or to now.
    pub elapsed_seconds: f64,
    /// Frames delivered per second.
    pub frames_per_second: f64,
    /// Bytes of the frames that went in.
    pub bytes_in: u64,
    /// Bytes of the frames that came out.
    pub bytes_out: u64,
    /// Each device that might have worked on frames.
    pub devices: Vec<DeviceFrames>,
}

/// What one device did for a stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceFrames {
    /// What it is called.
    pub device: String,
    /// Attempts at frames that ended, well or not.
    pub dispatched: u64,
    /// Attempts that gave the frame.
    pub completed: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Attempts at frames that had failed before, here or elsewhere.
    pub retried: u64,
    /// Frames per second of the stream that it gave.
    pub frames_per_second: f64,
    /// Half of its frames took at most this many milliseconds, from start to end.
    pub p50_ms: Option<f64>,
    /// 95 % did.
    pub p95_ms: Option<f64>,
    /// 99 % did.
    pub p99_ms: Option<f64>,
    /// The share of the time of its slots in use that went into frames while the stream ran, from 0 to 1.
    pub busy_share: f64,
    /// Bytes of the frames that went in.
    pub bytes_in: u64,
    /// Bytes of the frames that came out.
    pub bytes_out: u64,
    /// Frames that it may work on at once.
    pub slots: usize,
    /// How many of its slots are used at once: what was measured to be best, for a device that leaves that to be measured.
    pub slots_used: usize,
}

/// Follows a stream while it runs; a handle that is cheap to clone.
#[derive(Clone)]
pub struct FrameMeter {
    counts: Arc<Mutex<Counts>>,
    /// Gone, and with it the devices, once the distributor and all its streams are.
    pool: Weak<Pool>,
}

impl std::fmt::Debug for FrameMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameMeter").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Counts {
    started: Instant,
    /// How long it ran, once it has ended.
    ran: Option<Duration>,
    devices: Vec<Counted>,
}

/// A device that may work on frames.
#[derive(Clone, Debug)]
pub(super) struct Metered {
    pub(super) id: DeviceId,
    pub(super) name: String,
    pub(super) slots: usize,
}

#[derive(Debug)]
struct Counted {
    device: Metered,
    completed: u64,
    failed: u64,
    retried: u64,
    busy: Nanos,
    took: Histogram,
    /// What a frame takes lately.
    pace: Option<Nanos>,
    bytes_in: u64,
    bytes_out: u64,
    slots_used: usize,
}

impl FrameMeter {
    pub(super) fn start(devices: impl IntoIterator<Item = Metered>, pool: Weak<Pool>) -> Self {
        let devices = devices.into_iter().map(Counted::new).collect();
        let counts = Arc::new(Mutex::new(Counts { started: Instant::now(), ran: None, devices }));
        Self { counts, pool }
    }

    /// The figures as they stand.
    pub fn stats(&self) -> FrameStats {
        let reports = self.pool.upgrade().map(|pool| pool.orchestrator.reports()).unwrap_or_default();
        let mut counts = self.counts();
        for report in &reports {
            if let Some(counted) = counts.device(report.device) {
                counted.slots_used = report.figures.slots_used;
            }
        }
        counts.stats()
    }

    /// Counts a frame that was delivered. `first` is what was done to it before it was looked at among others.
    pub(super) fn delivered(&self, report: &Report, first: Option<&Report>, bytes_in: usize, bytes_out: usize) {
        let mut counts = self.counts();
        let mut took = Nanos::ZERO;
        let mut tried_before = false;
        for part in first.into_iter().chain([report]) {
            tried_before |= counts.failed(&part.attempts);
            let busy = part.bring + part.open + part.run;
            took += busy;
            if let Some(device) = counts.device(part.device) {
                device.busy += busy;
            }
        }
        let Some(device) = counts.device(report.device) else { return };
        device.completed += 1;
        device.retried += u64::from(tried_before);
        device.took.record(took);
        device.pace = Some(device.pace.map_or(took, |pace| pace.scaled(1.0 - PACE_ALPHA) + took.scaled(PACE_ALPHA)));
        device.bytes_in += bytes_in as u64;
        device.bytes_out += bytes_out as u64;
    }

    /// The devices and how long a frame takes on each, as far as that is known.
    pub(super) fn paces(&self) -> Vec<StreamDevice> {
        let pace = |counted: &Counted| StreamDevice { slots: counted.device.slots, frame: counted.pace };
        self.counts().devices.iter().map(pace).collect()
    }

    /// Counts the attempts at a frame that no device could give.
    pub(super) fn given_up(&self, error: &TaskError) {
        if let TaskError::Exhausted { attempts } | TaskError::NeverFits { attempts, .. } = error {
            self.counts().failed(attempts);
        }
    }

    /// The stream has ended; time no longer counts.
    pub(super) fn end(&self) {
        let mut counts = self.counts();
        counts.ran = counts.ran.or_else(|| Some(counts.started.elapsed()));
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn device(&mut self, id: DeviceId) -> Option<&mut Counted> {
        self.devices.iter_mut().find(|counted| counted.device.id == id)
    }

    /// Counts the attempts that failed; says whether there were any.
    fn failed(&mut self, attempts: &[Attempt]) -> bool {
        let mut tried_before = false;
        for attempt in attempts.iter().filter(|attempt| !matches!(attempt.setback, Setback::Refused(_))) {
            if let Some(device) = self.device(attempt.device) {
                device.failed += 1;
                device.retried += u64::from(tried_before);
            }
            tried_before = true;
        }
        tried_before
    }

    fn stats(&self) -> FrameStats {
        let seconds = self.ran.unwrap_or_else(|| self.started.elapsed()).as_secs_f64().max(1e-9);
        let devices: Vec<DeviceFrames> = self.devices.iter().map(|counted| counted.figures(seconds)).collect();
        let sum = |of: fn(&DeviceFrames) -> u64| devices.iter().map(of).sum();
        let frames: u64 = sum(|device| device.completed);
        FrameStats {
            frames,
            elapsed_seconds: seconds,
            frames_per_second: frames as f64 / seconds,
            bytes_in: sum(|device| device.bytes_in),
            bytes_out: sum(|device| device.bytes_out),
            devices,
        }
    }
}

impl Counted {
    fn new(device: Metered) -> Self {
        Self {
            slots_used: device.slots,
            device,
            completed: 0,
            failed: 0,
            retried: 0,
            busy: Nanos::ZERO,
            took: Histogram::default(),
            pace: None,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    fn figures(&self, seconds: f64) -> DeviceFrames {
        let percentile = |share| self.took.percentile(share).map(|span| span.as_secs_f64() * 1e3);
        let slots_used = self.slots_used.max(1);
        DeviceFrames {
            device: self.device.name.clone(),
            dispatched: self.completed + self.failed,
            completed: self.completed,
            failed: self.failed,
            retried: self.retried,
            frames_per_second: self.completed as f64 / seconds,
            p50_ms: percentile(0.50),
            p95_ms: percentile(0.95),
            p99_ms: percentile(0.99),
            busy_share: (self.busy.as_secs_f64() / seconds / slots_used as f64).min(1.0),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            slots: self.device.slots.max(1),
            slots_used,
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::{Bytes, Fault};

    use super::*;

    fn report(device: u16, attempts: Vec<Attempt>) -> Report {
        let (queued, bring, open, run) = (Nanos(1), Nanos::millis(1), Nanos::millis(2), Nanos::millis(3));
        Report {
            device: DeviceId(device),
            rung: "cpu",
            attempts,
            queued,
            bring,
            open,
            run,
            bytes_predicted: Bytes::ZERO,
            bytes_peak: None,
            reference_hits: 0,
            reference_misses: 0,
            why: Vec::new(),
        }
    }

    #[test]
    fn a_frame_that_moved_counts_on_both_devices() {
        let device = |id| Metered { id: DeviceId(id), name: format!("d{id}"), slots: 1 };
        let meter = FrameMeter::start([device(0), device(1)], Weak::new());
        let lost = Setback::Failed(Fault::DeviceLost { detail: String::new() });
        let attempt = Attempt { rung: "gpu", device: DeviceId(1), setback: lost };
        meter.delivered(&report(0, vec![attempt]), None, 10, 5);
        meter.delivered(&report(0, Vec::new()), None, 10, 5);
        meter.end();
        let stats = meter.stats();
        let [first, second] = &stats.devices[..] else { panic!("{stats:?}") };
        assert_eq!((first.dispatched, first.completed, first.failed, first.retried), (2, 2, 0, 1));
        assert_eq!((second.dispatched, second.completed, second.failed, second.retried), (1, 0, 1, 0));
        assert_eq!((stats.frames, stats.bytes_in, stats.bytes_out), (2, 20, 10));
        assert!(first.p50_ms.is_some_and(|took| (6.0..6.4).contains(&took)), "{:?}", first.p50_ms);
        assert_eq!(meter.stats(), stats, "an ended stream's figures stay");
    }
}
