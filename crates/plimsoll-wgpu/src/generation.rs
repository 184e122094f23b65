//! One life of a device, from opening to loss: wgpu's handles, what is known of its health, and waiting for it.
//! Never retries: a new life is a new [`Generation`].
//! Invariant: whatever wgpu does, even panic, comes out as a [`Fault`].

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use plimsoll_core::{Bytes, Fault, MemoryMoment, Nanos};
use wgpu::{ErrorFilter, PollError, PollType, SubmissionIndex};

use crate::completion::{Completion, Signal};
use crate::fetch::Fetcher;
use crate::health::Health;
use crate::pipelines::Pipelines;
use crate::spares::Spares;

/// A wgpu device and its queue.
#[derive(Debug)]
pub(crate) struct Generation {
    /// Counts the lives of all devices of this process.
    pub(crate) number: u64,
    pub(crate) device: wgpu::Device,
    /// Always there, except while dropping.
    queue: Option<wgpu::Queue>,
    /// Held from a submission until its callback is registered, which otherwise could be a later submission's.
    submitting: Mutex<()>,
    last_answer: Arc<Mutex<Instant>>,
    /// The staging buffer of [`plimsoll_runtime::Device::fetch`], while somebody keeps it.
    pub(crate) fetcher: Mutex<Weak<Fetcher>>,
    /// Its freed buffers that are written again, while somebody keeps them.
    pub(crate) spares: Mutex<Weak<Spares>>,
    pub(crate) health: Arc<Health>,
    pub(crate) pipelines: Pipelines,
    /// Bytes of dropped buffers that wgpu may still hold, because work that names them is not known to be done.
    pub(crate) unreclaimed: Arc<AtomicU64>,
    /// Whether its memory is the host's: then a buffer can be written where it lies.
    pub(crate) shares_memory: bool,
    answer_timeout: Duration,
}

impl Generation {
    pub(crate) fn open(adapter: &wgpu::Adapter, answer_timeout: Duration) -> Result<Self, Fault> {
        let shares_memory = shares_memory(adapter);
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("plimsoll"),
            required_features: if shares_memory { MAPPABLE } else { wgpu::Features::empty() },
            required_limits: adapter.limits(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            // Keeps what the driver reserves near what was asked for: the ledger counts on that.
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            trace: wgpu::Trace::Off,
        };
        let opened = catch_unwind(AssertUnwindSafe(|| pollster::block_on(adapter.request_device(&descriptor))));
        let (device, queue) = match opened {
            Ok(Ok(pair)) => pair,
            Ok(Err(error)) => return Err(Fault::DeviceLost { detail: error.to_string() }),
            Err(panic) => return Err(Fault::DeviceLost { detail: panic_text(&*panic) }),
        };
        let health = Arc::new(Health::default());
        listen(&device, &health);
        static LIVES: AtomicU64 = AtomicU64::new(1);
        Ok(Self {
            number: LIVES.fetch_add(1, Relaxed),
            device,
            queue: Some(queue),
            submitting: Mutex::default(),
            last_answer: Arc::new(Mutex::new(Instant::now())),
            fetcher: Mutex::default(),
            spares: Mutex::default(),
            health,
            pipelines: Pipelines::default(),
            unreclaimed: Arc::default(),
            shares_memory,
            answer_timeout,
        })
    }

    /// Bytes in one buffer at most, such that a kernel can bind it as a whole.
    pub(crate) fn buffer_limit(&self) -> Bytes {
        let limits = self.device.limits();
        Bytes(limits.max_buffer_size.min(limits.max_storage_buffer_binding_size) & !3)
    }

