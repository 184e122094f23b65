//! A GPU that was found: its facts, its memory now, its present life if it has one, and a slot for each worker.
//! Never runs work itself; a slot does, on its worker's own thread. One that could not be opened is a device all the
//! same: it takes no work, and [`Device::reopen`] tries again.
//! Invariant: a slot or buffer of an earlier life reports `DeviceLost`; it never reaches the present one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::{Bytes, DeviceKind, Fault};
use plimsoll_runtime::gauge::Gauge;
use plimsoll_runtime::misuse::check_range;
use plimsoll_runtime::{Backend, Buffer, Device, DeviceFacts, MemoryReading, Origin};
use twox_hash::XxHash3_64;

use crate::backend::{GpuBuffer, Home, WgpuBackend};
use crate::discover::{Record, Sort, find};
use crate::fetch::Fetcher;
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
    gauge: Arc<Gauge>,
    /// The gauges of all logical devices of this card, this one's included.
    card: Arc<[Arc<Gauge>]>,
    limit: Option<Bytes>,
    sizes: Sizes,
    injection: Arc<FaultInjection>,
    answer_timeout: Duration,
    life: Mutex<Life>,
}

/// Replaced as a whole when the device is reopened.
#[derive(Debug)]
struct Life {
    /// Tells the card's memory, open or not; none if the card was never found again.
    adapter: Option<wgpu::Adapter>,
    /// Why there is none, if it could not be opened.
    generation: Result<Arc<Generation>, Fault>,
}

impl Life {
    /// Looks the card up over a connection of its own, and opens it.
    fn begin(record: &Record, answer_timeout: Duration) -> Self {
        let adapter = find(record);
        let gone = || Fault::DeviceLost { detail: format!("{} is no longer there", record.name) };
        let generation = adapter.as_ref().ok_or_else(gone);
        let generation = generation.and_then(|adapter| Generation::open(adapter, answer_timeout)).map(Arc::new);
        Self { adapter, generation }
    }

    fn opened(&self) -> Result<(), Fault> {
        self.generation.as_ref().map(drop).map_err(Fault::clone)
    }
}

/// How one logical device is opened.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) record: Record,
    pub(crate) card: Arc<[Arc<Gauge>]>,
    pub(crate) index: usize,
    /// In its label.
    pub(crate) number: usize,
    pub(crate) slots: Slots,
    pub(crate) limit: Option<Bytes>,
    pub(crate) answer_timeout: Duration,
}

impl WgpuDevice {
    pub(crate) fn new(opening: Opening) -> Self {
        let Opening { record, card, index, number, slots, limit, answer_timeout } = opening;
        let life = Life::begin(&record, answer_timeout);
        let capacity = capacity(life.adapter.as_ref(), &record, card.len(), limit);
        let shares_memory = matches!(record.sort, Sort::Software | Sort::Integrated);
        Self {
            facts: DeviceFacts { label: format!("gpu{number}"), ..facts(&record, index, card.len(), slots.most) },
            width_first: slots.first,
            record,
            gauge: Arc::clone(&card[index]),
            card,
            limit,
            // For good, whatever a later life has: the line was drawn with these taken off.
            sizes: sizes(capacity, slots.most, shares_memory),
            injection: Arc::default(),
            answer_timeout,
            life: Mutex::new(life),
        }
    }

    /// Whether it is open. One that is not may be after [`Device::reopen`].
    ///
    /// # Errors
    /// Why it could not be opened.
    pub fn opened(&self) -> Result<(), Fault> {
        self.life().opened()
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn generation(&self) -> Result<Arc<Generation>, Fault> {
        self.life().generation.clone()
    }

    fn adapter(&self) -> Option<wgpu::Adapter> {
        self.life().adapter.clone()
    }

    /// What slots and fetches need of it.
    fn home(&self) -> Home {
        Home {
            gauge: Arc::clone(&self.gauge),
            // Read again each time: a card that could not be asked before may tell by now.
            ceiling: capacity(self.adapter().as_ref(), &self.record, self.card.len(), self.limit),
            sizes: self.sizes,
            injection: Arc::clone(&self.injection),
        }
    }

    /// Faults on purpose, for tests.
    #[doc(hidden)]
    pub fn injection(&self) -> &FaultInjection {
        &self.injection
    }

    /// Loses the device on purpose, for tests.
    #[doc(hidden)]
    pub fn lose(&self) {
        if let Ok(generation) = self.generation() {
            generation.destroy();
        }
    }
}

impl Device for WgpuDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn memory(&self) -> MemoryReading {
        let figures = memory::read(self.adapter().as_ref(), &self.record);
        let ours_all = self.card.iter().map(|gauge| gauge.now()).sum();
        memory::share(figures, self.card.len() as u64, self.gauge.now(), ours_all, self.limit)
    }

