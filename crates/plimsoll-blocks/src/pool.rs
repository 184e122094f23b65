//! Buffers that are used again: a block's bytes go from reader to worker to writer, and the memory comes back.
//! Never grows without end: what does not fit among the bytes that are kept is freed.
//! Invariant: a buffer is either somebody's or idle, never both.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Bytes of idle buffers kept for the next block. More than two cores' blocks in flight need; the rest is freed.
const IDLE_BYTES_MAX: usize = 64 << 20;
/// Smaller buffers come from the allocator as fast as from here.
const POOLED_MIN: usize = 32 << 10;
/// Buffers are made a multiple of this large, so that one for a piece is found again for the next, which is a little longer.
const GRAIN: usize = 64 << 10;

/// Where buffers come from and go back to. Cheap to clone.
#[derive(Clone, Default)]
pub struct Pool(Arc<Mutex<Idle>>);

struct Idle {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
    /// Bytes that are kept at the most.
    bytes_max: usize,
}

impl Default for Idle {
    fn default() -> Self {
        Self { buffers: Vec::new(), bytes: 0, bytes_max: IDLE_BYTES_MAX }
    }
}

impl Pool {
    /// One that keeps so many idle bytes, for work of which more is under way.
    pub fn keeping(bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Idle { bytes_max: bytes, ..Idle::default() })))
    }

    /// An empty buffer with room for at least so many bytes.
    pub fn take(&self, capacity: usize) -> PooledBytes {
        let found = if capacity < POOLED_MIN { None } else { self.idle(|idle| idle.take(capacity)) };
        let mut bytes = found.unwrap_or_default();
        bytes.clear();
        if bytes.capacity() < capacity {
            bytes.reserve_exact(grained(capacity));
            large_pages::ask_for(&bytes);
        }
        PooledBytes { bytes, pool: Arc::downgrade(&self.0) }
    }

    /// A buffer of so many bytes, of whatever value, to be overwritten: one that was as long before is not cleared.
    pub fn take_filled(&self, bytes: usize) -> PooledBytes {
        let found = if bytes < POOLED_MIN { None } else { self.idle(|idle| idle.take(bytes)) };
        let filled = match found {
            Some(mut filled) => {
                filled.resize(bytes, 0);
                filled
            }
            None => {
                // The system's zeros: nothing is cleared that is not used.
                let mut filled = vec![0; grained(bytes)];
                large_pages::ask_for(&filled);
                filled.truncate(bytes);
                filled
            }
        };
        PooledBytes { bytes: filled, pool: Arc::downgrade(&self.0) }
    }

    /// Makes a buffer of bytes that came from elsewhere.
    pub fn adopt(&self, bytes: Vec<u8>) -> PooledBytes {
        PooledBytes { bytes, pool: Arc::downgrade(&self.0) }
    }

    fn idle<T>(&self, with: impl FnOnce(&mut Idle) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How large a buffer is made for so many bytes.
fn grained(bytes: usize) -> usize {
    if bytes < POOLED_MIN { bytes } else { bytes.checked_next_multiple_of(GRAIN).unwrap_or(bytes) }
}

/// Pages of 2 MiB where the system has them: a fresh block of 8 MiB then costs a few page faults instead of two thousand,
/// which took as long as to unpack it.
#[cfg(target_os = "linux")]
mod large_pages {
    /// Bytes of a large page.
    const PAGE: usize = 2 << 20;

    /// Asks for the large pages that lie within a buffer. Where there are none it is as it was.
    #[expect(unsafe_code, reason = "the kernel's call takes an address")]
    pub(super) fn ask_for(buffer: &Vec<u8>) {
        let first = buffer.as_ptr().addr();
        let (start, end) = (first.next_multiple_of(PAGE), (first + buffer.capacity()) / PAGE * PAGE);
        if start < end {
            let page = buffer.as_ptr().wrapping_add(start - first).cast_mut();
            // SAFETY: the range lies within the buffer's own memory, and the advice changes none of it.
            let _ = unsafe { libc::madvise(page.cast(), end - start, libc::MADV_HUGEPAGE) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod large_pages {
    pub(super) fn ask_for(_: &Vec<u8>) {}
}

impl Idle {
    /// The smallest that is large enough and not twice as large: large ones stay for those that need them.
    fn take(&mut self, capacity: usize) -> Option<Vec<u8>> {
        let fits = capacity..=2 * capacity;
        // Of equal ones the last that came back: it may still be in a cache.
        let enough = self.buffers.iter().enumerate().rev().filter(|(_, buffer)| fits.contains(&buffer.capacity()));
        let (at, _) = enough.min_by_key(|(_, buffer)| buffer.capacity())?;
        let buffer = self.buffers.swap_remove(at);
        self.bytes -= buffer.capacity();
        Some(buffer)
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        if self.bytes + buffer.capacity() <= self.bytes_max {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}

/// Bytes whose memory goes back to its pool.
#[derive(Default)]
pub struct PooledBytes {
    bytes: Vec<u8>,
    pool: Weak<Mutex<Idle>>,
}

impl PooledBytes {
    /// The bytes, to be filled.
    pub fn vec_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Fills it to so many bytes, of whatever value, and gives them to be overwritten.
    pub fn filled_to(&mut self, bytes: usize) -> &mut [u8] {
        self.bytes.resize(bytes, 0);
        &mut self.bytes
    }
}

impl Deref for PooledBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for PooledBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

impl Drop for PooledBytes {
    fn drop(&mut self) {
        if self.bytes.capacity() < POOLED_MIN {
            return;
        }
        if let Some(pool) = self.pool.upgrade() {
            let buffer = std::mem::take(&mut self.bytes);
            pool.lock().unwrap_or_else(PoisonError::into_inner).give_back(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_and_is_found_again() {
        let pool = Pool::default();
        let mut first = pool.take(100_000);
        first.vec_mut().extend([7; 10]);
        let address = first.as_ptr();
        drop(first);
        let second = pool.take(90_000);
        assert_eq!((second.as_ptr(), second.len()), (address, 0));
        assert_ne!(pool.take(90_000).as_ptr(), address, "it is somebody's");
    }

    #[test]
    fn a_filled_buffer_is_as_long_as_asked_for() {
        let pool = Pool::default();
        drop(pool.take_filled(100_000));
        assert_eq!([60_000, 100_000, 40_000].map(|bytes| pool.take_filled(bytes).len()), [60_000, 100_000, 40_000]);
        assert_eq!(pool.take(60_000).len(), 0);
    }

    #[test]
    fn what_is_a_little_longer_finds_the_same_memory() {
        let pool = Pool::default();
        let (first, filled) = (pool.take(100_000), pool.take_filled(300_000));
        let addresses = [first.as_ptr(), filled.as_ptr()];
        drop((first, filled));
        assert_eq!([pool.take(110_000).as_ptr(), pool.take_filled(310_000).as_ptr()], addresses);
    }

    #[test]
    fn idle_memory_is_bounded() {
        let pool = Pool::default();
        let taken: Vec<PooledBytes> = (0..20).map(|_| pool.take(8 << 20)).collect();
        drop(taken);
        assert_eq!(pool.idle(|idle| (idle.buffers.len(), idle.bytes)), (8, IDLE_BYTES_MAX));
    }
}
