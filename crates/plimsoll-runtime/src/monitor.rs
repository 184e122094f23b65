//! A monitor: one lock and several condition variables. A thread that finds nothing to do under the lock waits on one
//! of them until it is notified.
//! Never spins: a waiting thread uses no processor time.
//! Invariant: no notification is lost. Whoever changes what a thread waits for does so under the lock and notifies before
//! or after releasing it; a thread checks under the same lock before it waits (`tests::loom_no_ring_is_lost`).

use std::ops::{Deref, DerefMut};
use std::task::Waker;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::shared::quietly;
use crate::sync::{Condvar, Mutex, MutexGuard, lock};

pub(crate) struct Monitor<T> {
    state: Mutex<Guarded<T>>,
    condvars: Vec<Condvar>,
}

struct Guarded<T> {
    value: T,
    /// Who waits on each condition variable, so that notifying nobody costs nothing.
    waiters: Vec<Waiters>,
    held: LockTimes,
}

/// The threads at one condition variable.
#[derive(Copy, Clone, Default)]
struct Waiters {
    /// Threads that wait, and those that were notified and have not had the lock since.
    waiting: usize,
    /// Notifications that no thread has followed yet. One that wakes for another reason may take one off: then somebody is
    /// notified twice, never nobody.
    notified: usize,
}

/// How often a lock was taken, and how long it was held.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LockTimes {
    /// How often it was taken.
    pub taken: u64,
    timed: u64,
    nanos: u64,
}

impl LockTimes {
    /// How long it was held each time, on average. Some of them are measured, not all.
    pub fn mean(&self) -> Option<Duration> {
        self.nanos.checked_div(self.timed).map(Duration::from_nanos)
    }
}

/// A clock is read when a lock is taken and released, but only this seldom: reading it takes a tenth of what is measured.
const TIMED_EVERY: u64 = 64;

/// The lock, held. Notifications are sent when it is released.
pub(crate) struct Guard<'a, T> {
    owner: &'a Monitor<T>,
    guard: Option<MutexGuard<'a, Guarded<T>>>,
    /// When it was taken, if that is measured this time.
    since: Option<Instant>,
    notifications: SmallVec<[(usize, Notify); 4]>,
    wakers: Vec<Waker>,
}

#[derive(Copy, Clone)]
enum Notify {
    One,
    All,
}

impl<T> Monitor<T> {
    pub(crate) fn new(value: T, condvars: usize) -> Self {
        Self {
            state: Mutex::new(Guarded {
                value,
                waiters: vec![Waiters::default(); condvars],
                held: LockTimes::default(),
            }),
            condvars: (0..condvars).map(|_| Condvar::new()).collect(),
        }
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        Guard::taken(self, lock(&self.state))
    }

    /// How long the lock was held so far.
    pub(crate) fn held(&self) -> LockTimes {
        lock(&self.state).held
    }
}

impl<'a, T> Guard<'a, T> {
    fn taken(owner: &'a Monitor<T>, mut guard: MutexGuard<'a, Guarded<T>>) -> Self {
        guard.held.taken += 1;
        let since = guard.held.taken.is_multiple_of(TIMED_EVERY).then(Instant::now);
        Self { owner, guard: Some(guard), since, notifications: SmallVec::new(), wakers: Vec::new() }
    }

    /// What is left to do before the lock goes.
    fn about_to_go(guard: &mut Guarded<T>, since: Option<Instant>) {
        if let Some(since) = since {
            guard.held.timed += 1;
            guard.held.nanos += since.elapsed().as_nanos() as u64;
        }
    }

    /// Wakes one thread that waits on this condition variable, if there is one.
    pub(crate) fn notify_one(&mut self, condvar: usize) {
        let at = &mut self.guarded_mut().waiters[condvar];
        // One that was notified already looks at everything that there is when it gets the lock.
        if at.waiting > at.notified {
            at.notified += 1;
            self.notifications.push((condvar, Notify::One));
        }
    }

    /// Wakes all threads that wait on this condition variable.
    pub(crate) fn notify_all(&mut self, condvar: usize) {
        let at = &mut self.guarded_mut().waiters[condvar];
        if at.waiting > at.notified {
            at.notified = at.waiting;
            self.notifications.push((condvar, Notify::All));
        }
    }

    /// Wakes these futures once the lock is released.
    pub(crate) fn wake_later(&mut self, wakers: Vec<Waker>) {
        self.wakers.extend(wakers);
    }

    /// Whether a future is to be woken: then the lock has to be released before anybody waits.
    pub(crate) fn wakes_later(&self) -> bool {
        !self.wakers.is_empty()
    }

