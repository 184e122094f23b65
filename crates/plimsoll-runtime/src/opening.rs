//! Opens devices and lets them prove themselves: presence is not working.
//! Each try has a thread of its own and a time limit, so that a driver that hangs delays neither other devices nor the
//! caller; what it answers in the end still counts. A device that answers at once needs neither.
//! Invariant: two tries of one device never run at once, and the scheduler hears of each try once: that the device is
//! open, that it is not, or that it takes too long. A device that opens after it took too long is open all the same.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_core::{DeviceId, Fault, Moment};

use crate::device::Device;
use crate::monitor::Guard;
use crate::probe::check;
use crate::shared::{Shared, State};

/// How long a try may take before its device counts as not opened. Drivers that wake a card up and compile a kernel for
/// the first time were seen to take several seconds; what takes longer than this hangs.
pub(crate) const OPEN_WAIT_MAX: Duration = Duration::from_secs(30);

/// Where the try to open a device is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Try {
    /// None is under way.
    Idle,
    /// It may take until then.
    UnderWay { until: Moment },
    /// It has taken too long, and has not come back.
    Overdue,
}

/// What has to be done to open a device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It was never used.
    First,
    /// It was lost, or answered wrongly or not at all.
    Again,
}

/// Starts a try.
pub(crate) fn begin(shared: &Arc<Shared>, device: DeviceId, how: How) {
    let mut state = shared.lock();
    let now = shared.now();
    if state.scheduler.health(device).is_well() {
        // A try that took too long has opened it meanwhile.
        return shared.release(state);
    }
    if state.tries[device.index()] != Try::Idle {
        // The one before hangs, and so would this one.
        state.scheduler.device_failed_to_open(now, device);
        return shared.release(state);
    }
    state.tries[device.index()] = Try::UnderWay { until: now + shared.open_wait_max.into() };
    let opened = &shared.devices[device.index()];
    let at_once = opened.device.answers_at_once();
    if !at_once {
        // The limit is the watchdog's to keep.
        state.notify_one(shared.watchdog_condvar());
    }
    shared.release(state);
    let there = Arc::downgrade(shared);
    let (reader, at) = (Arc::clone(&opened.memory), Arc::clone(&opened.device));
    let work = move || {
        // A device whose memory nobody knows cannot be given work.
        let open = || reader.wait_for_the_first() && open(&at, how).is_ok();
        // Nor one whose own code panics.
        let is_open = catch_unwind(AssertUnwindSafe(open)).unwrap_or(false);
        if let Some(shared) = there.upgrade() {
            end(&shared, device, how, is_open);
        }
    };
    let aside = std::thread::Builder::new().name(format!("plimsoll-open-{}", device.0));
    if at_once {
        work();
    } else if aside.spawn(work).is_err() {
        end(shared, device, how, false);
    }
}

fn open(device: &Arc<dyn Device>, how: How) -> Result<(), Fault> {
    if how == How::Again {
        device.reopen()?;
    }
    check::known_answer(&mut *device.open_backend()?)
}

fn end(shared: &Shared, device: DeviceId, how: How, is_open: bool) {
    if how == How::Again {
        shared.devices[device.index()].generation.fetch_add(1, Ordering::Release);
    }
    let mut state = shared.lock();
    let now = shared.now();
    let before = std::mem::replace(&mut state.tries[device.index()], Try::Idle);
    match before {
        _ if is_open => state.scheduler.device_opened(now, device),
        // That it failed was said when its time was over.
        Try::Overdue => {}
        _ => state.scheduler.device_failed_to_open(now, device),
    }
    // When to try again is the watchdog's to wait for.
    state.notify_one(shared.watchdog_condvar());
    shared.notify_queue_space(&mut state);
    shared.release(state);
}

/// Tries that have taken too long count as failed; when the next will have.
pub(crate) fn pass_limits(shared: &Shared, state: &mut Guard<'_, State>, now: Moment) -> Option<Moment> {
    let mut next: Option<Moment> = None;
    for at in 0..state.tries.len() {
        match state.tries[at] {
            Try::UnderWay { until } if until <= now => {
                state.tries[at] = Try::Overdue;
                state.scheduler.device_failed_to_open(now, DeviceId(at as u16));
                shared.notify_queue_space(state);
            }
            Try::UnderWay { until } => next = Some(next.map_or(until, |next| next.min(until))),
            Try::Idle | Try::Overdue => {}
        }
    }
    next
}

/// Waits until every device was opened, was not, or takes too long.
pub(crate) fn wait_for_all(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        let now = shared.now();
        let due = pass_limits(shared, &mut state, now);
        if state.tries.iter().all(|each| !matches!(each, Try::UnderWay { .. })) {
            return shared.release(state);
        }
        let left = due.map(|due| Duration::from(due.since(now)));
        state = shared.release_to_wait(state, shared.queue_space_condvar(), left);
    }
}