    /// Where commands are recorded.
    pub(crate) fn encoder(&self) -> Result<wgpu::CommandEncoder, Fault> {
        self.call(Bytes::ZERO, || self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default()))
    }

    /// Hands recorded work to the device.
    pub(crate) fn submit(&self, encoder: wgpu::CommandEncoder) -> Result<Completion, Fault> {
        let queue = self.queue.as_ref().ok_or_else(|| Fault::DeviceLost { detail: "closed".to_owned() })?;
        let signal = Arc::new(Signal::default());
        let (on_done, last_answer) = (Arc::clone(&signal), Arc::clone(&self.last_answer));
        let turn = lock(&self.submitting);
        let submission = self.call(Bytes::ZERO, || {
            let submission = queue.submit([encoder.finish()]);
            queue.on_submitted_work_done(move || {
                *lock(&last_answer) = Instant::now();
                on_done.set();
            });
            submission
        });
        drop(turn);
        let completion = Completion::new(submission?, signal);
        self.health.check()?;
        Ok(completion)
    }

    /// When it was last heard to have done something.
    pub(crate) fn last_answer(&self) -> Instant {
        *lock(&self.last_answer)
    }

    /// Calls wgpu. What it says against the call, and even a panic, comes out as a fault.
    pub(crate) fn call<T>(&self, wanted: Bytes, action: impl FnOnce() -> T) -> Result<T, Fault> {
        caught(&self.device, action).map_err(|trouble| self.blame(|| trouble.fault(wanted)))
    }

    /// Calls wgpu to compile a kernel. A device that cannot, however its driver says so, does not support the kernel.
    pub(crate) fn compile<T>(&self, kernel: &str, action: impl FnOnce() -> T) -> Result<T, Fault> {
        let compiled = caught(&self.device, action);
        let compiled = compiled.map_err(|trouble| self.blame(|| trouble.while_compiling(kernel)))?;
        // A loss that came meanwhile is told by nothing else, and leaves a pipeline that is none.
        self.tick()?;
        Ok(compiled)
    }

    /// Whatever a lost device says is a consequence of the loss. wgpu tells of one only when it is asked.
    fn blame(&self, otherwise: impl FnOnce() -> Fault) -> Fault {
        self.tick().err().unwrap_or_else(otherwise)
    }

    pub(crate) fn answer_timeout(&self) -> Duration {
        self.answer_timeout
    }

    /// Waits until this submission (or the latest) is done. Its callbacks have run then, or are about to on another
    /// thread that waited too.
    pub(crate) fn wait(&self, submission_index: Option<SubmissionIndex>) -> Result<(), Fault> {
        self.poll(PollType::Wait { submission_index, timeout: Some(self.answer_timeout) })
    }

    /// Lets wgpu run callbacks and free what it can, without waiting.
    pub(crate) fn tick(&self) -> Result<(), Fault> {
        self.poll(PollType::Poll)
    }

    /// wgpu panics out of `poll` if the driver reports a loss while it is waited for.
    fn poll(&self, how: PollType) -> Result<(), Fault> {
        match catch_unwind(AssertUnwindSafe(|| self.device.poll(how))) {
            Ok(Ok(_)) => {}
            Ok(Err(PollError::Timeout)) => return Err(self.stalled()),
            Ok(Err(PollError::WrongSubmissionIndex(..))) => self.health.lose("it refused the work"),
            Err(panic) => self.health.lose(panic_text(&*panic)),
        }
        self.health.check()
    }

    /// It did not answer in time, and counts as lost from now on.
    pub(crate) fn stalled(&self) -> Fault {
        self.health.stall(format!("no answer for {}", Nanos::from(self.answer_timeout)));
        Fault::Stalled { after: self.answer_timeout.into() }
    }

    /// Waits for all work that was handed over; afterwards wgpu holds nothing of it that was dropped before.
    pub(crate) fn reclaim(&self) -> Result<(), Fault> {
        self.unreclaimed.store(0, Relaxed);
        self.wait(None)
    }

    /// Kills it, for tests.
    pub(crate) fn destroy(&self) {
        self.device.destroy();
        // wgpu tells of the loss once the queue is empty and someone asks; the answer is the loss itself.
        let _ = self.wait(None);
        self.health.lose("destroyed on purpose");
    }
}

