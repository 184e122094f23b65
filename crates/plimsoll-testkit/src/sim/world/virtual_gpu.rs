//! A virtual device: what it is, what goes wrong on it, and what is on it in truth.
//! Never asks the scheduler anything.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use plimsoll_core::line::{Margin, Memory};
use plimsoll_core::residency::PreparedKey;
use plimsoll_core::{Ailment, Bytes, DeviceKind, Nanos};

use super::slots::Slots;
use crate::sim::truth::{Account, Allocation};

/// A virtual device.
#[derive(Clone, Debug)]
pub struct VirtualGpu {
    /// CPU or GPU.
    pub kind: DeviceKind,
    /// Tasks at once at the most.
    pub slots: usize,
    /// Tasks at once to begin with, if how many are best is to be measured.
    pub width_first: Option<usize>,
    /// How much it gets done with 1, 2, 3 … tasks at once, as a multiple of what it gets done with one: copies of one hide
    /// behind kernels of another. Each task counts in full where nothing is said.
    pub at_once: Vec<f64>,
    /// How much faster than the reference it runs.
    pub speed: f64,
    /// Its memory.
    pub memory: Bytes,
    /// How its line follows from its memory.
    pub margin: Margin,
    /// What goes wrong.
    pub faults: Faults,
    /// The patience of the scheduler with it.
    pub stall_after: Option<Nanos>,
    /// Its weight for the weighted strategy.
    pub weight: Option<f64>,
    /// What the program beside our tasks holds of its memory, if nobody counts what our tasks have on the heap and only
    /// the process as a whole is measured.
    pub program: Option<Bytes>,
}

impl VirtualGpu {
    /// A device without faults, all of whose memory may be promised.
    pub fn new(kind: DeviceKind, slots: usize, speed: f64, memory: Bytes) -> Self {
        Self {
            kind,
            slots,
            width_first: None,
            at_once: Vec::new(),
            speed,
            memory,
            margin: Margin { share: 1.0, limit: None },
            faults: Faults::default(),
            stall_after: None,
            weight: None,
            program: None,
        }
    }

    /// The highest its line can rise: with no other program on it.
    pub(crate) fn ceiling(&self) -> Bytes {
        self.margin.line(Memory { capacity: self.memory, free: self.memory, ..Memory::default() })
    }
}

/// What goes wrong on a device, as the chance per run.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Memory runs out while opening, preparing or running.
    pub out_of_memory: f64,
    /// The answer is wrong, and noticed.
    pub wrong_answer: f64,
    /// No answer comes for a long time.
    pub stall: f64,
    /// The device goes away in the middle.
    pub lost: f64,
    /// A try to reopen it fails.
    pub reopen_fails: f64,
    /// Its known answer is not given after an out-of-memory.
    pub check_fails: f64,
    /// Runs take up to this many times longer than they should.
    pub jitter: f64,
    /// Rungs that its driver does not compile.
    pub unsupported: Vec<&'static str>,
}

/// A prepared reference that lies on a device, or that a run still holds.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) key: PreparedKey,
    /// Of its device, when it was made.
    pub(crate) epoch: u32,
    pub(crate) bytes: Weak<Allocation>,
}

/// A device as it is in truth.
pub(crate) struct VirtualState {
    pub(crate) gpu: VirtualGpu,
    pub(crate) account: Account,
    /// Grows when it goes away.
    pub(crate) generation: u32,
    /// It went away and was not opened again.
    pub(crate) is_lost: bool,
    /// What other programs hold of its memory.
    pub(crate) others: Bytes,
    /// Whether such programs come and go at all.
    pub(crate) has_strangers: bool,
    /// What programs with a grant hold of its memory.
    pub(crate) programs: Account,
    /// Whether more was ever used of it than there is.
    pub(crate) was_overfull: Cell<bool>,
    pub(crate) slots: Slots,
    /// Grows whenever nothing that was made before may be found again.
    pub(crate) epoch: u32,
    /// Grows with every quarantine.
    pub(crate) quarantines: u32,
    /// How many quarantines there had been when it was last put into one for a wrong answer or for a check that it did
    /// not pass, that one included.
    pub(crate) last_wrong: u32,
    /// Checks after an out-of-memory that are under way.
    pub(crate) checks: u32,
    /// Attempts whose results wait for those checks.
    pub(crate) held: Vec<usize>,
    pub(crate) prepared: Vec<Prepared>,
}

impl VirtualState {
    pub(crate) fn new(gpu: VirtualGpu, width: usize) -> Self {
        Self {
            account: Account::default(),
            generation: 0,
            is_lost: false,
            others: Bytes::ZERO,
            has_strangers: false,
            programs: Account::default(),
            was_overfull: Cell::new(false),
            slots: Slots::new(gpu.slots, width),
            epoch: 0,
            quarantines: 0,
            last_wrong: 0,
            checks: 0,
            held: Vec::new(),
            prepared: Vec::new(),
            gpu,
        }
    }

    /// How much longer a run takes because of those beside it.
    pub(crate) fn crowding(&self) -> f64 {
        let at_once = self.slots.busy().max(1);
        self.gpu.at_once.get(at_once - 1).map_or(1.0, |gain| at_once as f64 / gain)
    }

    /// Bytes that nobody holds, we or others.
    pub(crate) fn physically_free(&self) -> Bytes {
        let programs = self.others + self.programs.bytes();
        let used = programs + self.gpu.program.unwrap_or_default() + self.account.bytes();
        self.was_overfull.set(self.was_overfull.get() || used > self.gpu.memory);
        self.gpu.memory - used
    }

    /// What its driver says of its memory.
    pub(crate) fn reading(&self) -> Memory {
        let (capacity, free, real) = (self.gpu.memory, self.physically_free(), self.account.bytes());
        match self.gpu.program {
            Some(program) => Memory { capacity, free, ours: Bytes::ZERO, resident: Some(program + real) },
            None => Memory { capacity, free, ours: real, resident: None },
        }
    }

    /// The scheduler put it into quarantine.
    pub(crate) fn quarantined(&mut self, ailment: Ailment) {
        self.epoch += 1;
        self.quarantines += 1;
        if ailment == Ailment::WrongAnswer || self.checks > 0 {
            self.last_wrong = self.quarantines;
        }
        self.checks = 0;
    }

    /// Keeps count of a reference that was prepared.
    pub(crate) fn note_prepared(&mut self, key: PreparedKey, epoch: u32, bytes: &Rc<Allocation>) {
        self.prepared.retain(|prepared| prepared.bytes.strong_count() > 0);
        self.prepared.push(Prepared { key, epoch, bytes: Rc::downgrade(bytes) });
    }
}
