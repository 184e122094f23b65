//! A holder that is not there yet: how far it is, and the wait for it, blocking or as a future.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::error::HoldError;
use super::holder::Holder;

/// Where the thread that brings levels says how far it is, and leaves the holder.
#[derive(Default)]
pub(super) struct Arrival {
    came: Mutex<Came>,
    changed: Condvar,
    pub(super) brought: AtomicU64,
    pub(super) total: AtomicU64,
}

#[derive(Default)]
struct Came {
    result: Option<Result<(), HoldError>>,
    waker: Option<Waker>,
}

impl Arrival {
    /// Says once that it is there, or why not.
    pub(super) fn tell(&self, result: Result<(), HoldError>) {
        let mut came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        came.result.get_or_insert(result);
        let waker = came.waker.take();
        drop(came);
        self.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Tensors on their way to a device: a future of their [`Holder`]. Dropping it gives up.
#[must_use = "dropping it gives up"]
pub struct Holding {
    pub(super) holder: Option<Holder>,
    pub(super) arrival: Arc<Arrival>,
}

impl std::fmt::Debug for Holding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holding").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

impl Holding {
    /// Bytes that lie on the device, and bytes that will; both zero while it waits for room.
    pub fn progress(&self) -> (u64, u64) {
        (self.arrival.brought.load(Ordering::Relaxed), self.arrival.total.load(Ordering::Relaxed))
    }

    /// Waits until it is there. The request's patience bounds the wait for room; servers and devices have bounds of their own.
    ///
    /// # Errors
    /// Why it will not be.
    pub fn wait(mut self) -> Result<Holder, HoldError> {
        let mut came = self.arrival.came.lock().unwrap_or_else(PoisonError::into_inner);
        let result = loop {
            if let Some(result) = came.result.clone() {
                break result;
            }
            came = self.arrival.changed.wait(came).unwrap_or_else(PoisonError::into_inner);
        };
        drop(came);
        result.and_then(|()| self.holder.take().ok_or(HoldError::Left))
    }
}

impl Future for Holding {
    type Output = Result<Holder, HoldError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut came = self.arrival.came.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(result) = came.result.clone() else {
            came.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        drop(came);
        Poll::Ready(result.and_then(|()| self.holder.take().ok_or(HoldError::Left)))
    }
}
