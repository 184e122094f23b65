//! Places for slabs: how many of the full resolution lie in memory at once.
//! Invariant: places taken and not given back ≤ places there are. Whoever waits for one is woken when one comes back, or
//! when nobody will need it any more.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A number of places. Cheap to clone.
#[derive(Clone)]
pub struct Places(Arc<Shared>);

struct Shared {
    free: Mutex<Free>,
    came_back: Condvar,
}

struct Free {
    places: usize,
    is_closed: bool,
}

/// One of them; goes back when it is dropped.
pub struct Place(Arc<Shared>);

/// Why there was no place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// None came back in time.
    InTime,
    /// Nobody needs one any more.
    Closed,
}

impl Places {
    /// So many.
    pub fn new(places: usize) -> Self {
        let free = Mutex::new(Free { places, is_closed: false });
        Self(Arc::new(Shared { free, came_back: Condvar::new() }))
    }

    /// Takes one, and waits until then; without an end if there is none.
    ///
    /// # Errors
    /// [`NoPlace`].
    pub fn take(&self, until: Option<Instant>) -> Result<Place, NoPlace> {
        let mut free = self.0.free();
        loop {
            if free.is_closed {
                return Err(NoPlace::Closed);
            }
            if free.places > 0 {
                free.places -= 1;
                return Ok(Place(Arc::clone(&self.0)));
            }
            free = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self.0.came_back.wait(free).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => return Err(NoPlace::InTime),
                Some(left) => self.0.came_back.wait_timeout(free, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Ends every wait, now and later.
    pub fn close(&self) {
        self.0.free().is_closed = true;
        self.0.came_back.notify_all();
    }
}

impl Shared {
    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.free().places += 1;
        self.0.came_back.notify_one();
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} places free", self.0.free().places)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn there_are_as_many_as_there_are() {
        let places = Places::new(2);
        let (first, _second) = (places.take(None).unwrap(), places.take(None).unwrap());
        let soon = || Some(Instant::now() + Duration::from_millis(1));
        assert_eq!(places.take(soon()).unwrap_err(), NoPlace::InTime);
        drop(first);
        assert!(places.take(soon()).is_ok());
    }

    #[test]
    fn who_waits_is_woken_by_a_place_and_by_the_end() {
        let places = Places::new(1);
        let held = places.take(None).unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| places.take(None).is_ok());
            drop(held);
            assert!(waits.join().unwrap());
            let _held = places.take(None).unwrap();
            let waits = scope.spawn(|| places.take(None).unwrap_err());
            places.close();
            assert_eq!(waits.join().unwrap(), NoPlace::Closed);
        });
    }
}
