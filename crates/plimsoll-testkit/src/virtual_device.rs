//! A device that calculates on the CPU and fails when its script says so.
//! Never sleeps, unless it was given a pace: then each read and each kick lasts that long, outside all locks. A scripted
//! stall is reported at once, with the time it would have taken.
//! Invariant: without a script it passes the same conformance suite as every other device.

mod kicked;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_core::{Bytes, DeviceKind, Fault, MemoryMoment, Nanos};
use plimsoll_runtime::cpu::CpuBackend;
use plimsoll_runtime::gauge::{Charge, Gauge};
use plimsoll_runtime::misuse::{MisuseError, check_launch, check_range, check_readback, check_size};
use plimsoll_runtime::{
    Backend, Buffer, Device, DeviceFacts, Fence, FenceState, Kicks, Launch, MemoryReading, Nature, Origin, Readback,
    Staged,
};

use self::kicked::{Kicked, Work};

/// How long work may be held up before it is a stall: a test that forgets to let it go fails, and does not hang.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

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
    /// Buffers and readbacks asked for, given or not.
    pub allocations: u64,
    /// Kernels launched.
    pub launches: u64,
    /// Reads, and readbacks collected.
    pub reads: u64,
    /// Kicks.
    pub kicks: u64,
    /// Fetches.
    pub fetches: u64,
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
    kicked: Kicked,
    /// Told when work is let through, and when the device is lost or comes back.
    changed: Arc<Condvar>,
}

impl State {
    /// Whether the script says that this happens now.
    fn now(&self, fault: ScriptedFault) -> bool {
        self.script.contains(&fault)
    }

    fn lose(&mut self, reason: &str) -> Fault {
        let detail = self.lost.get_or_insert_with(|| reason.to_owned()).clone();
        self.changed.notify_all();
        Fault::DeviceLost { detail }
    }

    /// Whether the life of this number goes on.
    fn alive(&self, life: u64) -> Result<(), Fault> {
        match &self.lost {
            Some(detail) => Err(Fault::DeviceLost { detail: detail.clone() }),
            None if self.life != life => Err(earlier_life("slot")),
            None => Ok(()),
        }
    }

    /// One more allocation; whether the script refuses it.
    fn allocation_fails(&mut self) -> bool {
        self.calls.allocations += 1;
        self.now(ScriptedFault::OutOfMemory { allocation: self.calls.allocations })
    }

    /// One more read; whether its answer is wrong.
    fn read(&mut self) -> Result<bool, Fault> {
        self.calls.reads += 1;
        let read = self.calls.reads;
        let stall = self.script.iter().find_map(|fault| match *fault {
            ScriptedFault::Stalled { read: nth, after } if nth == read => Some(after),
            _ => None,
        });
        if let Some(after) = stall {
            self.lose("no answer");
            return Err(Fault::Stalled { after });
        }
        Ok(self.now(ScriptedFault::WrongAnswer { read }))
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
    /// How long a read lasts, and a kick.
    pace: Duration,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, if the life of this number goes on.
    fn alive(&self, life: u64) -> Result<MutexGuard<'_, State>, Fault> {
        let state = self.state();
        state.alive(life)?;
        Ok(state)
    }

