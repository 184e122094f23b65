//! Where the slots' time went, and how work reached them, out of the scheduler's events.
//! Free when nobody asks: without a listener the scheduler makes no events.
//! Invariant: what is kept does not grow with the file; there are at most as many runs in the tail as slots.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_core::event::{Event, FaultKind, What};
use plimsoll_core::{DeviceId, Moment, Nanos};
use plimsoll_runtime::Listener;
use serde::Serialize;

/// A handle that is cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Telemetry(Arc<Mutex<Totals>>);

/// What the caller knows and events do not say.
pub(super) struct Frame {
    pub(super) slots: usize,
    pub(super) elapsed_seconds: f64,
    pub(super) administration_seconds: f64,
}

/// Where time went, in seconds of slots, unless it says otherwise. The names of its fields are a promise to other programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Times {
    pub(super) slots: usize,
    /// In the work itself.
    pub(super) compute_seconds: f64,
    /// Opening sessions and bringing what tasks need.
    pub(super) handoff_seconds: f64,
    /// Slots that had nothing to do while more was to come: no input yet, or no room for output.
    pub(super) starved_seconds: f64,
    /// Slots that had nothing to do any more while others still ran.
    pub(super) tail_seconds: f64,
    /// In the scheduler's lock, by a sample of it; part of what is starved.
    pub(super) administration_seconds: f64,
    /// Tasks' time between being ready and being started, all together; no slot's time.
    pub(super) queue_wait_seconds: f64,
    /// Attempts that a device refused or gave back; the work was done elsewhere or later.
    pub(super) refusals: u64,
    /// Tasks that a worker took at once.
    pub(super) batches: u64,
    pub(super) batch_mean: f64,
    pub(super) batch_max: u64,
}

#[derive(Default)]
struct Totals {
    run: Nanos,
    handoff: Nanos,
    waited: Nanos,
    started: u64,
    refusals: u64,
    batches: u64,
    batch_max: u64,
    last_start: Moment,
    last_end: Moment,
    /// Runs that ended after the last start: from when to when.
    tail: Vec<(Moment, Moment)>,
}

impl Telemetry {
    pub(super) fn listener(&self) -> impl Listener + use<> {
        let totals = self.clone();
        move |events: &[Event]| totals.lock().hear(events)
    }

    pub(super) fn times(&self, frame: &Frame) -> Times {
        self.lock().times(frame)
    }

