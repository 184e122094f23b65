//! Where arrays are kept: objects by keys, each whole or not there at all.
//! Never knows what an object means. Invariant: an object that can be read was finished, and a store has one writer.
//!
//! | file | what it owns |
//! |---|---|
//! | `filesystem.rs` | a folder |
//! | `memory.rs` | a store for tests, which fails when told to |
//! | `s3/` | a folder of a bucket (feature `s3`) |
//! | `conformance.rs` | what every one of them must do |
//! | `error.rs` | what can go wrong |

mod conformance;
mod error;
mod filesystem;
mod memory;
#[cfg(feature = "s3")]
mod s3;

pub use conformance::conforms;
pub use error::SinkError;
pub use filesystem::Filesystem;
pub use memory::{Memory, Operation};
#[cfg(feature = "s3")]
pub use s3::{S3, S3Options};

use std::ops::Range;

/// Objects that one listing gives at the most: more would not be held in memory.
pub const LISTED_MAX: usize = 10_000_000;

/// A place where objects are kept by keys such as `0/c/1/2`.
pub trait Sink: Send + Sync {
    /// Writes a whole object, in place of one that may be there.
    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), SinkError>;

    /// Begins an object that is written piece by piece.
    fn begin(&self, key: &str) -> Result<Box<dyn Object>, SinkError>;

    /// Bytes of an object. The range must lie in it.
    fn get(&self, key: &str, range: Range<u64>) -> Result<Vec<u8>, SinkError>;

    /// How many bytes an object has; none if it is not there.
    fn size(&self, key: &str) -> Result<Option<u64>, SinkError>;

    /// Every object whose key begins with this, in the order of keys.
    fn list(&self, prefix: &str) -> Result<Vec<Listed>, SinkError>;

    /// Removes an object; nothing happens if it is not there.
    fn delete(&self, key: &str) -> Result<(), SinkError>;

    /// Makes the caller the only writer until the guard is dropped.
    fn lock(&self) -> Result<Box<dyn WriteLock>, SinkError>;

    /// Bytes that it holds itself while so many objects are being written.
    fn buffer_bytes(&self, objects: usize) -> u64 {
        let _ = objects;
        0
    }
}

/// An object that is being written. It appears when it is finished; dropped before that, nothing of it stays.
pub trait Object: Send {
    /// Writes behind what was written before.
    fn append(&mut self, bytes: &[u8]) -> Result<(), SinkError>;

    /// Makes it appear, whole.
    fn finish(self: Box<Self>) -> Result<(), SinkError>;
}

/// Held by the one writer of a store.
#[must_use = "the store is anybody's again once the lock is dropped"]
pub trait WriteLock: Send {}

/// An object of a listing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// Its bytes.
    pub bytes: u64,
}

/// An error unless this can be the key of an object. Whatever a file says, no key leads out of the store.
pub fn check_key(key: &str) -> Result<(), SinkError> {
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    match key.split('/').all(is_part) {
        true => Ok(()),
        false => Err(SinkError::Key { key: key.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_conforms() {
        conforms(&Memory::default());
    }

    #[test]
    fn a_folder_conforms() {
        let folder = tempfile::tempdir().unwrap();
        conforms(&Filesystem::new(folder.path().join("store")));
        conforms(&Filesystem::new(folder.path().join("fast")).without_sync());
    }
}
