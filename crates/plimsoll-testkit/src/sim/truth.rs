//! What is really so: the bytes on each virtual device, counted apart from the ledger, and how every task really went.
//! Never asks the scheduler: that is the point.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_core::event::FaultKind;
use plimsoll_core::task::SessionShape;
use plimsoll_core::{Bytes, DeviceId, Moment, Nanos, SequenceId, TaskError, TaskId, TaskSpec, ValueId, WorkloadId};

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
    /// The sequence that owns it, and what it holds of that.
    pub(super) holds: Option<(SequenceId, Held)>,
}

/// What a held session holds: the jobs that were done on it and not drained, first to last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held(pub(super) Vec<usize>);

/// An output that stays where it was made.
#[derive(Debug)]
pub struct VirtualValue {
    pub(super) bytes: Allocation,
    pub(super) device: DeviceId,
    /// Of that device, when it was made: how often it had gone away, and its epoch.
    pub(super) generation: u32,
    pub(super) epoch: u32,
    /// What it says: the same whenever the same job makes it of the same values.
    pub(super) content: u64,
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
    /// The tasks whose values it reads. It is handed in once they are done, or once they are named if they are claimed.
    pub takes: Vec<usize>,
    /// It is claimed or done what it reads, and it was handed in.
    pub(super) is_handed_in: bool,
    /// The tasks that read its value.
    pub readers: Vec<usize>,
    /// The item that it is a stage of, and the stages before it.
    pub(super) stage: Option<(usize, u8)>,
    /// The handle to its value is given up before that is made.
    pub gives_up_its_value: bool,
    /// Its value, and how many handles to it there are.
    pub(super) value: Option<(ValueId, usize)>,
    /// The task of the same held sequence that it waits for.
    pub held_after: Option<usize>,
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
            takes: Vec::new(),
            is_handed_in: false,
            readers: Vec::new(),
            stage: None,
            gives_up_its_value: false,
            value: None,
            held_after: None,
            handles: Vec::new(),
            in_set: false,
            failures: Vec::new(),
            starts: 0,
            ends: 0,
            end: None,
            ended_at: Moment::START,
        }
    }

    /// The tasks without which it cannot be done.
    pub fn needs(&self) -> impl Iterator<Item = usize> + '_ {
        self.predecessors.iter().chain(&self.takes).copied().chain(self.held_after)
    }

    /// The bytes of its output that stay.
    pub(super) fn value_bytes(&self) -> Bytes {
        self.spec.ladder.rungs()[0].value
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
