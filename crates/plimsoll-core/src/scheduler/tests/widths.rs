//! How many slots of a device are used at once: what the scheduler tells when it changes, and when it is asked anew.

use super::*;
use crate::event::{Event, What};

const ONLY: DeviceId = DeviceId(0);

/// A GPU whose width is measured, and more than enough to do.
struct Busy {
    scheduler: Scheduler<Nothing>,
    spec: TaskSpec,
    now: Moment,
}

impl Busy {
    fn new() -> Self {
        let config = Config { lookahead: 0, ..Config::default() };
        let mut scheduler: Scheduler<Nothing> = Scheduler::new(config, Moment::START);
        scheduler.add_device(DeviceSpec { width_first: Some(1), ..exact(DeviceKind::Gpu, 3, 1_000) });
        let spec = spec(&mut scheduler, on_gpu(10));
        scheduler.listen(true);
        scheduler.device_opened(Moment::START, ONLY);
        Self { scheduler, spec, now: Moment::START }
    }

    /// Runs one task after the other, each of ten milliseconds, until another width is in use.
    fn run_until_width_changes(&mut self) {
        let before = self.scheduler.width(ONLY);
        for _ in 0..50 {
            while self.scheduler.device(ONLY).queue.len() < 3 {
                self.scheduler.submit(self.now, self.spec.clone(), ()).unwrap();
            }
            self.run_one();
            if self.scheduler.width(ONLY) != before {
                return;
            }
        }
        panic!("no other width was tried");
    }

    fn run_one(&mut self) {
        let run = start(&mut self.scheduler, self.now, ONLY.0);
        self.now = self.now + Nanos::millis(10);
        let measured = Measured { run: Nanos::millis(10), ..Measured::default() };
        self.scheduler.settle(self.now, run.run, Outcome { result: Ok(()), session: Some(()), measured });
    }

    /// The widths that were told since the last call.
    fn told(&mut self) -> Vec<u16> {
        let width = |event: &Event| match event.what {
            What::WidthChanged { device: ONLY, slots } => Some(slots),
            _ => None,
        };
        self.scheduler.drain_events().iter().filter_map(width).collect()
    }
}

/// A device that was lost is another one when it is back: what was being tried on it is given up.
#[test]
fn a_device_that_was_opened_again_is_measured_anew() {
    let mut busy = Busy::new();
    assert_eq!(busy.told(), [], "opening changes nothing");
    busy.run_until_width_changes();
    assert_eq!((busy.scheduler.width(ONLY), busy.told()), (2, vec![2]));
    busy.scheduler.device_faulted(busy.now, ONLY, crate::Ailment::Lost);
    busy.scheduler.device_opened(busy.now, ONLY);
    assert_eq!((busy.scheduler.width(ONLY), busy.told()), (1, vec![1]));
    busy.run_until_width_changes();
    assert_eq!(busy.told(), [2]);
}

#[test]
fn a_device_whose_queue_is_empty_is_not_measured() {
    let mut busy = Busy::new();
    for _ in 0..100 {
        busy.scheduler.submit(busy.now, busy.spec.clone(), ()).unwrap();
        busy.run_one();
    }
    assert_eq!((busy.scheduler.width(ONLY), busy.told()), (1, vec![]));
}

/// The new slot has to be told, and what it could have done before does not count against the device.
#[test]
fn a_slot_that_comes_into_use_is_woken_and_was_not_idle_before() {
    let mut busy = Busy::new();
    busy.run_until_width_changes();
    let share = busy.scheduler.report(busy.now, ONLY).busy_share;
    assert!(share > 0.99, "the one slot that was in use was always busy: {share}");
    busy.scheduler.drain_wakes();
    busy.scheduler.device_faulted(busy.now, ONLY, crate::Ailment::Lost);
    busy.scheduler.device_opened(busy.now, ONLY);
    assert!(busy.scheduler.drain_wakes().contains(ONLY));
}