    fn lock(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Totals {
    fn hear(&mut self, events: &[Event]) {
        for event in events {
            self.count(event);
        }
        let device_of = |event: &Event| match event.what {
            What::Started { device, .. } => Some(device),
            _ => None,
        };
        batches(events.iter().map(device_of)).for_each(|size| {
            self.batches += 1;
            self.batch_max = self.batch_max.max(size);
        });
    }

    fn count(&mut self, event: &Event) {
        match event.what {
            What::Started { waited, .. } => {
                self.started += 1;
                self.waited += waited;
                self.last_start = self.last_start.max(event.at);
                let last_start = self.last_start;
                self.tail.retain(|(_, end)| *end > last_start);
            }
            What::Ran { run, open, bring, .. } => {
                self.run += run;
                self.handoff += open + bring;
                self.ended(event.at, run + open + bring);
            }
            What::AttemptFailed { fault, .. } => {
                self.refusals += u64::from(is_refusal(fault));
                self.last_end = self.last_end.max(event.at);
            }
            What::PutBack { .. } => self.refusals += 1,
            _ => {}
        }
    }

    fn ended(&mut self, at: Moment, took: Nanos) {
        self.last_end = self.last_end.max(at);
        if at > self.last_start {
            self.tail.push((Moment(at.0.saturating_sub(took.0)), at));
        }
    }

    fn times(&self, frame: &Frame) -> Times {
        let slots = frame.slots.max(1) as f64;
        let (compute, handoff) = (self.run.as_secs_f64(), self.handoff.as_secs_f64());
        let idle = (frame.elapsed_seconds * slots - compute - handoff).max(0.0);
        let tail = self.tail_seconds(slots).min(idle);
        Times {
            slots: frame.slots,
            compute_seconds: compute,
            handoff_seconds: handoff,
            starved_seconds: idle - tail,
            tail_seconds: tail,
            administration_seconds: frame.administration_seconds,
            queue_wait_seconds: self.waited.as_secs_f64(),
            refusals: self.refusals,
            batches: self.batches,
            batch_mean: self.started as f64 / self.batches.max(1) as f64,
            batch_max: self.batch_max,
        }
    }

    /// All time of slots between the last start and the last end, less what they worked in it.
    fn tail_seconds(&self, slots: f64) -> f64 {
        let worked = self.tail.iter().map(|(from, to)| to.since((*from).max(self.last_start)).as_secs_f64());
        (self.last_end.since(self.last_start).as_secs_f64() * slots - worked.sum::<f64>()).max(0.0)
    }
}

/// Whether a device could not, and not whether the work or the caller would not.
fn is_refusal(fault: FaultKind) -> bool {
    !matches!(fault, FaultKind::Cancelled | FaultKind::Panicked | FaultKind::WorkFailed)
}

/// The lengths of stretches on one device: a worker takes tasks under one lock, and events of one lock come together.
fn batches(devices: impl Iterator<Item = Option<DeviceId>>) -> impl Iterator<Item = u64> {
    let mut sizes: Vec<u64> = Vec::new();
    let mut before = None;
    for device in devices {
        match (device, sizes.last_mut()) {
            (Some(_), Some(size)) if device == before => *size += 1,
            (Some(_), _) => sizes.push(1),
            (None, _) => {}
        }
        before = device;
    }
    sizes.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::{Bytes, TaskId, WorkloadId};

    const CPU: DeviceId = DeviceId(0);
    const SECOND: u64 = 1_000_000_000;

    fn started(at: u64) -> Event {
        let (task, bytes) = (TaskId(0), Bytes(0));
        let waited = Nanos(SECOND / 10);
        let what = What::Started {
            task,
            rung: "cpu",
            device: CPU,
            waited,
            bytes,
            promised: bytes,
            warm: true,
            hits: 0,
            misses: 0,
        };
        Event { at: Moment(at * SECOND), what }
    }

    fn ran(at: u64, seconds: u64) -> Event {
        let what = What::Ran {
            task: TaskId(0),
            workload: WorkloadId(0),
            rung: "cpu",
            device: CPU,
            units: 1,
            bring: Nanos(0),
            open: Nanos(0),
            run: Nanos(seconds * SECOND),
            peak: Bytes(0),
        };
        Event { at: Moment(at * SECOND), what }
    }

    fn failed(fault: FaultKind) -> Event {
        let what = What::AttemptFailed { task: TaskId(0), rung: "cpu", device: CPU, fault };
        Event { at: Moment(0), what }
    }

    fn times(events: &[&[Event]], slots: usize, elapsed_seconds: f64) -> Times {
        let mut totals = Totals::default();
        events.iter().for_each(|events| totals.hear(events));
        totals.times(&Frame { slots, elapsed_seconds, administration_seconds: 0.5 })
    }

    /// Two slots for ten seconds: one runs from 1 to 4 and has nothing until 5; then both run, until 6 and until 9.
    #[test]
    fn every_second_of_a_slot_is_somewhere() {
        let first: &[Event] = &[started(1)];
        let got = times(&[first, &[ran(4, 3)], &[started(5), started(5)], &[ran(6, 1)], &[ran(9, 4)]], 2, 10.0);
        assert_eq!((got.compute_seconds, got.tail_seconds, got.starved_seconds), (8.0, 3.0, 9.0));
        assert_eq!(got.compute_seconds + got.tail_seconds + got.starved_seconds + got.handoff_seconds, 20.0);
        assert!((got.queue_wait_seconds - 0.3).abs() < 1e-9);
    }

    #[test]
    fn batches_are_what_was_started_at_once() {
        let got = times(&[&[started(1), started(1), started(1)], &[started(2)], &[ran(3, 1), started(3)]], 1, 4.0);
        assert_eq!((got.batches, got.batch_max), (3, 3));
        assert!((got.batch_mean - 5.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_a_device_could_not_is_a_refusal_and_what_the_work_did_is_none() {
        let events = [failed(FaultKind::DeviceLost), failed(FaultKind::WorkFailed), failed(FaultKind::Cancelled)];
        assert_eq!(times(&[&events], 1, 1.0).refusals, 1);
    }

    #[test]
    fn the_tail_is_bounded_however_long_the_file() {
        let mut totals = Totals::default();
        for second in 0..1_000 {
            totals.hear(&[started(second), ran(second + 1, 1)]);
        }
        assert!(totals.tail.len() <= 1);
    }
}