    /// The CPU's buffer inside one of this life.
    fn own<'a>(&self, buffer: &'a Buffer, life: u64) -> Result<&'a Buffer, Fault> {
        let own = buffer.content::<VirtualBuffer>().ok_or(MisuseError::Foreign("buffer"))?;
        Origin::new(&self.gauge, life).check(&own.origin, "buffer")?;
        Ok(&own.inner)
    }

    /// Waits until work has ended, at most as long as `limit`.
    fn wait(&self, life: u64, work: Option<Work>, limit: Duration) -> Result<FenceState, Fault> {
        let began = Instant::now();
        let mut state = self.alive(life)?;
        let Some(work) = work else { return Ok(FenceState::Done) };
        loop {
            let held = state.kicked.holds(work);
            if !held && work.rest().is_zero() {
                return Ok(FenceState::Done);
            }
            let waited = began.elapsed();
            if waited >= ANSWER_TIMEOUT {
                state.lose("no answer");
                return Err(Fault::Stalled { after: ANSWER_TIMEOUT.into() });
            }
            if waited >= limit {
                return Ok(FenceState::UnderWay);
            }
            let patience = limit.min(ANSWER_TIMEOUT) - waited;
            let (changed, span) = (Arc::clone(&state.changed), if held { patience } else { patience.min(work.rest()) });
            state = changed.wait_timeout(state, span).unwrap_or_else(PoisonError::into_inner).0;
            state.alive(life)?;
        }
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

    /// Of the work that is kicked from now on only so many pieces end, until it is released: ordering in tests needs no clock.
    pub fn hold_after(&self, kicks: u64) {
        self.shared.state().kicked.hold_after(kicks);
    }

    /// Lets all work end that was held up.
    pub fn release(&self) {
        let mut state = self.shared.state();
        state.kicked.release();
        state.changed.notify_all();
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
        let origin = Origin::new(&self.shared.gauge, life);
        Ok(Box::new(VirtualBackend {
            inner: CpuBackend::new(Arc::clone(&self.shared.inner_gauge), Bytes::MAX),
            shared: Arc::clone(&self.shared),
            scope: Arc::default(),
            life,
            last: None,
            kicks: Kicks::new(origin.clone()),
            staged: Staged::new(origin.clone()),
            handed_over_with: Vec::new(),
            origin,
        }))
    }

    /// Behind everything that was kicked before, as in a queue.
    fn fetch(&self, buffer: &Buffer, offset: Bytes, into: &mut [u8]) -> Result<(), Fault> {
        let (life, before) = {
            let mut state = self.shared.state();
            state.alive(state.life)?;
            state.calls.fetches += 1;
            (state.life, state.kicked.all())
        };
        let own = self.shared.own(buffer, life)?;
        check_range(buffer, offset, into.len())?;
        self.shared.wait(life, before, Duration::MAX)?;
        CpuBackend::new(Arc::clone(&self.shared.inner_gauge), Bytes::MAX).read(own, offset, into)
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
        state.changed.notify_all();
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

    /// Every read and every kick lasts this long, beside those of other slots: a device of a known speed for benchmarks on
    /// real threads. A kick returns at once; who waits for its fence waits for the rest.
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
            label: self.name.clone(),
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
    origin: Origin,
    /// What was kicked last.
    last: Option<Work>,
    kicks: Kicks,
    staged: Staged,
    /// The readbacks that wait to be handed over.
    handed_over_with: Vec<HandedOverWith>,
}

fn earlier_life(what: &str) -> Fault {
    Fault::DeviceLost { detail: format!("the {what} went with an earlier life of the device") }
}

struct VirtualBuffer {
    inner: Buffer,
    origin: Origin,
}

/// The work that a readback is done with; none if its slot has kicked nothing.
type HandedOverWith = Arc<OnceLock<Option<Work>>>;

struct VirtualReadback {
    inner: Readback,
    handed_over_with: HandedOverWith,
}

impl VirtualBackend {
    /// The state, if this slot's life goes on.
    fn alive(&self) -> Result<MutexGuard<'_, State>, Fault> {
        self.shared.alive(self.life)
    }

    fn own<'a>(&self, buffer: &'a Buffer) -> Result<&'a Buffer, Fault> {
        self.shared.own(buffer, self.life)
    }

    /// Promises memory for `bytes`, unless the script says that there is none.
    fn charge(&self, bytes: Bytes) -> Result<Charge, Fault> {
        let refused = || Fault::OutOfMemory { moment: MemoryMoment::Run, wanted: bytes };
        if self.alive()?.allocation_fails() {
            return Err(refused());
        }
        Charge::new(bytes, self.shared.capacity, &self.shared.gauge, &self.scope).ok_or_else(refused)
    }

    /// Everything recorded is handed over, to be done with what was kicked last.
    fn hand_over(&mut self) -> Result<(), Fault> {
        self.inner.finish()?;
        for handed_over_with in self.handed_over_with.drain(..) {
            // Each is in the list once, so nothing was set before.
            let _ = handed_over_with.set(self.last);
        }
        self.staged.handed_over();
        Ok(())
    }
}

fn tamper(wrong: bool, into: &mut [u8]) {
    if let (true, Some(byte)) = (wrong, into.first_mut()) {
        *byte ^= 0x40;
    }
}

impl Backend for VirtualBackend {
    fn buffer_limit(&self) -> Bytes {
        self.shared.capacity
    }

    fn allocate(&mut self, bytes: Bytes) -> Result<Buffer, Fault> {
        drop(self.alive()?);
        check_size(bytes)?;
        let charge = self.charge(bytes)?;
        let own = VirtualBuffer { inner: self.inner.allocate(bytes)?, origin: self.origin.clone() };
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
        let wrong = self.alive()?.read()?;
        self.shared.wait(self.life, self.last, Duration::MAX)?;
        if !self.shared.pace.is_zero() {
            std::thread::sleep(self.shared.pace);
        }
        self.inner.read(own, offset, into)?;
        self.kicks.all_drained();
        tamper(wrong, into);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Fault> {
        drop(self.alive()?);
        self.hand_over()
    }

    fn kick(&mut self) -> Result<Fence, Fault> {
        drop(self.alive()?);
        self.kicks.check_limit()?;
        let work = {
            let mut state = self.alive()?;
            state.calls.kicks += 1;
            state.kicked.kick(self.last, self.shared.pace)
        };
        self.last = Some(work);
        self.hand_over()?;
        Ok(self.kicks.fence(work))
    }

    fn wait(&mut self, fence: &Fence, limit: Duration) -> Result<FenceState, Fault> {
        drop(self.alive()?);
        let work = *self.kicks.work_of::<Work>(fence)?;
        Ok(fence.found(self.shared.wait(self.life, Some(work), limit)?))
    }

    fn stage_read(&mut self, buffer: &Buffer, offset: Bytes, bytes: Bytes) -> Result<Readback, Fault> {
        drop(self.alive()?);
        let own = self.own(buffer)?;
        check_readback(buffer, offset, bytes)?;
        let charge = self.charge(bytes)?;
        let (inner, handed_over_with) = (self.inner.stage_read(own, offset, bytes)?, HandedOverWith::default());
        self.handed_over_with.push(Arc::clone(&handed_over_with));
        Ok(self.staged.record(VirtualReadback { inner, handed_over_with }, charge))
    }

    fn collect(&mut self, readback: Readback, into: &mut [u8]) -> Result<(), Fault> {
        drop(self.alive()?);
        let (own, _charge) = self.staged.collect::<VirtualReadback>(readback, into)?;
        let wrong = self.alive()?.read()?;
        let work = own.handed_over_with.get().copied().flatten();
        self.shared.wait(self.life, work, Duration::MAX)?;
        self.inner.collect(own.inner, into)?;
        tamper(wrong, into);
        Ok(())
    }

    fn abandon(&mut self) {
        self.inner.abandon();
        self.handed_over_with.clear();
        self.staged.abandoned();
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