impl Drop for Generation {
    /// wgpu waits for the device without a time limit when its queue goes, and panics if that fails.
    fn drop(&mut self) {
        let queue = self.queue.take();
        if self.health.is_stalled() {
            // It may never answer: the handle stays, the process goes on.
            std::mem::forget(queue);
            return;
        }
        // A device that fails while it is closed is gone either way.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(queue)));
    }
}

/// Buffers that kernels use and we write. Where the card has memory of its own they would lie on the wrong side of the bus.
const MAPPABLE: wgpu::Features = wgpu::Features::MAPPABLE_PRIMARY_BUFFERS;

fn shares_memory(adapter: &wgpu::Adapter) -> bool {
    let kind = adapter.get_info().device_type;
    matches!(kind, wgpu::DeviceType::Cpu | wgpu::DeviceType::IntegratedGpu) && adapter.features().contains(MAPPABLE)
}

/// What is guarded here is set in single steps, so a panic leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Without these wgpu would panic on an error outside a scope, and tell nobody of a loss.
fn listen(device: &wgpu::Device, health: &Arc<Health>) {
    let on_lost = Arc::clone(health);
    device.set_device_lost_callback(move |reason, message| on_lost.lose(format!("{reason:?}: {message}")));
    let on_error = Arc::clone(health);
    device.on_uncaptured_error(Arc::new(move |error| on_error.lose(format!("unexpected: {error}"))));
}

/// What wgpu said against a call.
#[derive(Debug)]
pub(crate) enum Trouble {
    Reported(wgpu::Error),
    Panicked(String),
}

impl Trouble {
    /// What it means to a task.
    fn fault(self, wanted: Bytes) -> Fault {
        match self {
            Self::Reported(wgpu::Error::OutOfMemory { .. }) => Fault::OutOfMemory { moment: MemoryMoment::Run, wanted },
            Self::Reported(wgpu::Error::Validation { description, .. }) => Fault::work(description),
            Self::Reported(wgpu::Error::Internal { description: detail, .. }) | Self::Panicked(detail) => {
                Fault::DeviceLost { detail }
            }
        }
    }

    /// What it means to a task whose kernel was being compiled: the kernel's CPU twin, or another device, may do.
    fn while_compiling(self, kernel: &str) -> Fault {
        let said = match self {
            Self::Reported(wgpu::Error::OutOfMemory { .. }) => return self.fault(Bytes::ZERO),
            Self::Reported(wgpu::Error::Validation { description, .. } | wgpu::Error::Internal { description, .. }) => {
                description
            }
            Self::Panicked(message) => message,
        };
        Fault::Unsupported { detail: format!("kernel '{kernel}' does not compile: {said}") }
    }
}

/// Runs `action` and catches what wgpu says against it on this thread meanwhile. Its effect then did not happen.
fn caught<T>(device: &wgpu::Device, action: impl FnOnce() -> T) -> Result<T, Trouble> {
    let filters = [ErrorFilter::OutOfMemory, ErrorFilter::Validation, ErrorFilter::Internal];
    let scopes = filters.map(|filter| device.push_error_scope(filter));
    let value = catch_unwind(AssertUnwindSafe(action));
    // Popped in the reverse order, as a stack is.
    let errors: Vec<wgpu::Error> =
        scopes.into_iter().rev().filter_map(|scope| pollster::block_on(scope.pop())).collect();
    match (value, first_cause(errors)) {
        (Err(panic), _) => Err(Trouble::Panicked(panic_text(&*panic))),
        (Ok(_), Some(error)) => Err(Trouble::Reported(error)),
        (Ok(value), None) => Ok(value),
    }
}

