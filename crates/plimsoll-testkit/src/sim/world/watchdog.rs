//! The runtime's watchdog in virtual time: ticks when something is due, memory readings while there is work, reopening.
//! Never ticks more often than the runtime does, so that a time nobody asked to be called at shows.

use plimsoll_core::scheduler::Order;
use plimsoll_core::{DeviceId, Moment, Nanos};

use super::{Happening, World};

/// How often memory is read, and the watchdog looks around, while there is work.
pub(crate) const ROUND: Nanos = Nanos::millis(200);
/// What a thread that waits for no time at all still needs to wait.
const NAP_MIN: Nanos = Nanos::micros(1);

/// The thread that does what is due when no worker would notice.
#[derive(Clone, Debug)]
pub(super) struct Watchdog {
    /// Grows with every sleep, so that an alarm set for an earlier one does not end a later one.
    sleep: u64,
    /// There was work when it went to sleep.
    was_busy: bool,
    /// It sleeps for longer than a round: work that arrives wakes it.
    dozes: bool,
    orders: Vec<Order>,
    memory_asked_at: Moment,
}

impl Watchdog {
    /// It has looked around and found nothing to do.
    pub(super) fn asleep() -> Self {
        let memory_asked_at = Moment::START;
        Self { sleep: 0, was_busy: false, dozes: true, orders: Vec::new(), memory_asked_at }
    }
}

impl World {
    /// Hands the scheduler's orders to the watchdog, which wakes for them.
    pub(super) fn collect_orders(&mut self) {
        let orders = self.scheduler.drain_orders();
        if !orders.is_empty() {
            self.watchdog.orders.extend(orders);
            self.wake_watchdog();
        }
    }

    /// Work arrived.
    pub(super) fn tell_watchdog_of_work(&mut self, has_deadline: bool) {
        if self.watchdog.dozes || has_deadline {
            self.wake_watchdog();
        }
    }

    pub(super) fn wake_watchdog(&mut self) {
        self.watchdog.sleep += 1;
        self.plan(self.now, Happening::Watchdog(self.watchdog.sleep));
    }

    /// It woke up, because something was due or because it was told to.
    pub(super) fn watchdog_round(&mut self, sleep: u64) -> Result<(), String> {
        if sleep != self.watchdog.sleep {
            return Ok(());
        }
        if self.watchdog.was_busy && self.watchdog.orders.is_empty() {
            self.ask_for_memory();
        }
        self.scheduler.tick(self.now);
        let orders = std::mem::take(&mut self.watchdog.orders).into_iter().chain(self.scheduler.drain_orders());
        let orders: Vec<Order> = orders.collect();
        self.release()?;
        for order in orders {
            match order {
                Order::Reopen(device) => self.reopen(device),
                Order::Plan => self.plan_sets(),
            }
        }
        self.sleep_until_due();
        Ok(())
    }

    /// Sets of which more is known are planned again. That takes a while, in which things go on.
    fn plan_sets(&mut self) {
        while let Some(outlook) = self.scheduler.next_outlook(self.now) {
            let Some(plan) = outlook.plan() else { continue };
            let takes = match self.planning_max {
                Nanos::ZERO => Nanos::ZERO,
                longest => Nanos(self.rng.within(0, longest.0)),
            };
            self.plans.push(Some(plan));
            self.plan(self.now + takes, Happening::Planned(self.plans.len() - 1));
        }
    }

    pub(super) fn planned(&mut self, at: usize) {
        if let Some(plan) = self.plans[at].take() {
            self.scheduler.follow(self.now, plan);
        }
    }

    fn sleep_until_due(&mut self) {
        let busy = self.scheduler.unsettled() > 0 || self.scheduler.needs_readings();
        let memory = busy.then(|| self.watchdog.memory_asked_at + ROUND);
        let due = self.scheduler.next_tick().into_iter().chain(memory).min();
        let nap = due.map(|due| due.since(self.now).max(NAP_MIN));
        self.watchdog.dozes = nap.is_none_or(|nap| nap > ROUND);
        self.watchdog.was_busy = busy;
        self.watchdog.sleep += 1;
        if let Some(nap) = nap {
            self.plan(self.now + nap, Happening::Watchdog(self.watchdog.sleep));
        }
    }

    fn reopen(&mut self, device: DeviceId) {
        let fails = self.rng.chance(self.devices[device.index()].gpu.faults.reopen_fails);
        let takes = Nanos::millis(self.rng.within(1, 50));
        self.plan(self.now + takes, Happening::Reopened(device, !fails));
    }

    pub(super) fn reopened(&mut self, device: DeviceId, is_well: bool) {
        if is_well {
            self.devices[device.index()].is_lost = false;
            self.scheduler.device_opened(self.now, device);
        } else {
            self.scheduler.device_failed_to_open(self.now, device);
            self.wake_watchdog();
        }
    }

    /// Asks for every device's memory if it was last asked for too long ago. The answers take a moment.
    pub(super) fn ask_for_memory(&mut self) {
        if self.now.since(self.watchdog.memory_asked_at) < ROUND {
            return;
        }
        self.watchdog.memory_asked_at = self.now;
        for device in self.device_ids() {
            self.scheduler.memory_reading_begins(device);
            let takes = Nanos::micros(self.rng.within(1, 2_000));
            self.plan(self.now + takes, Happening::MemoryRead(device));
        }
    }

    pub(super) fn memory_read(&mut self, device: DeviceId) {
        let reading = self.devices[device.index()].reading();
        self.scheduler.set_memory(self.now, device, reading);
    }
}
