//! A device that calculates on the CPU and fails when its script says so.
//! Never sleeps, unless it was given a pace: then each read lasts that long, outside all locks. A stall is reported at
//! once, with the time it would have taken.
//! Invariant: without a script it passes the same conformance suite as every other device.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::{Bytes, DeviceKind, Fault, MemoryMoment, Nanos};
use plimsoll_runtime::cpu::CpuBackend;
use plimsoll_runtime::gauge::{Charge, Gauge};
use plimsoll_runtime::misuse::{Misuse, check_launch, check_range, check_size};
use plimsoll_runtime::{Backend, Buffer, Device, DeviceFacts, Launch, MemoryReading, Nature};

/// One thing that goes wrong. Calls are counted over all slots and lives of the device, from 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScriptedFault {
    /// This allocation finds no room.
    OutOfMemory {
        /// Which allocation.
        allocation: u64,
    },
    /// The device is lost at this launch and stays so until it is reopened.
    Lost {
        /// Which launch.
        launch: u64,
    },
    /// The device does not answer this read, and counts as lost from then on.
    Stalled {
        /// Which read.
        read: u64,
        /// How long it would have been waited for.
        after: Nanos,
    },
    /// This read gives a wrong first word.
    WrongAnswer {
        /// Which read.
        read: u64,
    },
    /// The driver does not compile the kernel of this name.
    Unsupported {
        /// Which kernel.
        kernel: &'static str,
    },
    /// This attempt to reopen the device fails.
    StaysAway {
        /// Which attempt.
        reopening: u64,
    },
}

/// Calls so far.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Buffers asked for, given or not.
    pub allocations: u64,
    /// Kernels launched.
    pub launches: u64,
    /// Reads.
    pub reads: u64,
    /// Attempts to reopen it.
    pub reopenings: u64,
    /// Slots opened.
    pub slots: u64,
}

#[derive(Debug, Default)]
struct State {
    script: Vec<ScriptedFault>,
    calls: Calls,
    /// Counts the lives of the device.
    life: u64,
    lost: Option<String>,
}

impl State {
    /// Whether the script says that this happens now.
    fn now(&self, fault: ScriptedFault) -> bool {
        self.script.contains(&fault)
    }

    fn lose(&mut self, reason: &str) -> Fault {
        let detail = self.lost.get_or_insert_with(|| reason.to_owned()).clone();
        Fault::DeviceLost { detail }
    }
}

/// What the device and its slots share.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    gauge: Arc<Gauge>,
    /// Of the CPU buffers inside ours. Nobody looks at it: ours are what counts.
    inner_gauge: Arc<Gauge>,
    capacity: Bytes,
    others: AtomicU64,
    /// How long a read lasts.
    pace: Duration,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A scripted device.
///
/// ```
/// use plimsoll_core::{Bytes, Fault};
/// use plimsoll_runtime::{Device, check};
/// use plimsoll_testkit::virtual_device::{ScriptedFault, VirtualDevice};
///
/// let device = VirtualDevice::gpu("flaky").memory(Bytes::mib(64)).fault(ScriptedFault::Lost { launch: 1 }).build();
/// assert!(matches!(check::known_answer(&mut *device.open_backend()?), Err(Fault::DeviceLost { .. })));
/// device.reopen()?;
/// check::known_answer(&mut *device.open_backend()?)?;
/// # Ok::<(), Fault>(())
/// ```
#[derive(Debug)]
pub struct VirtualDevice {
    facts: DeviceFacts,
    width_first: Option<usize>,
    shared: Arc<Shared>,
}

impl VirtualDevice {
    /// A pretended GPU of this name.
    pub fn gpu(name: &str) -> VirtualDeviceBuilder {
        VirtualDeviceBuilder::new(name, DeviceKind::Gpu)
    }

    /// A pretended CPU of this name.
    pub fn cpu(name: &str) -> VirtualDeviceBuilder {
        VirtualDeviceBuilder::new(name, DeviceKind::Cpu)
    }