    /// Releases the lock until notified or until the time is over, whichever comes first; it may also wake early.
    pub(crate) fn wait(mut self, condvar: usize, at_most: Option<Duration>) -> Guard<'a, T> {
        let owner = self.owner;
        let mut guard = self.guard.take().expect("held until dropped");
        for (condvar, notify) in self.notifications.drain(..) {
            owner.send(condvar, notify);
        }
        debug_assert!(self.wakers.is_empty(), "a caller's waker is never called under the lock");
        Self::about_to_go(&mut guard, self.since.take());
        guard.waiters[condvar].waiting += 1;
        let mut guard = match at_most {
            Some(span) => {
                owner.condvars[condvar].wait_timeout(guard, span).map_or_else(|gone| gone.into_inner().0, |ok| ok.0)
            }
            None => owner.condvars[condvar].wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner),
        };
        let at = &mut guard.waiters[condvar];
        (at.waiting, at.notified) = (at.waiting - 1, at.notified.saturating_sub(1));
        Self::taken(owner, guard)
    }

    fn guarded(&self) -> &Guarded<T> {
        self.guard.as_ref().expect("held until dropped")
    }

    fn guarded_mut(&mut self) -> &mut Guarded<T> {
        self.guard.as_mut().expect("held until dropped")
    }
}

impl<T> Monitor<T> {
    fn send(&self, condvar: usize, notify: Notify) {
        match notify {
            Notify::One => self.condvars[condvar].notify_one(),
            Notify::All => self.condvars[condvar].notify_all(),
        }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if let Some(guard) = &mut self.guard {
            Self::about_to_go(guard, self.since.take());
        }
        // The lock first, so that who wakes does not find it taken.
        self.guard = None;
        for (condvar, notify) in self.notifications.drain(..) {
            self.owner.send(condvar, notify);
        }
        for waker in self.wakers.drain(..) {
            quietly(move || waker.wake());
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guarded().value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guarded_mut().value
    }
}

#[cfg(all(test, loom))]
mod tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    #[test]
    fn loom_no_ring_is_lost() {
        loom::model(|| {
            let monitor = Arc::new(Monitor::new(0_u32, 1));
            let workers: Vec<_> = (0..2)
                .map(|_| {
                    let monitor = Arc::clone(&monitor);
                    thread::spawn(move || {
                        let mut held = monitor.lock();
                        while *held == 0 {
                            held = held.wait(0, None);
                        }
                        *held -= 1;
                    })
                })
                .collect();
            for _ in 0..2 {
                let mut held = monitor.lock();
                *held += 1;
                held.notify_one(0);
            }
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            assert_eq!(*monitor.lock(), 0);
        });
    }

    /// The ledger as it is used: checked and promised under the lock, waited for at a condition variable, returned with a notification.
    #[test]
    fn loom_two_callers_never_hold_the_same_last_room() {
        use plimsoll_core::ledger::Ledger;
        use plimsoll_core::{Bytes, DeviceId};

        const DEVICE: DeviceId = DeviceId(0);
        loom::model(|| {
            let mut ledger = Ledger::default();
            ledger.set_line(DEVICE, Bytes(10), Bytes(10));
            let monitor = Arc::new(Monitor::new((ledger, 0_u32), 1));
            let callers: Vec<_> = (0..2)
                .map(|_| {
                    let monitor = Arc::clone(&monitor);
                    thread::spawn(move || {
                        let mut held = monitor.lock();
                        let lease = loop {
                            match held.0.reserve(DEVICE, Bytes(7)) {
                                Ok(lease) => break lease,
                                Err(_) => held = held.wait(0, None),
                            }
                        };
                        held.1 += 1;
                        assert_eq!(held.1, 1, "both hold 7 of 10");
                        drop(held);
                        let mut held = monitor.lock();
                        held.1 -= 1;
                        held.0.release(lease).unwrap();
                        held.notify_one(0);
                    })
                })
                .collect();
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            assert_eq!(monitor.lock().0.promised(DEVICE), Bytes::ZERO);
        });
    }

    #[test]
    fn loom_stopping_wakes_everyone() {
        loom::model(|| {
            let monitor = Arc::new(Monitor::new(false, 1));
            let workers: Vec<_> = (0..2)
                .map(|_| {
                    let monitor = Arc::clone(&monitor);
                    thread::spawn(move || {
                        let mut held = monitor.lock();
                        while !*held {
                            held = held.wait(0, None);
                        }
                    })
                })
                .collect();
            let mut held = monitor.lock();
            *held = true;
            held.notify_all(0);
            drop(held);
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        });
    }
}
