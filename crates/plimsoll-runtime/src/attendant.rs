//! The attendant: one thread that does what is due when no worker would notice.
//! Deadlines, stalls, devices to reopen, memory to read again. Never runs a task.
//! Invariant: with nothing to do it sleeps without a time limit and uses no processor time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_core::scheduler::Order;
use plimsoll_core::{DeviceId, Fault};

use crate::bells::Held;
use crate::device::Device;
use crate::probe::check;
use crate::shared::{Board, Shared, Stage};

/// How often memory is read and stalls are looked for while there is work.
const ROUND: Duration = Duration::from_millis(250);

pub(crate) fn attend(shared: &Shared) {
    loop {
        let orders = match wait_for_orders(shared) {
            Some(orders) => orders,
            None => return,
        };
        for Order::Reopen(device) in orders {
            reopen(shared, device);
        }
        shared.refresh_memory();
    }
}

/// Sleeps and ticks until there are orders or it is time to read memory; `None` when the orchestrator closes.
fn wait_for_orders(shared: &Shared) -> Option<Vec<Order>> {
    let mut board = shared.lock();
    loop {
        if board.stage == Stage::Closing {
            shared.release(board);
            return None;
        }
        let now = shared.now();
        board.scheduler.tick(now);
        let due = board.scheduler.next_tick();
        let orders = take_orders(&mut board);
        let busy = board.scheduler.unsettled() > 0;
        if !orders.is_empty() {
            shared.release(board);
            return Some(orders);
        }
        let until_due = due.map(|due| Duration::from(due.since(now)));
        let nap = if busy { Some(until_due.map_or(ROUND, |due| due.min(ROUND))) } else { until_due };
        board.attendant_dozes = nap.is_none_or(|nap| nap > ROUND);
        board = shared.release_to_sleep(board, shared.attendant_bell(), nap);
        board.attendant_dozes = false;
        if busy && board.orders.is_empty() {
            shared.release(board);
            shared.refresh_memory();
            board = shared.lock();
        }
    }
}

fn take_orders(board: &mut Held<'_, Board>) -> Vec<Order> {
    let mut orders = std::mem::take(&mut board.orders);
    orders.extend(board.scheduler.drain_orders());
    orders
}

/// Brings a device back and lets it prove itself.
fn reopen(shared: &Shared, device: DeviceId) {
    let opened = &shared.devices[device.index()];
    let result = opened.device.reopen().and_then(|()| prove(&opened.device));
    opened.generation.fetch_add(1, Ordering::Release);
    let mut board = shared.lock();
    let now = shared.now();
    match result {
        Ok(()) => board.scheduler.device_opened(now, device),
        Err(_) => board.scheduler.device_failed_to_open(now, device),
    }
    shared.release(board);
}

/// A device counts once it has executed something and the answer was right.
pub(crate) fn prove(device: &Arc<dyn Device>) -> Result<(), Fault> {
    check::known_answer(&mut *device.open_slot()?)
}
