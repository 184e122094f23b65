//! The primitives of every concurrent protocol here: the standard library's, or loom's when its tests run.
//! Never used for plain statistics, which have no protocol (`gauge`).

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;

/// Locks, whether or not a thread panicked while it held the lock: what is guarded here is changed in single steps
/// that cannot be seen half done, and a panic in a task never happens under a lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
