//! A device whose bytes are in the book. Never does anything else than the device itself, but for a limit of its place.

use std::fmt;
use std::sync::Arc;

use plimsoll_core::{Bytes, Fault};

use super::Book;
use crate::backend::{Backend, Buffer};
use crate::device::{Device, DeviceFacts, MemoryReading};

/// Where a device's bytes are written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The book.
    pub book: Book,
    /// What the device is called in it: the same in every program, and unlike any other device.
    pub device: String,
}

/// A device whose bytes are shared by the book.
pub struct Listed {
    device: Arc<dyn Device>,
    place: Place,
    limit: Option<Bytes>,
}

impl fmt::Debug for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listed").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Listed {
    /// Shares this device's bytes.
    pub fn new(device: Arc<dyn Device>, place: Place) -> Self {
        Self { device, place, limit: None }
    }

    /// Of which no more than this is used, by all that share it under this name.
    #[must_use]
    pub fn with_limit(self, limit: Option<Bytes>) -> Self {
        Self { limit, ..self }
    }
}

impl Device for Listed {
    fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }

    fn memory(&self) -> MemoryReading {
        let reading = self.device.memory();
        MemoryReading { limit: reading.limit.into_iter().chain(self.limit).min(), ..reading }
    }

    fn answers_at_once(&self) -> bool {
        self.device.answers_at_once()
    }

    fn overhead(&self) -> Bytes {
        self.device.overhead()
    }

    fn width_first(&self) -> Option<usize> {
        self.device.width_first()
    }

    fn open_backend(&self) -> Result<Box<dyn Backend>, Fault> {
        self.device.open_backend()
    }

    fn fetch(&self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        self.device.fetch(buffer, offset, into)
    }

    fn reopen(&self) -> Result<(), Fault> {
        self.device.reopen()
    }

    fn book(&self) -> Option<&Place> {
        Some(&self.place)
    }
}
