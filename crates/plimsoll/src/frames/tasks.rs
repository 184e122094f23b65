//! Makes tasks of frames. For a chain that looks at neighbours, a frame's task waits until those after it have come, every
//! frame is a reference that is prepared once a device, and runs of consecutive frames stay on one device.
//! Invariant: tasks come out in the order of the frames, one for each.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::SequenceId;
use plimsoll_image::frames::{ChainWorkload, Frame, StreamFrame};
use plimsoll_runtime::{Reference, Registered, Task};

/// Streams and runs of this process, each with a number of its own.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A task and the frame it is of.
pub(super) struct FrameTask {
    pub(super) number: u64,
    pub(super) bytes: usize,
    pub(super) task: Task<ChainWorkload>,
}

/// Makes tasks of the frames of one stream.
pub(super) struct Tasks {
    chain: Registered<ChainWorkload>,
    around: usize,
    stream: u64,
    next: u64,
    ready: VecDeque<FrameTask>,
    neighbours: Neighbours,
}

/// The frames that tasks to come will look at.
struct Neighbours {
    frames: VecDeque<(Frame, Reference<ChainWorkload>)>,
    /// The number of the first of them.
    first: u64,
    /// The number of the next frame that becomes a task.
    due: u64,
    /// Frames in a run.
    run: u64,
    sequence: SequenceId,
    left_in_run: u64,
}

impl Tasks {
    pub(super) fn new(chain: Registered<ChainWorkload>) -> Self {
        let (around, stream) = (chain.workload().chain().frames_around(), fresh());
        let neighbours = Neighbours {
            frames: VecDeque::new(),
            first: 0,
            due: 0,
            run: u64::MAX,
            sequence: SequenceId(0),
            left_in_run: 0,
        };
        Self { chain, around, stream, next: 0, ready: VecDeque::new(), neighbours }
    }

    pub(super) fn workload(&self) -> &Registered<ChainWorkload> {
        &self.chain
    }

    /// How many consecutive frames stay on one device from the next run on.
    pub(super) fn set_run(&mut self, frames: u64) {
        self.neighbours.run = frames.max(1);
    }

    /// Takes the next frame in.
    pub(super) fn add(&mut self, frame: Frame) {
        let number = self.next;
        self.next += 1;
        if self.around == 0 {
            let bytes = frame.bytes().len();
            self.ready.push_back(FrameTask { number, bytes, task: ChainWorkload::task(frame) });
            return;
        }
        if self.neighbours.frames.back().is_some_and(|(last, _)| last.format() != frame.format()) {
            self.cut();
        }
        let reference = Reference::new(StreamFrame { stream: self.stream, number, frame: frame.clone() });
        self.neighbours.frames.push_back((frame, reference));
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

    fn make_due(&mut self) {
        let Neighbours { frames, first, due, .. } = &self.neighbours;
        let (number, own) = (*due, (due - first) as usize);
        let last = frames.len().min(own + self.around + 1);
        let among: Vec<Reference<ChainWorkload>> =
            frames.range(..last).map(|(_, reference)| reference.clone()).collect();
        let frame = frames[own].0.clone();
        let bytes = frame.bytes().len();
        let task = self.chain.workload().task_among(&among, own, frame).sequence(self.neighbours.next_sequence());
        self.ready.push_back(FrameTask { number, bytes, task });
        self.neighbours.due += 1;
        self.neighbours.forget_before(self.neighbours.due.saturating_sub(self.around as u64));
    }
}

impl Neighbours {
    fn next_sequence(&mut self) -> SequenceId {
        if self.left_in_run == 0 {
            self.left_in_run = self.run;
            self.sequence = SequenceId(fresh());
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

fn fresh() -> u64 {
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}
