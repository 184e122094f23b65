//! A sign that work is to stop, raised from another thread or a signal handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(any(feature = "score", feature = "frames", feature = "pack", feature = "array"))]
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;

/// A sign that work is to stop. Clones are the same sign.
#[derive(Clone, Debug, Default)]
pub struct StopSign(Arc<Sign>);

#[derive(Debug, Default)]
struct Sign {
    raised: AtomicBool,
    waker: AtomicWaker,
}

impl StopSign {
    /// Asks the work to stop.
    pub fn raise(&self) {
        self.0.raised.store(true, Ordering::Release);
        self.0.waker.wake();
    }

    /// Asks the work to stop when it next looks, without waking anybody: no more than a signal handler may do.
    pub fn note(&self) {
        self.0.raised.store(true, Ordering::Release);
    }

    /// Whether it was asked to.
    pub fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::Acquire)
    }

    /// Whether it is; wakes the waiter when it will be. One waiter at a time.
    #[cfg(any(feature = "score", feature = "frames", feature = "pack", feature = "array"))]
    pub(crate) fn poll_raised(&self, context: &Context<'_>) -> Poll<()> {
        self.0.waker.register(context.waker());
        if self.is_raised() { Poll::Ready(()) } else { Poll::Pending }
    }
}
