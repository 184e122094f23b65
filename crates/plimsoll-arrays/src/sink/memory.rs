//! A store in memory, for tests. It fails when and where it is told to.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{LISTED_MAX, Listed, Object, Sink, SinkError, WriteLock, check_key};

/// What is done to a store.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writing a whole object.
    Put,
    /// Beginning an object.
    Begin,
    /// Writing a piece of an object.
    Append,
    /// Making an object appear.
    Finish,
    /// Reading.
    Get,
    /// Asking for a size.
    Size,
    /// Listing.
    List,
    /// Removing.
    Delete,
}

impl Operation {
    const fn done(self) -> &'static str {
        match self {
            Self::Put | Self::Begin | Self::Append => "written",
            Self::Finish => "finished",
            Self::Get | Self::Size => "read",
            Self::List => "listed",
            Self::Delete => "removed",
        }
    }
}

type Fails = Box<dyn Fn(Operation, &str) -> Option<io::ErrorKind> + Send + Sync>;

/// A store in memory. Clones are the same store.
#[derive(Clone, Default)]
pub struct Memory {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    fails: Mutex<Option<Fails>>,
    is_locked: AtomicBool,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("objects", &self.objects().len()).finish_non_exhaustive()
    }
}

impl Memory {
    /// From now on, what is done fails whenever this gives a reason.
    pub fn fail_when(&self, fails: impl Fn(Operation, &str) -> Option<io::ErrorKind> + Send + Sync + 'static) {
        *self.shared.fails.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(fails));
    }

    /// From now on nothing fails.
    pub fn heal(&self) {
        *self.shared.fails.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Every object, as it is.
    pub fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.shared.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn may(&self, operation: Operation, key: &str) -> Result<(), SinkError> {
        // A listing begins with any part of a key.
        if operation != Operation::List {
            check_key(key)?;
        }
        let fails = self.shared.fails.lock().unwrap_or_else(PoisonError::into_inner);
        match fails.as_ref().and_then(|fails| fails(operation, key)) {
            Some(kind) => Err(SinkError::of_io(key, operation.done(), kind.into())),
            None => Ok(()),
        }
    }
}

impl Sink for Memory {
    fn put(&self, key: &str, bytes: &[u8]) -> Result<(), SinkError> {
        self.may(Operation::Put, key)?;
        self.objects().insert(key.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn begin(&self, key: &str) -> Result<Box<dyn Object>, SinkError> {
        self.may(Operation::Begin, key)?;
        Ok(Box::new(MemoryObject { store: self.clone(), key: key.to_owned(), bytes: Vec::new() }))
    }

    fn get(&self, key: &str, range: Range<u64>) -> Result<Vec<u8>, SinkError> {
        self.may(Operation::Get, key)?;
        let objects = self.objects();
        let object = objects.get(key).ok_or_else(|| SinkError::Missing { key: key.to_owned() })?;
        let bytes = usize::try_from(range.end).ok().and_then(|end| object.get(range.start as usize..end));
        let short = || SinkError::Short { key: key.to_owned(), bytes: object.len() as u64, end: range.end };
        bytes.map(<[u8]>::to_vec).ok_or_else(short)
    }

    fn size(&self, key: &str) -> Result<Option<u64>, SinkError> {
        self.may(Operation::Size, key)?;
        Ok(self.objects().get(key).map(|object| object.len() as u64))
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, SinkError> {
        self.may(Operation::List, prefix)?;
        let objects = self.objects();
        let below = objects.range(prefix.to_owned()..).take_while(|(key, _)| key.starts_with(prefix));
        let listed = below.map(|(key, object)| Listed { key: key.clone(), bytes: object.len() as u64 });
        Ok(listed.take(LISTED_MAX).collect())
    }

    fn delete(&self, key: &str) -> Result<(), SinkError> {
        self.may(Operation::Delete, key)?;
        self.objects().remove(key);
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn WriteLock>, SinkError> {
        if self.shared.is_locked.swap(true, Ordering::AcqRel) {
            return Err(SinkError::Locked { store: "the store in memory".to_owned() });
        }
        Ok(Box::new(MemoryLock(self.shared.clone())))
    }
}

struct MemoryLock(Arc<Shared>);

impl WriteLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.0.is_locked.store(false, Ordering::Release);
    }
}

struct MemoryObject {
    store: Memory,
    key: String,
    bytes: Vec<u8>,
}

impl Object for MemoryObject {
    fn append(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.store.may(Operation::Append, &self.key)?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        self.store.may(Operation::Finish, &self.key)?;
        self.store.objects().insert(self.key, self.bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fails_as_it_is_told() {
        let memory = Memory::default();
        memory.fail_when(|operation, key| {
            (operation == Operation::Append && key == "c/1").then_some(io::ErrorKind::StorageFull)
        });
        memory.put("c/0", b"fine").unwrap();
        let mut object = memory.begin("c/1").unwrap();
        assert!(matches!(object.append(b"too much"), Err(SinkError::Full { key, .. }) if key == "c/1"));
        memory.heal();
        object.append(b"fits").unwrap();
        object.finish().unwrap();
        assert_eq!(memory.objects().len(), 2);
    }
}