    /// Loses it now.
    pub fn lose(&self) {
        self.shared.state().lose("lost on purpose");
    }

    /// Adds to its script.
    pub fn add_fault(&self, fault: ScriptedFault) {
        self.shared.state().script.push(fault);
    }

    /// Lets other programs hold this much of it from now on.
    pub fn occupy(&self, others: Bytes) {
        self.shared.others.store(others.0, Relaxed);
    }

    /// Calls so far, to script the next ones.
    pub fn calls(&self) -> Calls {
        self.shared.state().calls
    }
}

impl Device for VirtualDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn memory(&self) -> MemoryReading {
        let (capacity, ours) = (self.shared.capacity, self.shared.gauge.now());
        let free = capacity - Bytes(self.shared.others.load(Relaxed)) - ours;
        MemoryReading { capacity, free, limit: None, ours, resident: None, source: "script" }
    }

    fn width_first(&self) -> Option<usize> {
        self.width_first
    }

    fn open_backend(&self) -> Result<Box<dyn Backend>, Fault> {
        let life = {
            let mut state = self.shared.state();
            state.calls.slots += 1;
            match &state.lost {
                Some(detail) => return Err(Fault::DeviceLost { detail: detail.clone() }),
                None => state.life,
            }
        };
        Ok(Box::new(VirtualBackend {
            inner: CpuBackend::new(Arc::clone(&self.shared.inner_gauge), Bytes::MAX),
            shared: Arc::clone(&self.shared),
            scope: Arc::default(),
            life,
        }))
    }

    fn reopen(&self) -> Result<(), Fault> {
        let mut state = self.shared.state();
        state.calls.reopenings += 1;
        let reopening = state.calls.reopenings;
        if state.now(ScriptedFault::StaysAway { reopening }) {
            return Err(state.lose("it stays away"));
        }
        state.life += 1;
        state.lost = None;
        Ok(())
    }
}

/// How to pretend a device.
#[derive(Clone, Debug)]
pub struct VirtualDeviceBuilder {
    name: String,
    kind: DeviceKind,
    memory: Bytes,
    slots: usize,
    width_first: Option<usize>,
    pace: Duration,
    script: Vec<ScriptedFault>,
}

impl VirtualDeviceBuilder {
    fn new(name: &str, kind: DeviceKind) -> Self {
        let (memory, pace) = (Bytes::gib(1), Duration::ZERO);
        Self { name: name.to_owned(), kind, memory, slots: 1, width_first: None, pace, script: Vec::new() }
    }

    /// The memory it has; 1 GiB without this.
    #[must_use]
    pub fn memory(mut self, memory: Bytes) -> Self {
        self.memory = memory;
        self
    }

    /// Tasks at once; 1 without this.
    #[must_use]
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots.max(1);
        self
    }

    /// Leaves it to be measured how many of its slots are best used at once, beginning with this many.
    #[must_use]
    pub fn width_first(mut self, slots: usize) -> Self {
        self.width_first = Some(slots);
        self
    }

    /// Every read lasts this long, beside those of other slots: a device of a known speed for benchmarks on real threads.
    #[must_use]
    pub fn pace(mut self, span: Duration) -> Self {
        self.pace = span;
        self
    }

    /// Adds to its script.
    #[must_use]
    pub fn fault(mut self, fault: ScriptedFault) -> Self {
        self.script.push(fault);
        self
    }

    /// Makes it.
    pub fn build(self) -> VirtualDevice {
        let facts = DeviceFacts {
            key: format!("virtual-{}", self.name),
            name: self.name,
            kind: self.kind,
            nature: Nature::Virtual,
            driver: String::new(),
            api: "virtual".to_owned(),
            bus: String::new(),
            slots: self.slots,
        };
        let shared = Shared {
            state: Mutex::new(State { script: self.script, ..State::default() }),
            gauge: Arc::default(),
            inner_gauge: Arc::default(),
            capacity: self.memory,
            others: AtomicU64::new(0),
            pace: self.pace,
        };
        VirtualDevice { facts, width_first: self.width_first, shared: Arc::new(shared) }
    }
}

