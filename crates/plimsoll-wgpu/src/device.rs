//! A GPU that was opened: its facts, its memory now, its present life, and a slot for each worker.
//! Never runs work itself; a slot does, on its worker's own thread.
//! Invariant: a slot or buffer of an earlier life reports `DeviceLost`; it never reaches the present one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::{Bytes, DeviceKind, Fault};
use plimsoll_runtime::gauge::Gauge;
use plimsoll_runtime::{Backend, Device, DeviceFacts, MemoryReading};
use xxhash_rust::xxh3::xxh3_64;

use crate::backend::{Home, WgpuBackend};
use crate::discover::{Record, find};
use crate::generation::Generation;
use crate::inject::FaultInjection;
use crate::logical::Slots;
use crate::memory;
use crate::staging::Sizes;

/// A GPU, or one of the logical devices that it was opened as.
#[derive(Debug)]
pub struct WgpuDevice {
    facts: DeviceFacts,
    width_first: Option<usize>,
    record: Record,
    home: Home,
    /// The gauges of all logical devices of this card, this one's included.
    card: Arc<[Arc<Gauge>]>,
    limit: Option<Bytes>,
    answer_timeout: Duration,
    life: Mutex<Life>,
}

/// Replaced as a whole when the device is reopened.
#[derive(Debug)]
struct Life {
    adapter: wgpu::Adapter,
    generation: Arc<Generation>,
}

impl Life {
    /// Looks the card up over a connection of its own, and opens it.
    fn begin(record: &Record, answer_timeout: Duration) -> Result<Self, Fault> {
        let gone = || Fault::DeviceLost { detail: format!("{} is no longer there", record.name) };
        let adapter = find(record).ok_or_else(gone)?;
        let generation = Arc::new(Generation::open(&adapter, answer_timeout)?);
        Ok(Self { adapter, generation })
    }
}

/// How one logical device is opened.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) record: Record,
    pub(crate) card: Arc<[Arc<Gauge>]>,
    pub(crate) index: usize,
    pub(crate) slots: Slots,
    pub(crate) limit: Option<Bytes>,
    pub(crate) answer_timeout: Duration,
}

impl WgpuDevice {
    pub(crate) fn open(opening: Opening) -> Result<Self, Fault> {
        let Opening { record, card, index, slots, limit, answer_timeout } = opening;
        let life = Life::begin(&record, answer_timeout)?;
        let gauge = Arc::clone(&card[index]);
        let figures = memory::read(&life.adapter, &record);
        let whole = memory::share(figures, card.len() as u64, Bytes::ZERO, Bytes::ZERO, limit).capacity;
        let ceiling = limit.map_or(whole, |limit| whole.min(limit));
        let sizes = Sizes::for_capacity(ceiling, slots.most);
        Ok(Self {
            facts: facts(&record, index, card.len(), slots.most),
            width_first: slots.first,
            record,
            home: Home { gauge, ceiling, sizes, injection: Arc::default() },
            card,
            limit,
            answer_timeout,
            life: Mutex::new(life),
        })
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Faults on purpose, for tests.
    #[doc(hidden)]
    pub fn injection(&self) -> &FaultInjection {
        &self.home.injection
    }

    /// Loses the device on purpose, for tests.
    #[doc(hidden)]
    pub fn lose(&self) {
        let generation = Arc::clone(&self.life().generation);
        generation.destroy();
    }
}

impl Device for WgpuDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn memory(&self) -> MemoryReading {
        let adapter = self.life().adapter.clone();
        let figures = memory::read(&adapter, &self.record);
        let ours_all = self.card.iter().map(|gauge| gauge.now()).sum();
        memory::share(figures, self.card.len() as u64, self.home.gauge.now(), ours_all, self.limit)
    }

    fn overhead(&self) -> Bytes {
        Bytes(self.home.sizes.total().0 * self.facts.slots as u64)
    }

    fn width_first(&self) -> Option<usize> {
        self.width_first
    }

    fn open_backend(&self) -> Result<Box<dyn Backend>, Fault> {
        let generation = Arc::clone(&self.life().generation);
        Ok(Box::new(WgpuBackend::open(self.home.clone(), generation)?))
    }

    fn reopen(&self) -> Result<(), Fault> {
        self.life().generation.health.lose("reopened");
        let fresh = Life::begin(&self.record, self.answer_timeout)?;
        let old = std::mem::replace(&mut *self.life(), fresh);
        // Outside the lock: closing waits for what the old life still does.
        drop(old);
        Ok(())
    }
}

fn facts(record: &Record, index: usize, share: usize, slots: usize) -> DeviceFacts {
    let name = match share {
        1 => record.name.clone(),
        _ => format!("{} ({} of {share})", record.name, index + 1),
    };
    DeviceFacts {
        name,
        kind: DeviceKind::Gpu,
        nature: record.nature(),
        driver: record.driver.clone(),
        api: record.api.name().to_owned(),
        key: key(record, share),
        bus: record.bus.clone(),
        slots,
    }
}

/// Equal for equal cards with equal drivers. A part of a card is not as fast as the whole.
fn key(record: &Record, share: usize) -> String {
    let Record { api, name, vendor, device, driver, .. } = record;
    let text = format!("{}\n{vendor:x}:{device:x}\n{name}\n{driver}\n{share}", api.name());
    format!("gpu-{:016x}", xxh3_64(text.as_bytes()))
}
