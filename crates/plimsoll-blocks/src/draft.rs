//! An output that whoever unpacks a piece writes himself, at the piece's own place: what he made lies in his cache, and no
//! other thread has to wait for it.
//! Never tells whether what was written is right: that is known once the piece was unpacked to its end.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are written at once, at the least unless a piece ends: they are still in a core's cache, and a call for them
/// costs next to nothing.
const STEP: usize = 256 << 10;

/// An output of which nothing counts before all of it is there, as a file that gets its name at the end: its parts are
/// written in whatever order they come, some of them twice, and before anybody knows whether they are right.
pub trait Draft: Send + Sync {
    /// Writes all of these bytes at this place.
    ///
    /// # Errors
    /// That of the output; nothing more is written then.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
}

/// The place of a piece in a draft.
pub struct Placed {
    draft: Arc<dyn Draft>,
    at: u64,
    failed: Mutex<Option<io::Error>>,
}

impl Placed {
    pub(crate) fn new(draft: &Arc<dyn Draft>, at: u64) -> Self {
        Self { draft: Arc::clone(draft), at, failed: Mutex::new(None) }
    }

    /// Why its bytes could not be written, if they could not.
    pub fn failed(&self) -> Option<io::Error> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Writes what there is of the piece behind what was written before, unless that is too little and not the end. `false`
    /// once the output failed.
    pub(crate) fn write(&self, there: &[u8], written: &mut usize, is_all: bool) -> bool {
        let new = &there[*written..];
        if new.is_empty() || (new.len() < STEP && !is_all) {
            return true;
        }
        match self.draft.write_at(new, self.at + *written as u64) {
            Ok(()) => *written = there.len(),
            Err(error) => {
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                return false;
            }
        }
        true
    }
}

impl fmt::Debug for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} of a draft", self.at)
    }
}
