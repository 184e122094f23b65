//! The devices that the work needs, and no more: a file pays for no GPU that no stage can use, and for no more threads than
//! it has blocks. A small one is packed by this thread alone: nobody would notice the memory it takes, so that is not written
//! down for other programs either.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use plimsoll::machine::{GpuUse, Machine, MachineOptions};
use plimsoll::pack::{
    Draft, PackError, PackSummary, PackWatch, Packer, PackerOptions, Recipe, SmallPacker, Stages, UnpackOptions,
};
use plimsoll::{Orchestrator, profile};
use plimsoll_runtime::telemetry::{Counters, Snapshot};

use super::args::{Common, PackArgs};
use super::telemetry::{Frame, Telemetry, Times};
use crate::machine_args::MachineArgs;
use crate::stop::{Ended, Stop, warn};
use crate::trace::{self, Trace};

/// Bytes of input that is packed by one thread: it takes a few megabytes.
const SMALL: u64 = 1 << 20;
/// The same of packed input: what a megabyte that cannot be packed becomes, and some more. To start a scheduler, a thread that
/// reads and one for signals takes 5 ms of processor time, more than to unpack that.
const SMALL_PACKED: u64 = 5 << 18;

/// Whether a file is so small that devices, threads and the book would take longer than the work.
pub(super) fn is_small(length: Option<u64>, is_packed: bool) -> bool {
    length.is_some_and(|length| length <= if is_packed { SMALL_PACKED } else { SMALL })
}

/// Who does the work.
enum Hands {
    /// This thread.
    One(SmallPacker),
    /// A packer on its devices.
    All(Packer),
}

/// Who does the work, and what is to be known of it at the end.
pub(super) struct Crew {
    /// `None` once it has gone.
    hands: Option<Hands>,
    /// Only if somebody wants to know.
    heard: Option<Heard>,
    names: Vec<String>,
    trace: Trace,
    learns: bool,
}

/// What is to be done, as far as it is known.
struct Work {
    with_gpu: bool,
    blocks: Option<u64>,
    is_small: bool,
    /// No stage of it needs a scheduler.
    is_plain: bool,
}

/// What listens to the scheduler.
#[derive(Default)]
struct Heard {
    counters: Counters,
    telemetry: Telemetry,
}

impl Crew {
    /// For packing as the recipe says.
    pub(super) fn for_packing(
        args: &PackArgs,
        machine: &MachineArgs,
        recipe: &Recipe,
        length: Option<u64>,
    ) -> Result<Self, Stop> {
        let stages = args.stages();
        let blocks = length.map(|length| length.div_ceil(recipe.block as u64).max(1));
        let is_plain = SmallPacker::can_pack(recipe);
        let work = Work { with_gpu: stages.want_gpu(recipe), blocks, is_small: is_small(length, false), is_plain };
        Self::open(&args.common, machine, stages, &work)
    }

    /// For unpacking.
    pub(super) fn for_unpacking(common: &Common, machine: &MachineArgs, length: Option<u64>) -> Result<Self, Stop> {
        let is_small = is_small(length, true);
        let work = Work { with_gpu: false, blocks: is_small.then_some(1), is_small, is_plain: true };
        Self::open(common, machine, Stages::default(), &work)
    }

    fn open(common: &Common, machine: &MachineArgs, stages: Stages, work: &Work) -> Result<Self, Stop> {
        let mut options: MachineOptions = machine.options()?;
        let &Work { with_gpu, blocks, is_small, is_plain } = work;
        let is_followed = common.stats || common.json || common.trace.is_some();
        if is_small && is_plain && !with_gpu && !is_followed && !machine.has_memory_limit() {
            return Ok(Self::alone());
        }
        if !with_gpu {
            options.gpus = GpuUse::None;
            options.alone |= is_small;
        }
        let slots = || common.jobs.map_or_else(cores, usize::from);
        options.cpu_slots = Some(match blocks {
            Some(..=1) => 1,
            Some(blocks) => slots().min(blocks.min(1024) as usize),
            None => slots(),
        });
        let opened = Machine::open(&options);
        opened.problems.iter().for_each(warn);
        let mut described = Orchestrator::builder().devices(opened.devices);
        if with_gpu {
            let hardware = profile::hardware();
            described = described.profile(profile::file(&hardware).map_err(Stop::failed)?, Some(hardware));
        }
        let heard = (common.stats || common.json).then(Heard::default);
        if let Some(Heard { counters, telemetry }) = &heard {
            described = described.listener(counters.listener()).listener(telemetry.listener());
        }
        let (described, trace) = trace::start(described, common.trace.as_deref(), &opened.names)?;
        let packer = Packer::new(described.build(), PackerOptions { stages, reads_here: is_small });
        let names = opened.names.iter().map(ToString::to_string).collect();
        Ok(Self { hands: Some(Hands::All(packer)), heard, names, trace, learns: with_gpu })
    }

    fn alone() -> Self {
        let hands = Some(Hands::One(SmallPacker::default()));
        Self { hands, heard: None, names: Vec::new(), trace: Trace::default(), learns: false }
    }

    fn hands(&self) -> &Hands {
        self.hands.as_ref().expect("they go when the crew does")
    }

    /// Packs a file.
    pub(super) fn pack(
        &self,
        input: File,
        output: &mut dyn Write,
        recipe: &Recipe,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        match self.hands() {
            Hands::One(packer) => packer.pack(input, output, recipe, watch),
            Hands::All(packer) => packer.pack(input, output, recipe, watch),
        }
    }

    /// Unpacks a file, or a range of it. If the output is a draft too, all hands write there, each at its place.
    pub(super) fn unpack(
        &self,
        input: File,
        output: &mut dyn Write,
        draft: Option<Arc<dyn Draft>>,
        range: Option<&Range<u64>>,
        options: &UnpackOptions,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        if let (Hands::All(packer), Some(draft), None) = (self.hands(), draft, range) {
            return packer.unpack_draft(input, draft, options, watch);
        }
        match (self.hands(), range) {
            (Hands::One(packer), None) => packer.unpack(input, output, options, watch),
            (Hands::One(packer), Some(range)) => packer.unpack_range(input, output, range, options, watch),
            (Hands::All(packer), None) => packer.unpack(input, output, options, watch),
            (Hands::All(packer), Some(range)) => packer.unpack_range(input, output, range, options, watch),
        }
    }

    /// The scheduler, if there is one.
    pub(super) fn orchestrator(&self) -> Option<&Orchestrator> {
        match self.hands() {
            Hands::One(_) => None,
            Hands::All(packer) => Some(packer.orchestrator()),
        }
    }

    /// What was counted so far, if anybody wants to know; and the devices' names.
    pub(super) fn counted(&self) -> Option<(Snapshot, &[String])> {
        self.heard.as_ref().map(|heard| (heard.counters.snapshot(), &self.names[..]))
    }

    /// Where time went, if anybody wants to know.
    pub(super) fn times(&self, frame: &Frame) -> Option<Times> {
        self.heard.as_ref().map(|heard| heard.telemetry.times(frame))
    }

    /// Slots of all devices.
    pub(super) fn slots(&self) -> usize {
        self.orchestrator().map_or(1, |orchestrator| orchestrator.devices().map(|(_, facts)| facts.slots).sum())
    }

    /// Ends the work and what was written of it.
    pub(super) fn finish(mut self) -> Ended {
        if self.learns
            && let Some(orchestrator) = self.orchestrator()
            && let Err(error) = orchestrator.save_profile()
        {
            warn(error);
        }
        drop(self.hands.take());
        self.trace.finish()
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
