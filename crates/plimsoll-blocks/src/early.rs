//! A frame's bytes while it is still being unpacked: a worker fills them in, and a writer reads those that are there.
//! Never lets either wait for the other. Invariant: what was published is not written any more, and every byte is taken once
//! and in order, however often the frame is tried.

#![expect(unsafe_code, reason = "two threads share a buffer, one on each side of a place that only moves on")]

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use zstd_safe::WriteBuf;

use crate::pool::PooledBytes;

/// What there is of one frame.
#[derive(Default)]
pub struct Early(Mutex<State>);

#[derive(Default)]
struct State {
    /// The memory of the last attempt, and how far it is filled.
    filling: Option<(Arc<Room>, usize)>,
    /// How far it was taken, from whichever attempt.
    taken: usize,
    waker: Option<Waker>,
}

/// Memory that one [`Filler`] fills from its beginning. Its owner only keeps it: nobody goes through it to the bytes.
struct Room {
    start: *mut u8,
    length: usize,
    _owner: PooledBytes,
}

// SAFETY: the bytes belong to it alone. Its filler writes only behind what was published, and whoever else has it reads only
// before that; the mutex between the two makes what was written seen.
unsafe impl Send for Room {}
// SAFETY: as above.
unsafe impl Sync for Room {}

/// Some bytes of a frame that is perhaps not whole yet.
pub struct EarlyBytes {
    room: Arc<Room>,
    range: Range<usize>,
}

impl Deref for EarlyBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the range was published, so it lies within the room, is filled, and is not written any more.
        unsafe { std::slice::from_raw_parts(self.room.start.add(self.range.start), self.range.len()) }
    }
}

impl Early {
    /// The next bytes, if they are there; otherwise the context is woken once they are.
    pub fn poll(&self, context: &Context<'_>) -> Poll<EarlyBytes> {
        let mut state = self.state();
        match &state.filling {
            Some((room, filled)) if *filled > state.taken => {
                let bytes = EarlyBytes { room: Arc::clone(room), range: state.taken..*filled };
                state.taken = bytes.range.end;
                Poll::Ready(bytes)
            }
            _ => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Early {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        write!(f, "{} of {:?} bytes taken", state.taken, state.filling.as_ref().map(|(_, filled)| filled))
    }
}

/// One attempt to fill a frame in.
pub(crate) struct Filler<'a> {
    early: &'a Early,
    room: Arc<Room>,
    filled: usize,
}

impl<'a> Filler<'a> {
    /// Begins with the first byte, in this memory. What was taken from an attempt before is not given again.
    pub(crate) fn begin(early: &'a Early, mut memory: PooledBytes) -> Self {
        let (start, length) = (memory.vec_mut().as_mut_ptr(), memory.len());
        let room = Arc::new(Room { start, length, _owner: memory });
        early.state().filling = Some((Arc::clone(&room), 0));
        Self { early, room, filled: 0 }
    }

    /// How many bytes are there.
    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// Lets the reader have what is there.
    pub(crate) fn publish(&self) {
        let mut state = self.early.state();
        state.filling = Some((Arc::clone(&self.room), self.filled));
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

// SAFETY: the pointer is good for `capacity` bytes, all of which were initialised when the memory was taken. Whoever writes
// through it begins at [`Filler::filled`], and that only grows, so that what was published stays as it is.
unsafe impl WriteBuf for Filler<'_> {
    fn as_slice(&self) -> &[u8] {
        // SAFETY: nobody writes what is filled.
        unsafe { std::slice::from_raw_parts(self.room.start, self.filled) }
    }

    fn capacity(&self) -> usize {
        self.room.length
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.room.start
    }

    unsafe fn filled_until(&mut self, count: usize) {
        self.filled = self.filled.max(count.min(self.room.length));
    }
}
