//! The packer: an orchestrator, and what is asked of it.
//! Never schedules: every block is an item of a pipeline, every piece a task.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::sync::Arc;

use plimsoll_blocks::Recipe;
use plimsoll_blocks::draft::Draft;
use plimsoll_blocks::pool::Pool;
use plimsoll_blocks::scan::Scanner;
use plimsoll_core::Bytes;
use plimsoll_runtime::Orchestrator;

use super::error::PackError;
use super::packing;
use super::stages::Stages;
use super::unpacking::{self, Output, Wanted};
use super::watch::PackWatch;
use crate::intake::Intake;

/// Packs and unpacks files over the devices of an orchestrator.
///
/// ```
/// use plimsoll::Orchestrator;
/// use plimsoll::pack::{PackOptions, PackWatch, Packer, PackerOptions, UnpackOptions};
///
/// let packer = Packer::new(Orchestrator::builder().cpu(2).build(), PackerOptions::default());
/// let input = vec![7; 10_000];
/// let recipe = PackOptions::default().recipe(Some(10_000))?;
/// let mut packed = Vec::new();
/// packer.pack(std::io::Cursor::new(input.clone()), &mut packed, &recipe, &PackWatch::default())?;
/// let mut unpacked = Vec::new();
/// packer.unpack(std::io::Cursor::new(packed), &mut unpacked, &UnpackOptions::default(), &PackWatch::default())?;
/// assert_eq!(unpacked, input);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Packer {
    orchestrator: Arc<Orchestrator>,
    options: PackerOptions,
    pool: Pool,
}

/// How a packer uses its devices.
#[derive(Copy, Clone, Debug, Default)]
pub struct PackerOptions {
    /// Where each stage may run.
    pub stages: Stages,
    /// Input is read on the caller's thread: for files so small that starting another would take longer than reading them.
    pub reads_here: bool,
}

/// What is wanted of unpacking.
#[derive(Copy, Clone, Debug, Default)]
pub struct UnpackOptions {
    /// Unpacked bytes at the most; more is an error.
    pub limit: Option<Bytes>,
}

/// What became of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackSummary {
    /// Bytes that are not packed.
    pub raw: u64,
    /// Bytes that are packed.
    pub packed: u64,
    /// Blocks or pieces.
    pub blocks: u64,
    /// Attempts that failed and were made up for elsewhere.
    pub retries: u64,
    /// The index of a BGZF file.
    pub index: Option<Vec<u8>>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Packer {
    /// A packer over the devices of an orchestrator, its own or one that is shared.
    pub fn new(orchestrator: impl Into<Arc<Orchestrator>>, options: PackerOptions) -> Self {
        Self { orchestrator: orchestrator.into(), options, pool: Pool::default() }
    }

    /// Packs everything that the input gives. Bytes out depend on the input and the recipe alone.
    ///
    /// # Errors
    /// [`PackError`]; what was written until then is the beginning of the file.
    pub fn pack(
        &self,
        input: impl Read + Send + 'static,
        output: &mut dyn Write,
        recipe: &Recipe,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        packing::pack(&self.orchestrator, self.options, recipe, &self.pool, input, output, watch)
    }

    /// Unpacks any zstd, gzip or BGZF input.
    ///
    /// # Errors
    /// [`PackError`]. What was written until then is right, unless it is of a gzip member of another program or of a frame of
    /// more than 48 MiB: those are written as they come, and their only checksum stands at their end.
    pub fn unpack(
        &self,
        input: impl Read + Send + 'static,
        output: &mut dyn Write,
        options: &UnpackOptions,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        self.unpack_pieces(Scanner::new(input, &self.pool), Wanted::all(options), Output::Stream(output), watch)
    }

    /// The same into a draft: whoever unpacks a frame writes it, while it is unpacked. Frames that do not tell how much they
    /// give are written in order.
    ///
    /// # Errors
    /// [`PackError`]. Then the draft is worth nothing, and work that was under way may go on writing into it.
    pub fn unpack_draft(
        &self,
        input: impl Read + Send + 'static,
        draft: Arc<dyn Draft>,
        options: &UnpackOptions,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        self.unpack_pieces(Scanner::new(input, &self.pool), Wanted::all(options), Output::Draft(draft), watch)
    }

    /// The same from a file: whoever unpacks a large zstd frame reads it too. One that is no regular file, or was read from
    /// already, is read in order from where it is.
    ///
    /// # Errors
    /// As [`Packer::unpack_draft`].
    pub fn unpack_file(
        &self,
        mut input: File,
        draft: Arc<dyn Draft>,
        options: &UnpackOptions,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        let is_regular = input.metadata().is_ok_and(|metadata| metadata.is_file());
        if !is_regular || input.stream_position().is_ok_and(|place| place > 0) {
            return self.unpack_draft(input, draft, options, watch);
        }
        self.unpack_pieces(Scanner::of_file(input, &self.pool), Wanted::all(options), Output::Draft(draft), watch)
    }

    /// Unpacks a range of the bytes. Only the frames or members that hold it are read, if the file tells which they are;
    /// otherwise everything before it is unpacked too. A range that ends behind the file ends with it.
    ///
    /// # Errors
    /// As [`Packer::unpack`].
    pub fn unpack_range(
        &self,
        input: impl Read + Seek + Send + 'static,
        output: &mut dyn Write,
        range: &Range<u64>,
        options: &UnpackOptions,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        let (wanted, pieces) = Wanted::range(input, range, options, &self.pool)?;
        self.unpack_pieces(pieces, wanted, Output::Stream(output), watch)
    }

    fn unpack_pieces<'a, R: Read + Send + 'static>(
        &self,
        pieces: Scanner<R>,
        wanted: Wanted,
        output: Output<'a>,
        watch: &'a PackWatch,
    ) -> Result<PackSummary, PackError> {
        let pieces = match self.options.reads_here {
            true => Intake::here(pieces),
            false => Intake::start("plimsoll-unpack-in", pieces),
        };
        unpacking::unpack(&self.orchestrator, &self.pool, pieces, wanted, output, watch)
    }

    /// The orchestrator, for its reports, or other work on the same devices.
    pub fn orchestrator(&self) -> &Orchestrator {
        &self.orchestrator
    }
}

/// Items under way: one for each slot, as many waiting, and two for what is late.
pub(super) fn items_max(orchestrator: &Orchestrator) -> usize {
    let slots: usize = orchestrator.devices().map(|(_, facts)| facts.slots.max(1)).sum();
    2 * slots.min(ITEMS_SLOTS_MAX) + 2
}

/// Slots that count for the number of items under way; on larger machines bytes are the bound.
const ITEMS_SLOTS_MAX: usize = 128;
/// Bytes of all blocks under way, as they came and as they will be, unless there is only one.
pub(super) const BYTES_MAX: u64 = 1 << 30;