/// What went wrong first: memory that ran out, or a driver that failed, leaves an object with which every later step is a
/// validation error too.
fn first_cause(errors: Vec<wgpu::Error>) -> Option<wgpu::Error> {
    errors.into_iter().min_by_key(|error| match error {
        wgpu::Error::OutOfMemory { .. } => 0,
        wgpu::Error::Internal { .. } => 1,
        wgpu::Error::Validation { .. } => 2,
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the driver failed").to_owned()
}

#[cfg(test)]
impl Generation {
    /// A life of the first GPU there is.
    pub(crate) fn of_any_gpu() -> Self {
        let found = crate::discover();
        let found = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
        let adapter = crate::discover::find(&found.record).expect("it is still there");
        Self::open(&adapter, Duration::from_secs(60)).expect("it opens")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out_of_memory() -> wgpu::Error {
        wgpu::Error::OutOfMemory { source: "no room".into() }
    }

    fn validation() -> wgpu::Error {
        wgpu::Error::Validation { source: "no sense".into(), description: "no sense".to_owned() }
    }

    fn internal() -> wgpu::Error {
        wgpu::Error::Internal { source: "no idea".into(), description: "no idea".to_owned() }
    }

    #[test]
    fn memory_that_ran_out_is_the_cause_of_what_follows() {
        let cause = |errors| first_cause(errors).map(|error| Trouble::Reported(error).fault(Bytes(64)));
        let memory = cause(vec![internal(), validation(), out_of_memory()]);
        assert!(matches!(memory, Some(Fault::OutOfMemory { wanted: Bytes(64), .. })), "{memory:?}");
        assert!(matches!(cause(vec![validation(), internal()]), Some(Fault::DeviceLost { .. })));
        assert!(matches!(cause(vec![validation()]), Some(Fault::WorkFailed(_))));
        assert!(cause(Vec::new()).is_none());
    }

    #[test]
    fn a_kernel_that_does_not_compile_is_not_supported_however_it_is_said() {
        let said = [Trouble::Reported(validation()), Trouble::Reported(internal()), Trouble::Panicked("oh".to_owned())];
        for trouble in said {
            let fault = trouble.while_compiling("blur");
            assert!(matches!(&fault, Fault::Unsupported { detail } if detail.contains("'blur'")), "{fault:?}");
        }
        let fault = Trouble::Reported(out_of_memory()).while_compiling("blur");
        assert!(matches!(fault, Fault::OutOfMemory { .. }), "memory keeps its own type: {fault:?}");
    }

    fn broken_shader(device: &wgpu::Device) {
        let source = wgpu::ShaderSource::Wgsl("this is no shader".into());
        drop(device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source }));
    }

    #[test]
    fn a_device_that_is_lost_meanwhile_is_to_blame_for_everything() {
        let then_lost = |generation: &Generation| {
            broken_shader(&generation.device);
            generation.device.destroy();
        };
        let generation = Generation::of_any_gpu();
        assert!(matches!(
            generation.call(Bytes::ZERO, || broken_shader(&generation.device)),
            Err(Fault::WorkFailed(_))
        ));
        let fault = generation.call(Bytes::ZERO, || then_lost(&generation));
        assert!(matches!(fault, Err(Fault::DeviceLost { .. })), "{fault:?}");
        let generation = Generation::of_any_gpu();
        let fault = generation.compile("kernel", || then_lost(&generation));
        assert!(matches!(fault, Err(Fault::DeviceLost { .. })), "{fault:?}");
        let generation = Generation::of_any_gpu();
        let silent = generation.compile("kernel", || generation.device.destroy());
        assert!(matches!(silent, Err(Fault::DeviceLost { .. })), "wgpu says nothing by itself: {silent:?}");
    }

    #[test]
    fn a_panic_in_a_call_is_a_fault() {
        let generation = Generation::of_any_gpu();
        let fault = generation.call(Bytes::ZERO, || panic!("the driver fell over"));
        assert!(matches!(&fault, Err(Fault::DeviceLost { detail }) if detail.contains("fell over")), "{fault:?}");
        let fault = generation.compile("blur", || panic!("the compiler fell over"));
        assert!(matches!(&fault, Err(Fault::Unsupported { detail }) if detail.contains("fell over")), "{fault:?}");
        assert!(generation.call(Bytes::ZERO, || ()).is_ok(), "no error is left over");
    }
}
