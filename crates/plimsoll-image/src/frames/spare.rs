//! Memory of frames that nobody holds any more, for the next ones: the system clears what it gives, page by page, which
//! takes longer than many an operation on a frame.
//! Never holds more than [`BYTES_MAX`]. Invariant: memory is a frame's or spare, never both.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Spare bytes at the most: a few frames of 3840 x 2160 in 4:2:0, or many smaller ones.
const BYTES_MAX: usize = 48 << 20;
/// Smaller frames come from the allocator as fast as from here.
const BYTES_MIN: usize = 64 << 10;

/// For all streams of the process: frames go from one thread to another.
static SPARE: Mutex<Spare> = Mutex::new(Spare { frames: Vec::new(), bytes: 0 });

struct Spare {
    /// The oldest first.
    frames: Vec<Vec<u8>>,
    bytes: usize,
}

/// A frame's bytes, of whatever value, in memory that was a frame's before; `None` if there is none of this size.
pub(super) fn take(bytes: usize) -> Option<Vec<u8>> {
    if bytes < BYTES_MIN {
        return None;
    }
    let mut frame = lock().take(bytes)?;
    frame.resize(bytes, 0);
    Some(frame)
}

/// Leaves memory to whoever takes it next.
pub(super) fn leave(frame: Vec<u8>) {
    if (BYTES_MIN..=BYTES_MAX).contains(&frame.capacity()) {
        let freed = lock().leave(frame);
        // Freed after the lock.
        drop(freed);
    }
}

fn lock() -> MutexGuard<'static, Spare> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spare {
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
        let mut spare = Spare { frames: Vec::new(), bytes: 0 };
        let sizes = [100_000, 200_000, 100_000];
        let places = sizes.map(|size| {
            let frame = vec![1; size];
            let place = frame.as_ptr();
            assert!(spare.leave(frame).is_empty());
            place
        });
        assert_eq!(spare.take(90_000).map(|frame| frame.as_ptr()), Some(places[2]), "the last that came");
        assert!(spare.take(120_000).is_none() && spare.take(300_000).is_none());
        assert_eq!(spare.take(200_000).map(|frame| frame.as_ptr()), Some(places[1]));
        assert_eq!(spare.bytes, 100_000);
    }

    #[test]
    fn spare_memory_is_bounded_and_the_oldest_goes() {
        let mut spare = Spare { frames: Vec::new(), bytes: 0 };
        let freed: usize = (0..100).map(|_| spare.leave(vec![0; 1 << 20]).len()).sum();
        assert_eq!((freed, spare.frames.len(), spare.bytes), (100 - 48, 48, BYTES_MAX));
        assert_eq!(spare.leave(vec![0; 40 << 20]).len(), 40);
    }

    #[test]
    fn small_and_huge_frames_are_not_kept() {
        leave(vec![7; BYTES_MIN - 1]);
        assert!(take(BYTES_MIN - 1).is_none());
        leave(Vec::with_capacity(BYTES_MAX + 1));
        assert!(take(BYTES_MAX + 1).is_none());
    }
}
