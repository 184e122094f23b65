//! What is really so: the bytes on each virtual device, counted apart from the ledger, and how every task really went.
//! Never asks the scheduler: that is the point.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_core::event::FaultKind;
use plimsoll_core::task::SessionShape;
use plimsoll_core::{Bytes, DeviceId, Moment, Nanos, TaskError, TaskId, TaskSpec, WorkloadId};

/// One device's bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account(Rc<Cell<u64>>);

impl Account {
    pub(super) fn bytes(&self) -> Bytes {
        Bytes(self.0.get())
    }

    pub(super) fn allocate(&self, bytes: Bytes) -> Allocation {
        self.0.set(self.0.get() + bytes.0);
        Allocation { bytes, account: self.clone() }
    }
}

/// Bytes on a device until dropped.
#[derive(Debug)]
pub struct Allocation {
    bytes: Bytes,
    account: Account,
}

impl Allocation {
    pub(super) fn bytes(&self) -> Bytes {
        self.bytes
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.account.0.set(self.account.0.get() - self.bytes.0);
    }
}

/// An open session, and what it was opened for.
#[derive(Debug)]
pub struct VirtualSession {
    pub(super) _bytes: Allocation,
    pub(super) made_for: MadeFor,
}

/// All that must be the same for a session to be used again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct MadeFor {
    pub(super) device: DeviceId,
    /// Of that device.
    pub(super) epoch: u32,
    pub(super) workload: WorkloadId,
    pub(super) rung: &'static str,
    pub(super) shape: SessionShape,
}

/// How a task went in truth.
#[derive(Clone, Debug)]
pub struct TaskTruth {
    /// What the scheduler was told.
    pub spec: TaskSpec,
    /// What it really costs.
    pub cost: Cost,
    /// Whether the work itself fails.
    pub fails: bool,
    /// Whether it panics.
    pub panics: bool,
    /// Its id, once it was taken in.
    pub id: Option<TaskId>,
    /// When it was taken in.
    pub submitted_at: Moment,
    /// Which task it was to be taken in, counted over all of them.
    pub order: Option<u64>,
    /// The tasks that must have succeeded before.
    pub predecessors: Vec<usize>,
    /// The handles that it was given.
    pub(super) handles: Vec<usize>,
    /// Whether it was handed in with others as a known set, which may be given another order.
    pub in_set: bool,
    /// Every start that failed: the rung, the device, and why.
    pub failures: Vec<(usize, DeviceId, FaultKind)>,
    /// How often it was started.
    pub starts: usize,
    /// How often it ended: once, if all is well.
    pub ends: u32,
    /// How it ended.
    pub end: Option<Result<DeviceId, TaskError>>,
    /// When it ended.
    pub ended_at: Moment,
}

impl TaskTruth {
    pub(super) fn new(spec: TaskSpec, cost: Cost) -> Self {
        Self {
            spec,
            cost,
            fails: false,
            panics: false,
            id: None,
            submitted_at: Moment::START,
            order: None,
            predecessors: Vec::new(),
            handles: Vec::new(),
            in_set: false,
            failures: Vec::new(),
            starts: 0,
            ends: 0,
            end: None,
            ended_at: Moment::START,
        }
    }

    /// Whether it ended with a result.
    pub fn succeeded(&self) -> bool {
        matches!(self.end, Some(Ok(_)))
    }
}

/// What a task really costs.
#[derive(Copy, Clone, Debug, Default)]
pub struct Cost {
    /// On a CPU slot of speed 1.
    pub cpu: Nanos,
    /// On a GPU of speed 1.
    pub gpu: Nanos,
    /// To open a session.
    pub open: Nanos,
    /// To prepare a reference.
    pub bring: Nanos,
}