/// A slot: every call asks the script first, then the CPU's backend.
struct VirtualBackend {
    inner: CpuBackend,
    shared: Arc<Shared>,
    scope: Arc<Gauge>,
    life: u64,
}

fn earlier_life(what: &str) -> Fault {
    Fault::DeviceLost { detail: format!("the {what} went with an earlier life of the device") }
}

struct VirtualBuffer {
    inner: Buffer,
    home: Arc<Gauge>,
    life: u64,
}

impl VirtualBackend {
    /// The state, if this slot's life goes on.
    fn alive(&self) -> Result<MutexGuard<'_, State>, Fault> {
        let state = self.shared.state();
        match &state.lost {
            Some(detail) => Err(Fault::DeviceLost { detail: detail.clone() }),
            None if state.life != self.life => Err(earlier_life("slot")),
            None => Ok(state),
        }
    }

    fn own<'a>(&self, buffer: &'a Buffer) -> Result<&'a Buffer, Fault> {
        let own = buffer.content::<VirtualBuffer>().ok_or(Misuse::ForeignBuffer)?;
        if !Arc::ptr_eq(&own.home, &self.shared.gauge) {
            return Err(Misuse::ForeignBuffer.into());
        }
        if own.life != self.life {
            return Err(earlier_life("buffer"));
        }
        Ok(&own.inner)
    }
}

impl Backend for VirtualBackend {
    fn buffer_limit(&self) -> Bytes {
        self.shared.capacity
    }

    fn allocate(&mut self, bytes: Bytes) -> Result<Buffer, Fault> {
        let scripted = {
            let mut state = self.alive()?;
            check_size(bytes)?;
            state.calls.allocations += 1;
            state.now(ScriptedFault::OutOfMemory { allocation: state.calls.allocations })
        };
        let refused = || Fault::OutOfMemory { moment: MemoryMoment::Run, wanted: bytes };
        if scripted {
            return Err(refused());
        }
        let charge = Charge::new(bytes, self.shared.capacity, &self.shared.gauge, &self.scope).ok_or_else(refused)?;
        let inner = self.inner.allocate(bytes)?;
        let own = VirtualBuffer { inner, home: Arc::clone(&self.shared.gauge), life: self.life };
        Ok(Buffer::new(Box::new(own), charge))
    }

    fn poison(&mut self, buffer: &Buffer) -> Result<(), Fault> {
        drop(self.alive()?);
        let own = self.own(buffer)?;
        self.inner.poison(own)
    }

