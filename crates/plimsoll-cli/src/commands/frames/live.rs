//! Which slots are busy now, heard from events.
//! Never asks the scheduler.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use plimsoll::{Event, Listener, What};
use plimsoll_core::DeviceId;

/// Follows what runs where; a handle that is cheap to clone.
#[derive(Clone)]
pub(super) struct Live(Arc<Mutex<Vec<Lane>>>);

/// A device at one moment.
#[derive(Copy, Clone, Debug)]
pub(super) struct Lane {
    /// Tasks at once, as things stand.
    pub(super) slots: usize,
    /// Tasks that run now.
    pub(super) running: usize,
    /// Seconds of slots that went into tasks.
    pub(super) busy_seconds: f64,
    counted: Instant,
}

impl Live {
    pub(super) fn new(slots: impl IntoIterator<Item = usize>) -> Self {
        let idle = |slots: usize| Lane { slots: slots.max(1), running: 0, busy_seconds: 0.0, counted: Instant::now() };
        let lanes = slots.into_iter().map(idle);
        Self(Arc::new(Mutex::new(lanes.collect())))
    }

    /// The half that hears events.
    pub(super) fn listener(&self) -> impl Listener + use<> {
        let live = self.clone();
        move |events: &[Event]| {
            let mut lanes = live.lanes();
            for event in events {
                match event.what {
                    What::Started { device, .. } => change(&mut lanes, device, |lane| lane.running += 1),
                    What::Ran { device, .. } | What::AttemptFailed { device, .. } | What::PutBack { device, .. } => {
                        change(&mut lanes, device, |lane| lane.running = lane.running.saturating_sub(1));
                    }
                    What::WidthChanged { device, slots } => {
                        change(&mut lanes, device, |lane| lane.slots = usize::from(slots).max(1));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Every device as it stands.
    pub(super) fn now(&self) -> Vec<Lane> {
        let mut lanes = self.lanes();
        lanes.iter_mut().for_each(Lane::count);
        lanes.clone()
    }

    fn lanes(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn change(lanes: &mut [Lane], device: DeviceId, how: impl FnOnce(&mut Lane)) {
    if let Some(lane) = lanes.get_mut(device.index()) {
        lane.count();
        how(lane);
    }
}

impl Lane {
    /// Counts the time up to now.
    fn count(&mut self) {
        let now = Instant::now();
        self.busy_seconds += now.duration_since(self.counted).as_secs_f64() * self.running as f64;
        self.counted = now;
    }
}
