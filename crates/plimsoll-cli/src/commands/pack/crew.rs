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
use super::places::Source;
use super::telemetry::{Frame, Telemetry, Times};
use crate::machine_args::MachineArgs;
use crate::stop::{Ended, Stop, warn};
use crate::trace::{self, Trace};

/// Bytes of input that is packed by one thread: it takes a few megabytes.
const SMALL: u64 = 1 << 20;
/// The same of packed input: what a megabyte that cannot be packed becomes, and some more.
const SMALL_PACKED: u64 = 5 << 18;
/// What a file of few packed bytes gives for a scheduler to be worth its start all the same.
const GIVES_MUCH: u64 = 4 << 20;
/// But not of so few: what packs that well is unpacked in no time and then written, which goes on one after the other.
const VERY_SMALL_PACKED: u64 = 1 << 18;

/// Packed bytes that a few threads unpack into a draft before a scheduler, with the book, a watchdog and threads that read and
/// wait for signals, has started and ended: 16 MiB of text took two threads 11.8 ms instead of 14.4.
const MIDDLE_PACKED: u64 = 24 << 20;
/// And what those may give. More is worth a scheduler, which has every core.
const MIDDLE_GIVES: u64 = 64 << 20;
/// The few threads, at the most. Each may take what a frame gives, which nobody promised it.
const FEW: usize = 4;
/// Packed bytes for which nobody has to be asked how many cores there are.
const ALONE_PACKED: u64 = 64 << 10;

/// Whether a file is so small that devices, threads and the book would take longer than to pack it.
pub(super) fn is_soon_packed(length: Option<u64>) -> bool {
    length.is_some_and(|length| length <= SMALL)
}

/// Whether unpacking it is over in a moment, and needs no scheduler. `into_draft` if it goes into a file of its own.
pub(super) fn is_soon_unpacked(source: &Source, into_draft: bool) -> bool {
    Packed::of(source, into_draft) != Packed::Large
}

/// A packed file, by what its unpacking is worth.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Packed {
    /// This thread, and into a draft a few more if there is something for them.
    Small,
    /// The same, only into a draft.
    Middle,
    /// A scheduler.
    Large,
}

impl Packed {
    fn of(source: &Source, into_draft: bool) -> Self {
        let Some(length) = source.length() else { return Self::Large };
        let is_little = length <= SMALL_PACKED && !source.says_it_gives(GIVES_MUCH);
        if is_little || (length <= VERY_SMALL_PACKED && !into_draft) {
            Self::Small
        } else if into_draft && length <= MIDDLE_PACKED && !source.says_it_gives(MIDDLE_GIVES) {
            Self::Middle
        } else {
            Self::Large
        }
    }
}