    fn write(&mut self, buffer: &Buffer, offset: Bytes, data: &[u8]) -> Result<(), Fault> {
        drop(self.alive()?);
        let own = self.own(buffer)?;
        self.inner.write(own, offset, data)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Fault> {
        drop(self.alive()?);
        check_launch(launch)?;
        let own: Vec<&Buffer> = launch.buffers.iter().map(|buffer| self.own(buffer)).collect::<Result<_, _>>()?;
        {
            let mut state = self.alive()?;
            state.calls.launches += 1;
            let (kernel, launch) = (launch.kernel.name, state.calls.launches);
            if state.now(ScriptedFault::Unsupported { kernel }) {
                return Err(Fault::Unsupported { detail: format!("kernel {kernel} does not compile") });
            }
            if state.now(ScriptedFault::Lost { launch }) {
                return Err(state.lose("lost while running"));
            }
        }
        self.inner.launch(&Launch { buffers: &own, ..*launch })
    }

    fn read(&mut self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        drop(self.alive()?);
        let own = self.own(buffer)?;
        check_range(buffer, offset, into.len())?;
        let scripted = {
            let mut state = self.alive()?;
            state.calls.reads += 1;
            let read = state.calls.reads;
            let stall = state.script.iter().find_map(|fault| match *fault {
                ScriptedFault::Stalled { read: nth, after } if nth == read => Some(after),
                _ => None,
            });
            if let Some(after) = stall {
                state.lose("no answer");
                return Err(Fault::Stalled { after });
            }
            state.now(ScriptedFault::WrongAnswer { read })
        };
        if !self.shared.pace.is_zero() {
            std::thread::sleep(self.shared.pace);
        }
        self.inner.read(own, offset, into)?;
        if let (true, Some(byte)) = (scripted, into.first_mut()) {
            *byte ^= 0x40;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Fault> {
        drop(self.alive()?);
        self.inner.finish()
    }

    fn abandon(&mut self) {
        self.inner.abandon();
    }

    fn charge_to(&mut self, scope: Arc<Gauge>) -> Arc<Gauge> {
        std::mem::replace(&mut self.scope, scope)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_runtime::check::known_answer;

    use super::*;

    fn check(device: &VirtualDevice) -> Result<(), Fault> {
        known_answer(&mut *device.open_backend()?)
    }

    #[test]
    fn memory_runs_out_at_the_scripted_allocation_only() {
        let device = VirtualDevice::gpu("v").fault(ScriptedFault::OutOfMemory { allocation: 2 }).build();
        assert!(matches!(check(&device), Err(Fault::OutOfMemory { .. })));
        check(&device).unwrap();
        assert_eq!(device.memory().ours, Bytes::ZERO);
    }

    #[test]
    fn a_lost_device_stays_lost_until_it_comes_back() {
        let device = VirtualDevice::gpu("v").fault(ScriptedFault::StaysAway { reopening: 1 }).build();
        let mut slot = device.open_backend().unwrap();
        device.lose();
        assert!(matches!(device.open_backend().err(), Some(Fault::DeviceLost { .. })));
        assert!(matches!(device.reopen(), Err(Fault::DeviceLost { .. })));
        assert!(matches!(check(&device), Err(Fault::DeviceLost { .. })));
        device.reopen().unwrap();
        check(&device).unwrap();
        assert!(matches!(known_answer(&mut *slot), Err(Fault::DeviceLost { .. })), "a slot of an earlier life");
    }

    #[test]
    fn a_stall_is_reported_once_and_then_it_is_a_loss() {
        let after = Nanos::seconds(60);
        let device = VirtualDevice::gpu("v").fault(ScriptedFault::Stalled { read: 1, after }).build();
        assert!(matches!(check(&device), Err(Fault::Stalled { after: waited }) if waited == after));
        assert!(matches!(check(&device), Err(Fault::DeviceLost { .. })));
        device.reopen().unwrap();
        check(&device).unwrap();
    }

    #[test]
    fn a_wrong_answer_is_noticed_by_the_known_answer() {
        let device = VirtualDevice::gpu("v").fault(ScriptedFault::WrongAnswer { read: 2 }).build();
        check(&device).unwrap();
        assert!(matches!(check(&device), Err(Fault::WrongAnswer { .. })));
        check(&device).unwrap();
    }

    #[test]
    fn a_kernel_that_does_not_compile_is_not_supported_each_time() {
        let device = VirtualDevice::gpu("v").build();
        check(&device).unwrap();
        let kernel = plimsoll_runtime::probe::known_answer::KERNEL.name;
        device.add_fault(ScriptedFault::Unsupported { kernel });
        for _ in 0..2 {
            assert!(matches!(check(&device), Err(Fault::Unsupported { .. })));
        }
    }

    #[test]
    fn with_a_pace_each_read_lasts_that_long() {
        let pace = Duration::from_millis(3);
        let device = VirtualDevice::gpu("v").pace(pace).build();
        let began = std::time::Instant::now();
        check(&device).unwrap();
        let reads = u32::try_from(device.calls().reads).unwrap();
        assert!(reads > 0 && began.elapsed() >= pace * reads);
    }

    #[test]
    fn other_programs_take_from_what_is_free() {
        let device = VirtualDevice::gpu("v").memory(Bytes::mib(10)).build();
        device.occupy(Bytes::mib(7));
        assert_eq!(device.memory().free, Bytes::mib(3));
        assert_eq!(device.memory().capacity, Bytes::mib(10));
    }
}