    fn overhead(&self) -> Bytes {
        Bytes(self.sizes.total().0 * self.facts.slots as u64) + self.sizes.fetch() + self.sizes.spares()
    }

    fn width_first(&self) -> Option<usize> {
        self.width_first
    }

    fn open_backend(&self) -> Result<Box<dyn Backend>, Fault> {
        let generation = self.generation()?;
        Ok(Box::new(WgpuBackend::open(self.home(), generation)?))
    }

    fn fetch(&self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        let generation = self.generation()?;
        generation.health.check()?;
        let own = GpuBuffer::of(buffer, &Origin::new(&self.gauge, generation.number))?;
        check_range(buffer, offset, into.len())?;
        Fetcher::of(&generation, || self.home())?.fetch(&generation, &own.raw, offset.0, into)?;
        generation.health.check()
    }

    fn reopen(&self) -> Result<(), Fault> {
        if let Ok(generation) = self.generation() {
            generation.health.lose("reopened");
        }
        let mut fresh = Life::begin(&self.record, self.answer_timeout);
        let opened = fresh.opened();
        let mut life = self.life();
        // A card that cannot be found now had memory when it was last seen.
        fresh.adapter = fresh.adapter.or_else(|| life.adapter.clone());
        let old = std::mem::replace(&mut *life, fresh);
        drop(life);
        // Outside the lock: closing waits for what the old life still does.
        drop(old);
        opened
    }
}

/// What one of `share` logical devices may hold at the most.
fn capacity(adapter: Option<&wgpu::Adapter>, record: &Record, share: usize, limit: Option<Bytes>) -> Bytes {
    let figures = memory::read(adapter, record);
    let whole = memory::share(figures, share as u64, Bytes::ZERO, Bytes::ZERO, limit).capacity;
    limit.map_or(whole, |limit| whole.min(limit))
}

/// Only buffers that are written where they lie are written again.
fn sizes(capacity: Bytes, slots: usize, shares_memory: bool) -> Sizes {
    let sizes = Sizes::for_capacity(capacity, slots);
    if shares_memory { sizes.with_spares(capacity) } else { sizes }
}

fn facts(record: &Record, index: usize, share: usize, slots: usize) -> DeviceFacts {
    let name = match share {
        1 => record.name.clone(),
        _ => format!("{} ({} of {share})", record.name, index + 1),
    };
    DeviceFacts {
        label: String::new(),
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
    format!("gpu-{:016x}", XxHash3_64::oneshot(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use plimsoll_runtime::check::known_answer;

    use super::*;
    use crate::discover::discover;

    fn of(record: Record) -> WgpuDevice {
        let (card, slots) = (Arc::from([Arc::default()]), Slots { most: 2, first: Some(1) });
        let answer_timeout = Duration::from_secs(60);
        WgpuDevice::new(Opening { record, card, index: 0, number: 0, slots, limit: None, answer_timeout })
    }

    fn any_gpu() -> Record {
        let found = discover();
        found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers").record.clone()
    }

    #[test]
    fn a_card_that_is_not_there_is_a_device_that_takes_no_work() {
        let device = of(Record { name: "gone".to_owned(), ..any_gpu() });
        let gone =
            |result: Result<(), Fault>| matches!(result, Err(Fault::DeviceLost { detail }) if detail.contains("gone"));
        assert!(gone(device.opened()) && gone(device.open_backend().map(drop)) && gone(device.reopen()));
        let (facts, memory) = (device.facts(), device.memory());
        assert_eq!((facts.name.as_str(), facts.slots, memory.ours), ("gone", 2, Bytes::ZERO));
        assert!(memory.capacity > device.overhead() && device.overhead() > Bytes::ZERO, "{memory:?}");
    }

    #[test]
    fn a_card_that_goes_away_for_a_while_keeps_its_memory_and_comes_back() {
        let record = any_gpu();
        let mut device = of(record.clone());
        let (capacity, overhead) = (device.memory().capacity, device.overhead());
        device.record.name = "gone".to_owned();
        assert!(device.reopen().is_err() && device.opened().is_err() && device.open_backend().is_err());
        assert!(device.adapter().is_some(), "as it was last seen");
        assert_eq!((device.memory().capacity, device.overhead()), (capacity, overhead));
        device.record = record;
        device.reopen().unwrap();
        assert!(device.opened().is_ok());
        known_answer(&mut *device.open_backend().unwrap()).unwrap();
        assert_eq!((device.memory().capacity, device.overhead()), (capacity, overhead));
    }
}
