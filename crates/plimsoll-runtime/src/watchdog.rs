//! The watchdog: one thread that does what is due when no worker would notice.
//! Deadlines, stalls, devices to reopen, memory to ask for, sets to plan again. Never runs a task, and never calls a device.
//! Invariant: with nothing to do it sleeps without a time limit and uses no processor time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::scheduler::Order;

use crate::monitor::Guard;
use crate::opening::{self, How};
use crate::shared::{MEMORY_AGE_MAX, Shared, Stage, State};

/// Attends until the orchestrator closes, whatever panics on the way.
pub(crate) fn attend(shared: &Arc<Shared>) {
    while catch_unwind(AssertUnwindSafe(|| attend_until_closing(shared))).is_err() {}
}

fn attend_until_closing(shared: &Arc<Shared>) {
    while let Some(orders) = wait_for_orders(shared) {
        for order in orders {
            match order {
                Order::Reopen(device) => opening::begin(shared, device, How::Again),
                Order::Plan => plan_again(shared),
            }
        }
    }
}

/// Plans sets of which more is known by now. The search is done without the lock: meanwhile tasks go by the plan they had.
fn plan_again(shared: &Shared) {
    loop {
        let mut state = shared.lock();
        let outlook = state.scheduler.next_outlook(shared.now());
        shared.release(state);
        let Some(outlook) = outlook else { return };
        if let Some(plan) = outlook.plan() {
            let mut state = shared.lock();
            state.scheduler.follow(shared.now(), plan);
            shared.release(state);
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
        let busy = state.scheduler.unsettled() > 0 || state.scheduler.needs_readings();
        // While there is work, memory is read over and over.
        let memory = busy.then(|| now + shared.memory_due(now));
        let due = state.scheduler.next_tick().into_iter().chain(limit).chain(memory).min();
        let nap = due.map(|due| due.since(now));
        state.watchdog_dozes = nap.is_none_or(|nap| nap > MEMORY_AGE_MAX);
        state = shared.release_to_wait(state, shared.watchdog_condvar(), nap.map(Duration::from));
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
