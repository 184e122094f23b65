//! Memory of a stream's frames that nobody holds any more, for its next ones: the system clears what it gives, page by
//! page, which takes longer than many an operation on a frame.
//! Never outlives the stream and its frames, and never holds more than [`BYTES_MAX`]. Invariant: memory is a frame's or
//! spare, never both.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Spare bytes of a stream at the most: some frames of 3840 x 2160 in 4:2:0, or many smaller ones.
const BYTES_MAX: usize = 64 << 20;
/// Smaller frames come from the allocator as fast as from here.
const BYTES_MIN: usize = 64 << 10;

/// Spare memory; frames go from one thread to another.
#[derive(Default)]
pub(super) struct Spare(Mutex<Held>);

#[derive(Default)]
struct Held {
    /// The oldest first.
    frames: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spare {
    /// A frame's bytes, of whatever value, in memory that was a frame's before; `None` if there is none of this size.
    pub(super) fn take(&self, bytes: usize) -> Option<Vec<u8>> {
        if bytes < BYTES_MIN {
            return None;
        }
        let mut frame = self.lock().take(bytes)?;
        frame.resize(bytes, 0);
        Some(frame)
    }

    /// Leaves memory to whoever takes it next.
    pub(super) fn leave(&self, frame: Vec<u8>) {
        if (BYTES_MIN..=BYTES_MAX).contains(&frame.capacity()) {
            let freed = self.lock().leave(frame);
            // Freed after the lock.
            drop(freed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// The last that came of this size, or a little larger: it is the likeliest to be in a cache.
    fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let fits = bytes..=bytes + bytes / 4;
        let at = self.frames.iter().rposition(|frame| fits.contains(&frame.capacity()))?;
        let frame = self.frames.remove(at);
        self.bytes -= frame.capacity();
        Some(frame)
    }

    /// Gives back the oldest ones for which there is no room any more.
    fn leave(&mut self, frame: Vec<u8>) -> Vec<Vec<u8>> {
        self.bytes += frame.capacity();
        self.frames.push(frame);
        let mut over = 0;
        while self.bytes > BYTES_MAX {
            self.bytes -= self.frames[over].capacity();
            over += 1;
        }
        self.frames.drain(..over).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_found_again_by_its_size() {
        let spare = Spare::default();
        let places = [100_000, 200_000, 100_000].map(|size| {
            let frame = vec![1; size];
            let place = frame.as_ptr();
            spare.leave(frame);
            place
        });
        assert_eq!(spare.take(90_000).map(|frame| frame.as_ptr()), Some(places[2]), "the last that came");
        assert!(spare.take(120_000).is_none() && spare.take(300_000).is_none());
        assert_eq!(spare.take(200_000).map(|frame| frame.as_ptr()), Some(places[1]));
        assert_eq!(spare.lock().bytes, 100_000);
    }

    #[test]
    fn spare_memory_is_bounded_and_the_oldest_goes() {
        let mut held = Held::default();
        let freed: usize = (0..100).map(|_| held.leave(vec![0; 1 << 20]).len()).sum();
        assert_eq!((freed, held.frames.len(), held.bytes), (100 - 64, 64, BYTES_MAX));
        assert_eq!(held.leave(vec![0; 40 << 20]).len(), 40);
    }

    #[test]
    fn small_and_huge_frames_are_not_kept() {
        let spare = Spare::default();
        spare.leave(vec![7; BYTES_MIN - 1]);
        assert!(spare.take(BYTES_MIN - 1).is_none());
        spare.leave(Vec::with_capacity(BYTES_MAX + 1));
        assert!(spare.take(BYTES_MAX + 1).is_none());
    }
}
