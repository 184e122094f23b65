//! The watchdog: one thread that does what is due when no worker would notice.
//! Deadlines, stalls, devices to reopen, memory to ask for. Never runs a task, and never calls a device.
//! Invariant: with nothing to do it sleeps without a time limit and uses no processor time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::scheduler::Order;

use crate::monitor::Guard;
use crate::opening::{self, How};
use crate::shared::{Shared, Stage, State};

/// How often readings of memory are asked for and stalls are looked for while there is work.
const ROUND: Duration = Duration::from_millis(250);

/// Attends until the orchestrator closes, whatever panics on the way.
pub(crate) fn attend(shared: &Arc<Shared>) {
    while catch_unwind(AssertUnwindSafe(|| attend_until_closing(shared))).is_err() {}
}

fn attend_until_closing(shared: &Arc<Shared>) {
    while let Some(orders) = wait_for_orders(shared) {
        for Order::Reopen(device) in orders {
            opening::begin(shared, device, How::Again);
        }
    }
}

/// Sleeps and ticks until there are orders; `None` when the orchestrator closes.
fn wait_for_orders(shared: &Shared) -> Option<Vec<Order>> {
    let mut state = shared.lock();
    loop {
        if state.stage == Stage::Closing {
            shared.release(state);
            return None;
        }
        let now = shared.now();
        let limit = opening::pass_limits(shared, &mut state, now);
        state.scheduler.tick(now);
        let orders = take_orders(&mut state);
        if !orders.is_empty() {
            shared.release(state);
            return Some(orders);
        }
        let due = state.scheduler.next_tick().into_iter().chain(limit).min();
        let until_due = due.map(|due| Duration::from(due.since(now)));
        let busy = state.scheduler.unsettled() > 0;
        let nap = if busy { Some(until_due.map_or(ROUND, |due| due.min(ROUND))) } else { until_due };
        state.watchdog_dozes = nap.is_none_or(|nap| nap > ROUND);
        state = shared.release_to_wait(state, shared.watchdog_condvar(), nap);
        state.watchdog_dozes = false;
        if busy && state.orders.is_empty() {
            shared.release(state);
            shared.ask_for_memory();
            state = shared.lock();
        }
    }
}

fn take_orders(state: &mut Guard<'_, State>) -> Vec<Order> {
    let mut orders = std::mem::take(&mut state.orders);
    orders.extend(state.scheduler.drain_orders());
    orders
}
