//! Opens a card, as one device or as several logical ones that share it.
//! Never sets environment variables: that is not safe once threads run. See [`LAVAPIPE_THREADS`].
//! Invariant: each logical device has its own connection to the driver, and losing one leaves the others right.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::Nature;
use plimsoll_runtime::gauge::Gauge;

use crate::device::{Opening, WgpuDevice};
use crate::discover::FoundGpu;

/// Mesa's software GPU reads this when it is opened: the threads of each connection. Several logical devices behave
/// like separate cards if it is `1`; set it in the environment before the process starts.
pub const LAVAPIPE_THREADS: &str = "LP_NUM_THREADS";

/// How to open a card.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// As how many devices to open it; 0 counts as 1. Each gets its part of the memory.
    pub logical: usize,
    /// Bytes that each of them may use at most, if it has more.
    pub memory_limit: Option<Bytes>,
    /// Tasks at once on each. Without this it is measured how many are best: up to 4 on hardware, where one task's copies
    /// run beside another's kernels, and up to 2 on a software GPU, where a second one seldom does more than wait.
    pub slots: Option<usize>,
    /// How long a device may take to answer before it counts as stalled.
    pub answer_timeout: Duration,
    /// The number in the label of the first of them: 2 for `gpu2`.
    pub first_number: usize,
}

impl OpenOptions {
    /// Longer than any sane launch, shorter than anyone's patience.
    pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
    /// Logical devices of one card: more would be slower than fewer on any card there is.
    pub const LOGICAL_LIMIT: usize = 16;

    /// These options with a memory limit.
    #[must_use]
    pub fn with_memory_limit(mut self, limit: impl Into<Option<Bytes>>) -> Self {
        self.memory_limit = limit.into();
        self
    }

    /// These options with a number of logical devices.
    #[must_use]
    pub fn with_logical(mut self, logical: usize) -> Self {
        self.logical = logical;
        self
    }

    /// These options with a number of slots.
    #[must_use]
    pub fn with_slots(mut self, slots: usize) -> Self {
        self.slots = Some(slots);
        self
    }

    /// These options with the number of the first label.
    #[must_use]
    pub fn with_first_number(mut self, number: usize) -> Self {
        self.first_number = number;
        self
    }

    /// These options with a limit on how long a device may take to answer.
    #[must_use]
    pub fn with_answer_timeout(mut self, timeout: Duration) -> Self {
        self.answer_timeout = timeout;
        self
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { logical: 1, memory_limit: None, slots: None, answer_timeout: Self::ANSWER_TIMEOUT, first_number: 0 }
    }
}

/// How many slots a device has, and how many of them are used to begin with.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Slots {
    pub(crate) most: usize,
    /// `None` always uses all of them.
    pub(crate) first: Option<usize>,
}

impl Slots {
    fn usual(nature: Nature) -> Self {
        let (first, most) = if nature == Nature::Software { (1, 2) } else { (2, 4) };
        Self { most, first: Some(first) }
    }

    fn fixed(slots: usize) -> Self {
        Self { most: slots.max(1), first: None }
    }
}

impl FoundGpu {
    /// Opens the card as [`OpenOptions::logical`] devices.
    ///
    /// # Errors
    /// [`Fault::DeviceLost`] with the driver's reason if one of them cannot be opened. [`FoundGpu::devices`] keeps it.
    pub fn open(&self, options: &OpenOptions) -> Result<Vec<Arc<WgpuDevice>>, Fault> {
        let devices = self.devices(options);
        devices.iter().try_for_each(|device| device.opened())?;
        Ok(devices)
    }

    /// The card as [`OpenOptions::logical`] devices, whether or not they can be opened now: [`WgpuDevice::opened`] says.
    /// One that cannot has its facts, takes no work, and is tried again by [`plimsoll_runtime::Device::reopen`].
    pub fn devices(&self, options: &OpenOptions) -> Vec<Arc<WgpuDevice>> {
        let count = options.logical.clamp(1, OpenOptions::LOGICAL_LIMIT);
        let card: Arc<[Arc<Gauge>]> = (0..count).map(|_| Arc::default()).collect();
        let slots = options.slots.map_or_else(|| Slots::usual(self.nature()), Slots::fixed);
        let device = |index| {
            Arc::new(WgpuDevice::new(Opening {
                record: self.record.clone(),
                card: Arc::clone(&card),
                index,
                number: options.first_number + index,
                slots,
                limit: options.memory_limit,
                answer_timeout: options.answer_timeout,
            }))
        };
        (0..count).map(device).collect()
    }
}
