//! One lock and the bells beside it: who finds nothing to do under the lock sleeps at a bell until it rings.
//! Never spins: a sleeper uses no processor time.
//! Invariant: no ring is lost. Whoever changes what a sleeper waits for does so under the lock and rings before or
//! after releasing it; a sleeper checks under the same lock before it sleeps (`tests::loom_no_ring_is_lost`).

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use smallvec::SmallVec;

use crate::sync::{Condvar, Mutex, MutexGuard, lock};

pub(crate) struct Bells<T> {
    state: Mutex<Guarded<T>>,
    bells: Vec<Condvar>,
}

struct Guarded<T> {
    value: T,
    /// Sleepers at each bell, so that ringing for nobody costs nothing.
    sleepers: Vec<usize>,
}

/// The lock, held. Rings are made when it is released.
pub(crate) struct Held<'a, T> {
    owner: &'a Bells<T>,
    guard: Option<MutexGuard<'a, Guarded<T>>>,
    rings: SmallVec<[(usize, Ring); 4]>,
}

#[derive(Copy, Clone)]
enum Ring {
    One,
    All,
}

impl<T> Bells<T> {
    pub(crate) fn new(value: T, bells: usize) -> Self {
        Self {
            state: Mutex::new(Guarded { value, sleepers: vec![0; bells] }),
            bells: (0..bells).map(|_| Condvar::new()).collect(),
        }
    }

    pub(crate) fn lock(&self) -> Held<'_, T> {
        Held { owner: self, guard: Some(lock(&self.state)), rings: SmallVec::new() }
    }
}

impl<'a, T> Held<'a, T> {
    /// Wakes one sleeper at this bell, if there is one.
    pub(crate) fn ring(&mut self, bell: usize) {
        self.note(bell, Ring::One);
    }

    /// Wakes all sleepers at this bell.
    pub(crate) fn ring_all(&mut self, bell: usize) {
        self.note(bell, Ring::All);
    }

    fn note(&mut self, bell: usize, ring: Ring) {
        if self.guarded().sleepers[bell] > 0 {
            self.rings.push((bell, ring));
        }
    }

    /// Releases the lock until the bell rings or the time is over, whichever comes first; it may also wake early.
    pub(crate) fn sleep(mut self, bell: usize, at_most: Option<Duration>) -> Held<'a, T> {
        let owner = self.owner;
        let mut guard = self.guard.take().expect("held until dropped");
        for (bell, ring) in self.rings.drain(..) {
            owner.sound(bell, ring);
        }
        guard.sleepers[bell] += 1;
        let mut guard = match at_most {
            Some(span) => {
                owner.bells[bell].wait_timeout(guard, span).map_or_else(|gone| gone.into_inner().0, |ok| ok.0)
            }
            None => owner.bells[bell].wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner),
        };
        guard.sleepers[bell] -= 1;
        Held { owner, guard: Some(guard), rings: SmallVec::new() }
    }

    fn guarded(&self) -> &Guarded<T> {
        self.guard.as_ref().expect("held until dropped")
    }
}

impl<T> Bells<T> {
    fn sound(&self, bell: usize, ring: Ring) {
        match ring {
            Ring::One => self.bells[bell].notify_one(),
            Ring::All => self.bells[bell].notify_all(),
        }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        // The lock first, so that who wakes does not find it taken.
        self.guard = None;
        for (bell, ring) in self.rings.drain(..) {
            self.owner.sound(bell, ring);
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guarded().value
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard.as_mut().expect("held until dropped").value
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
            let bells = Arc::new(Bells::new(0_u32, 1));
            let workers: Vec<_> = (0..2)
                .map(|_| {
                    let bells = Arc::clone(&bells);
                    thread::spawn(move || {
                        let mut held = bells.lock();
                        while *held == 0 {
                            held = held.sleep(0, None);
                        }
                        *held -= 1;
                    })
                })
                .collect();
            for _ in 0..2 {
                let mut held = bells.lock();
                *held += 1;
                held.ring(0);
            }
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            assert_eq!(*bells.lock(), 0);
        });
    }

    /// The ledger as it is used: checked and promised under the lock, waited for at a bell, returned with a ring.
    #[test]
    fn loom_two_callers_never_hold_the_same_last_room() {
        use plimsoll_core::ledger::Ledger;
        use plimsoll_core::{Bytes, DeviceId};

        const DEVICE: DeviceId = DeviceId(0);
        loom::model(|| {
            let mut ledger = Ledger::default();
            ledger.set_line(DEVICE, Bytes(10));
            let bells = Arc::new(Bells::new((ledger, 0_u32), 1));
            let callers: Vec<_> = (0..2)
                .map(|_| {
                    let bells = Arc::clone(&bells);
                    thread::spawn(move || {
                        let mut held = bells.lock();
                        let lease = loop {
                            match held.0.reserve(DEVICE, Bytes(7)) {
                                Ok(lease) => break lease,
                                Err(_) => held = held.sleep(0, None),
                            }
                        };
                        held.1 += 1;
                        assert_eq!(held.1, 1, "both hold 7 of 10");
                        drop(held);
                        let mut held = bells.lock();
                        held.1 -= 1;
                        held.0.release(lease).unwrap();
                        held.ring(0);
                    })
                })
                .collect();
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            assert_eq!(bells.lock().0.promised(DEVICE), Bytes::ZERO);
        });
    }

    #[test]
    fn loom_stopping_wakes_everyone() {
        loom::model(|| {
            let bells = Arc::new(Bells::new(false, 1));
            let workers: Vec<_> = (0..2)
                .map(|_| {
                    let bells = Arc::clone(&bells);
                    thread::spawn(move || {
                        let mut held = bells.lock();
                        while !*held {
                            held = held.sleep(0, None);
                        }
                    })
                })
                .collect();
            let mut held = bells.lock();
            *held = true;
            held.ring_all(0);
            drop(held);
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        });
    }
}
