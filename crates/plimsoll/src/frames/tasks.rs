//! Makes tasks of frames. For a chain that looks at neighbours, a frame's first part is handed in as it comes, and what
//! that keeps is a value which the tasks of the frames around it take; runs of consecutive frames stay on one device.
//! Invariant: tasks come out in the order of the frames, one for each; a frame is kept until the last that looks at it is
//! done, and no longer.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_core::{DeviceId, SequenceId};
use plimsoll_image::frames::{ChainWorkload, FirstPart, Format, Frame};
use plimsoll_runtime::{Registered, RunError, Task, Ticket, Value};

use super::distributor::Pool;

/// A chain that an orchestrator knows, in its parts.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) chain: Registered<ChainWorkload>,
    /// Of a chain that looks at other frames.
    pub(super) first: Option<Registered<FirstPart>>,
}

impl Parts {
    pub(super) fn register(pool: &Pool, workload: ChainWorkload) -> Self {
        let first = workload.first_part().map(|first| pool.orchestrator.register(first));
        Self { chain: pool.orchestrator.register(workload), first }
    }
}

/// A frame that was handed in, or is about to be.
pub(super) struct FrameTask {
    pub(super) number: u64,
    pub(super) bytes: usize,
    /// What is to be done, or why its own first part or that of a neighbour was refused.
    pub(super) task: Result<Task<ChainWorkload>, RunError>,
    /// Its first part.
    pub(super) first: Option<Ticket<()>>,
}

/// Makes tasks of the frames of one stream.
pub(super) struct Tasks {
    pool: Arc<Pool>,
    parts: Parts,
    around: usize,
    next: u64,
    /// The devices that may work on them.
    devices: Vec<DeviceId>,
    ready: VecDeque<FrameTask>,
    neighbours: Neighbours,
}

/// The frames that tasks to come will look at.
struct Neighbours {
    frames: VecDeque<Neighbour>,
    /// The number of the first of them.
    first: u64,
    /// The number of the next frame that becomes a task.
    due: u64,
    /// Frames in a run.
    run: u64,
    sequence: SequenceId,
    left_in_run: u64,
}

/// A frame whose first part was handed in.
struct Neighbour {
    format: Format,
    bytes: usize,
    sequence: SequenceId,
    /// Until its own task has it.
    ticket: Option<Ticket<()>>,
    kept: Result<Value, RunError>,
}

impl Tasks {
    pub(super) fn new(pool: &Arc<Pool>, parts: Parts) -> Self {
        let around = parts.chain.workload().chain().frames_around();
        let neighbours = Neighbours {
            frames: VecDeque::new(),
            first: 0,
            due: 0,
            run: u64::MAX,
            sequence: pool.orchestrator.sequence(),
            left_in_run: 0,
        };
        let (pool, devices) = (Arc::clone(pool), pool.options.devices.clone());
        Self { pool, parts, around, next: 0, devices, ready: VecDeque::new(), neighbours }
    }

    pub(super) fn chain(&self) -> &Registered<ChainWorkload> {
        &self.parts.chain
    }

    /// How many consecutive frames stay on one device from the next run on.
    pub(super) fn set_run(&mut self, frames: u64) {
        self.neighbours.run = frames.max(1);
    }

    /// The devices that may work on frames from now on; all of them if there is none.
    pub(super) fn set_devices(&mut self, devices: Vec<DeviceId>) {
        self.devices = devices;
    }

    /// Takes the next frame in.
    pub(super) fn add(&mut self, frame: Frame) {
        let number = self.next;
        self.next += 1;
        let Some(first) = self.parts.first.clone() else {
            let bytes = frame.bytes().len();
            let task = Ok(self.pool.allowed(ChainWorkload::task(frame), &self.devices));
            self.ready.push_back(FrameTask { number, bytes, task, first: None });
            return;
        };
        if self.neighbours.frames.back().is_some_and(|last| last.format != frame.format()) {
            self.cut();
        }
        let neighbour = self.begin(&first, frame);
        self.neighbours.frames.push_back(neighbour);
        while self.neighbours.due + self.around as u64 <= number {
            self.make_due();
        }
    }

    /// No frame follows, or none that those before may look at, for it has another format.
    pub(super) fn cut(&mut self) {
        while self.neighbours.due < self.neighbours.first + self.neighbours.frames.len() as u64 {
            self.make_due();
        }
        let all = self.neighbours.frames.len() as u64;
        self.neighbours.first += all;
        self.neighbours.frames.clear();
    }

    /// The next task, if it has all it looks at.
    pub(super) fn next_ready(&mut self) -> Option<FrameTask> {
        self.ready.pop_front()
    }

    /// Nobody wants any of them any more.
    pub(super) fn give_up(&mut self) {
        let due = self.ready.drain(..).filter_map(|task| task.first);
        for ticket in due.chain(self.neighbours.frames.drain(..).filter_map(|frame| frame.ticket)) {
            ticket.cancel();
        }
    }

    /// Hands in what is done to a frame by itself.
    fn begin(&mut self, first: &Registered<FirstPart>, frame: Frame) -> Neighbour {
        let (format, bytes, sequence) =
            (frame.format(), frame.bytes().len(), self.neighbours.next_sequence(&self.pool));
        let task = self.pool.allowed(Task::new(frame), &self.devices).sequence(sequence);
        let (ticket, kept) = match self.pool.orchestrator.submit_for_value(first, task) {
            Ok((ticket, value)) => (Some(ticket), Ok(value)),
            Err(refused) => (None, Err(refused.into())),
        };
        Neighbour { format, bytes, sequence, ticket, kept }
    }

    fn make_due(&mut self) {
        let Neighbours { frames, first, due, .. } = &mut self.neighbours;
        let (number, own) = (*due, (*due - *first) as usize);
        let last = frames.len().min(own + self.around + 1);
        let among: Result<Vec<Value>, RunError> =
            frames.range(..last).map(|frame| frame.kept.as_ref().map(Value::share).map_err(Clone::clone)).collect();
        let Neighbour { format, bytes, sequence, ticket, .. } = &mut frames[own];
        let (format, bytes, sequence, first) = (*format, *bytes, *sequence, ticket.take());
        let workload = self.parts.chain.workload();
        let task = among.map(|among| {
            let task = workload.task_among(among, own, format);
            self.pool.allowed(task, &self.devices).sequence(sequence)
        });
        self.ready.push_back(FrameTask { number, bytes, task, first });
        self.neighbours.due += 1;
        self.neighbours.forget_before(self.neighbours.due.saturating_sub(self.around as u64));
    }
}

impl Neighbours {
    fn next_sequence(&mut self, pool: &Pool) -> SequenceId {
        if self.left_in_run == 0 {
            self.left_in_run = self.run;
            self.sequence = pool.orchestrator.sequence();
        }
        self.left_in_run -= 1;
        self.sequence
    }

    fn forget_before(&mut self, number: u64) {
        while self.first < number && self.frames.pop_front().is_some() {
            self.first += 1;
        }
    }
}
