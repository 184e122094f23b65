//! Which slots are busy now, heard from events.
//! Never asks the scheduler. Invariant: time is what events say, so a device's busy time never runs ahead of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll::{Event, Listener, What};
use plimsoll_core::{DeviceId, Moment};

/// Follows what runs where; a handle that is cheap to clone.
#[derive(Clone)]
pub(super) struct Live(Arc<Mutex<Vec<Lane>>>);

/// A device at one moment.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Lane {
    /// Tasks at once.
    pub(super) slots: usize,
    /// Tasks that run now.
    pub(super) running: usize,
    /// Seconds of slots that went into tasks, up to the last event.
    pub(super) busy_seconds: f64,
    since: Moment,
}

impl Live {
    pub(super) fn new(slots: impl IntoIterator<Item = usize>) -> Self {
        let lanes = slots.into_iter().map(|slots| Lane { slots: slots.max(1), ..Lane::default() });
        Self(Arc::new(Mutex::new(lanes.collect())))
    }

    /// The half that hears events.
    pub(super) fn listener(&self) -> impl Listener + use<> {
        let live = self.clone();
        move |events: &[Event]| {
            let mut lanes = live.lanes();
            for event in events {
                match event.what {
                    What::Started { device, .. } => change(&mut lanes, device, event.at, |lane| lane.running += 1),
                    What::Ran { device, .. } | What::AttemptFailed { device, .. } => {
                        change(&mut lanes, device, event.at, |lane| lane.running = lane.running.saturating_sub(1));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Every device as it stands.
    pub(super) fn now(&self) -> Vec<Lane> {
        self.lanes().clone()
    }

    fn lanes(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn change(lanes: &mut [Lane], device: DeviceId, at: Moment, how: impl FnOnce(&mut Lane)) {
    let Some(lane) = lanes.get_mut(device.index()) else { return };
    lane.busy_seconds += at.since(lane.since).as_secs_f64() * lane.running as f64;
    lane.since = lane.since.max(at);
    how(lane);
}