/// Who does the work.
enum Hands {
    /// So many threads without a scheduler, this one among them.
    Few(SmallPacker, usize),
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
    /// Threads that do it without a scheduler, if none of its stages needs one.
    few: Option<usize>,
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
        let is_small = is_soon_packed(length);
        let few = (is_small && SmallPacker::can_pack(recipe)).then_some(1);
        let work = Work { with_gpu: stages.want_gpu(recipe), blocks, is_small, few };
        Self::open(&args.common, machine, stages, &work)
    }

    /// For unpacking, into a draft or elsewhere.
    pub(super) fn for_unpacking(
        common: &Common,
        machine: &MachineArgs,
        source: &Source,
        into_draft: bool,
    ) -> Result<Self, Stop> {
        let packed = Packed::of(source, into_draft);
        let is_alone = !into_draft || source.length().is_some_and(|length| length <= ALONE_PACKED);
        let few = match packed {
            Packed::Large => None,
            _ if is_alone => Some(1),
            _ => Some(threads(common).min(FEW)),
        };
        let is_small = packed == Packed::Small;
        let work = Work { with_gpu: false, blocks: is_small.then_some(1), is_small, few };
        Self::open(common, machine, Stages::default(), &work)
    }

    fn open(common: &Common, machine: &MachineArgs, stages: Stages, work: &Work) -> Result<Self, Stop> {
        let mut options: MachineOptions = machine.options()?;
        let &Work { with_gpu, blocks, is_small, few } = work;
        let is_followed = common.stats || common.json || common.trace.is_some();
        if let Some(few) = few
            && !with_gpu
            && !is_followed
            && !machine.has_memory_limit()
        {
            return Ok(Self::few(few));
        }
        if !with_gpu {
            options.gpus = GpuUse::None;
            options.alone |= is_small;
        }
        options.cpu_slots = Some(match blocks {
            Some(..=1) => 1,
            Some(blocks) => threads(common).min(blocks.min(1024) as usize),
            None => threads(common),
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

    fn few(threads: usize) -> Self {
        let hands = Some(Hands::Few(SmallPacker::default(), threads));
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
            Hands::Few(packer, _) => packer.pack(input, output, recipe, watch),
            Hands::All(packer) => packer.pack(input, output, recipe, watch),
        }
    }

    /// Unpacks a file, or a range of it. If the output is a draft too, all hands read and write, each at its place.
    pub(super) fn unpack(
        &self,
        input: File,
        output: &mut dyn Write,
        draft: Option<Arc<dyn Draft>>,
        range: Option<&Range<u64>>,
        options: &UnpackOptions,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        match (self.hands(), range, draft) {
            (Hands::Few(packer, threads), None, Some(draft)) => {
                packer.unpack_file(input, draft, *threads, options, watch)
            }
            (Hands::Few(packer, _), None, _) => packer.unpack(input, output, options, watch),
            (Hands::Few(packer, _), Some(range), _) => packer.unpack_range(input, output, range, options, watch),
            (Hands::All(packer), None, Some(draft)) => packer.unpack_file(input, draft, options, watch),
            (Hands::All(packer), None, None) => packer.unpack(input, output, options, watch),
            (Hands::All(packer), Some(range), _) => packer.unpack_range(input, output, range, options, watch),
        }
    }

    /// The scheduler, if there is one.
    pub(super) fn orchestrator(&self) -> Option<&Orchestrator> {
        match self.hands() {
            Hands::Few(..) => None,
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

/// As many as were asked for, or as there are cores.
fn threads(common: &Common) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    common.jobs.map_or_else(cores, usize::from)
}

#[cfg(test)]
mod tests {
    use plimsoll::Bytes;
    use plimsoll::pack::PackOptions;

    use super::super::places::Place;
    use super::*;

    /// A file of 8 MiB in frames of so many bytes, of which one in `every` is by chance.
    fn packed(every: u64, frame: u64, folder: &std::path::Path) -> (u64, Place) {
        let mut dice = 1_u64;
        let raw: Vec<u8> = (0..8_u64 << 20)
            .map(|at| {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if at % every == 0 { (dice >> 56) as u8 } else { 7 }
            })
            .collect();
        let recipe = PackOptions { block: Some(Bytes(frame)), ..PackOptions::default() }.recipe(None).expect("one");
        let path = folder.join(format!("{every}-{frame}"));
        let mut file = File::create(&path).expect("a file");
        let done = SmallPacker::default().pack(&raw[..], &mut file, &recipe, &PackWatch::default()).expect("packed");
        (done.packed, Place::of(path))
    }

    #[test]
    fn what_a_file_says_of_itself_tells_who_unpacks_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let by = |every, sizes: Range<u64>, into_draft| {
            let (length, place) = packed(every, 2 << 20, folder.path());
            assert!(sizes.contains(&length), "{length} bytes");
            Packed::of(&place.source().expect("it is there"), into_draft)
        };
        let between = VERY_SMALL_PACKED + 1..SMALL_PACKED;
        let larger = SMALL_PACKED + 1..MIDDLE_PACKED;
        assert_eq!(by(16, between.clone(), true), Packed::Middle);
        assert_eq!(by(16, between, false), Packed::Large, "it gives much, into a pipe");
        assert_eq!(by(1000, 0..VERY_SMALL_PACKED, false), Packed::Small, "it packs very well");
        assert_eq!(by(2, larger.clone(), true), Packed::Middle);
        assert_eq!(by(2, larger, false), Packed::Large);
    }

    #[test]
    fn what_gives_very_much_is_for_a_scheduler() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |bytes: u64| {
            let recipe = PackOptions::default().recipe(None).expect("one");
            let path = folder.path().join(bytes.to_string());
            let mut file = File::create(&path).expect("a file");
            let zeros = std::io::Read::take(std::io::repeat(0), bytes);
            SmallPacker::default().pack(zeros, &mut file, &recipe, &PackWatch::default()).expect("packed");
            Packed::of(&Place::of(path).source().expect("it is there"), true)
        };
        assert_eq!([of(MIDDLE_GIVES - 1), of(MIDDLE_GIVES)], [Packed::Middle, Packed::Large]);
    }

    #[test]
    fn who_asked_what_a_file_gives_reads_it_from_its_beginning() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = packed(16, 2 << 20, folder.path()).1.source().expect("it is there");
        assert!(source.says_it_gives(8 << 20) && !source.says_it_gives((8 << 20) + 1));
        let mut first = [0; 4];
        std::io::Read::read_exact(&mut source.into_file(), &mut first).expect("read");
        assert_eq!(u32::from_le_bytes(first) >> 4, 0x0fd2_fb52, "where a frame begins");
    }
}
