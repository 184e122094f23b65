//! The watchdog: one thread that does what is due when no worker would notice.
//! Deadlines, stalls, devices to reopen, memory to read again. Never runs a task.
//! Invariant: with nothing to do it sleeps without a time limit and uses no processor time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_core::scheduler::Order;
use plimsoll_core::{DeviceId, Fault};

use crate::device::Device;
use crate::monitor::Guard;
use crate::probe::check;
use crate::shared::{Shared, Stage, State};

/// How often memory is read and stalls are looked for while there is work.
const ROUND: Duration = Duration::from_millis(250);

/// Attends until the orchestrator closes, whatever panics on the way: a device's own code may.
pub(crate) fn attend(shared: &Arc<Shared>) {
    while catch_unwind(AssertUnwindSafe(|| attend_until_closing(shared))).is_err() {}
}

fn attend_until_closing(shared: &Arc<Shared>) {
    loop {
        let orders = match wait_for_orders(shared) {
            Some(orders) => orders,
            None => return,
        };
        for Order::Reopen(device) in orders {
            reopen_aside(shared, device);
        }
        shared.refresh_memory();
    }
}

/// Sleeps and ticks until there are orders or it is time to read memory; `None` when the orchestrator closes.
fn wait_for_orders(shared: &Shared) -> Option<Vec<Order>> {
    let mut state = shared.lock();
    loop {
        if state.stage == Stage::Closing {
            shared.release(state);
            return None;
        }
        let now = shared.now();
        state.scheduler.tick(now);
        let due = state.scheduler.next_tick();
        let orders = take_orders(&mut state);
        let busy = state.scheduler.unsettled() > 0;
        if !orders.is_empty() {
            shared.release(state);
            return Some(orders);
        }
        let until_due = due.map(|due| Duration::from(due.since(now)));
        let nap = if busy { Some(until_due.map_or(ROUND, |due| due.min(ROUND))) } else { until_due };
        state.watchdog_dozes = nap.is_none_or(|nap| nap > ROUND);
        state = shared.release_to_wait(state, shared.watchdog_condvar(), nap);
        state.watchdog_dozes = false;
        if busy && state.orders.is_empty() {
            shared.release(state);
            shared.refresh_memory();
            state = shared.lock();
        }
    }
}

fn take_orders(state: &mut Guard<'_, State>) -> Vec<Order> {
    let mut orders = std::mem::take(&mut state.orders);
    orders.extend(state.scheduler.drain_orders());
    orders
}

/// A driver may take long, or for ever: deadlines and other devices do not wait for it.
fn reopen_aside(shared: &Arc<Shared>, device: DeviceId) {
    let there = Arc::clone(shared);
    let aside = std::thread::Builder::new().name(format!("plimsoll-reopen-{}", device.0));
    if aside.spawn(move || reopen(&there, device)).is_err() {
        reopen(shared, device);
    }
}

/// Brings a device back and lets it prove itself. A device whose own code panics did not come back.
fn reopen(shared: &Shared, device: DeviceId) {
    let opened = &shared.devices[device.index()];
    let bring_back = || opened.device.reopen().and_then(|()| prove(&opened.device)).is_ok();
    let is_back = catch_unwind(AssertUnwindSafe(bring_back)).unwrap_or(false);
    opened.generation.fetch_add(1, Ordering::Release);
    let mut state = shared.lock();
    let now = shared.now();
    if is_back {
        state.scheduler.device_opened(now, device);
    } else {
        state.scheduler.device_failed_to_open(now, device);
        // When to try again is the watchdog's to wait for.
        state.notify_one(shared.watchdog_condvar());
    }
    shared.release(state);
}

/// A device counts once it has executed something and the answer was right.
pub(crate) fn prove(device: &Arc<dyn Device>) -> Result<(), Fault> {
    check::known_answer(&mut *device.open_backend()?)
}
