//! Small files, packed and unpacked on the caller's thread, and into a draft by a few more (`hands.rs`): a scheduler takes
//! longer to start than they take.
//! Never promises memory: what each thread holds is a block, or a piece, and what that becomes.
//! Invariant: bytes and ends are those of a [`Packer`](super::Packer), whatever panics on the way.

use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use plimsoll_blocks::draft::Draft;
use plimsoll_blocks::pool::Pool;
use plimsoll_blocks::scan::{Part, Piece, Scanner};
use plimsoll_blocks::workloads::{BlockPacker, PartUnpacker, Unpacker};
use plimsoll_blocks::{Method, Recipe};

use super::blocks::Blocks;
use super::error::PackError;
use super::hands;
use super::packer::{PackSummary, UnpackOptions};
use super::packing::File;
use super::unpacking::{Delivery, Output, Wanted};
use super::watch::PackWatch;
use crate::intake::{Broken, message, pull};

/// Packs and unpacks on the caller's thread, for files of about a megabyte. Larger ones want a [`Packer`](super::Packer),
/// which has every core.
///
/// ```
/// use plimsoll::pack::{PackOptions, PackWatch, SmallPacker, UnpackOptions};
///
/// let packer = SmallPacker::default();
/// let recipe = PackOptions::default().recipe(Some(4))?;
/// let (mut packed, mut unpacked) = (Vec::new(), Vec::new());
/// packer.pack(&b"ahoy"[..], &mut packed, &recipe, &PackWatch::default())?;
/// packer.unpack(&packed[..], &mut unpacked, &UnpackOptions::default(), &PackWatch::default())?;
/// assert_eq!(unpacked, b"ahoy");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct SmallPacker {
    pool: Pool,
}

impl SmallPacker {
    /// Whether it can pack as this recipe says: stages are a scheduler's.
    pub fn can_pack(recipe: &Recipe) -> bool {
        recipe.method == Method::Library
    }

    /// Packs everything that the input gives. A stop is looked for after each block.
    ///
    /// # Errors
    /// [`PackError`]; what was written until then is the beginning of the file.
    pub fn pack(
        &self,
        input: impl Read,
        output: &mut dyn Write,
        recipe: &Recipe,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        if !Self::can_pack(recipe) {
            return Err(PackError::NeedsScheduler);
        }
        let mut file = File::begin(recipe, output, watch)?;
        let mut blocks = Blocks::new(input, recipe.block, &self.pool);
        let failed = |number, reason| PackError::BlockHere { number, reason };
        let mut packer = BlockPacker::new(recipe, &self.pool).map_err(|reason| failed(0, reason))?;
        let mut number = 0;
        while let Some(block) = next(&mut blocks, watch, PackError::Input)? {
            let packed = caught(number, || packer.pack(&block))?.map_err(|reason| failed(number, reason))?;
            file.add(&packed, 0)?;
            number += 1;
        }
        file.end()
    }

    /// Unpacks any zstd, gzip or BGZF input. A stop is looked for after each piece.
    ///
    /// # Errors
    /// As [`Packer::unpack`](super::Packer::unpack).
    pub fn unpack(
        &self,
        input: impl Read,
        output: &mut dyn Write,
        options: &UnpackOptions,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        let delivery = Delivery::new(Wanted::all(options), Output::Stream(output), watch);
        self.unpack_pieces(Scanner::new(input, &self.pool), delivery, watch)
    }

    /// Unpacks a regular file, from its beginning, into a draft, by so many threads, this one among them, without a scheduler.
    /// Nobody was promised the memory for that: each thread takes at most what a frame gives, 48 MiB.
    ///
    /// # Errors
    /// As [`Packer::unpack_draft`](super::Packer::unpack_draft).
    pub fn unpack_file(
        &self,
        input: std::fs::File,
        draft: Arc<dyn Draft>,
        threads: usize,
        options: &UnpackOptions,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        let work = hands::Work { pool: &self.pool, draft, limit: options.limit, watch };
        hands::unpack(threads, Scanner::of_file(input, &self.pool), work)
    }

    /// Unpacks a range of the bytes, as [`Packer::unpack_range`](super::Packer::unpack_range) does.
    ///
    /// # Errors
    /// As [`Packer::unpack`](super::Packer::unpack).
    pub fn unpack_range(
        &self,
        input: impl Read + Seek,
        output: &mut dyn Write,
        range: &Range<u64>,
        options: &UnpackOptions,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        let (wanted, pieces) = Wanted::range(input, range, options, &self.pool)?;
        self.unpack_pieces(pieces, Delivery::new(wanted, Output::Stream(output), watch), watch)
    }

    fn unpack_pieces<R: Read>(
        &self,
        mut pieces: Scanner<R>,
        mut delivery: Delivery<'_>,
        watch: &PackWatch,
    ) -> Result<PackSummary, PackError> {
        let (mut whole, mut parts) = (Unpacker::new(&self.pool), PartUnpacker::new(&self.pool));
        let mut number = 0;
        while !delivery.is_over()
            && let Some(piece) = next(&mut pieces, watch, PackError::Unpack)?
        {
            match piece {
                Piece::Whole(piece) => {
                    let bytes = caught(number, || whole.unpack(&piece))??;
                    delivery.add(&bytes, piece.packed() as u64, 0)?;
                }
                Piece::Part(part) => {
                    if part.is_first {
                        parts = PartUnpacker::new(&self.pool);
                    }
                    unpack_part(&mut parts, part, number, &mut delivery, watch)?;
                }
            }
            number += 1;
        }
        delivery.end()
    }
}

/// All that a part gives, however much it is.
fn unpack_part(
    parts: &mut PartUnpacker,
    part: Part,
    number: u64,
    delivery: &mut Delivery<'_>,
    watch: &PackWatch,
) -> Result<(), PackError> {
    let (mut packed, mut part, mut has_more) = (part.packed() as u64, Some(part), true);
    while has_more && !delivery.is_over() {
        check(watch)?;
        let given = caught(number, || parts.unpack(part.take()))??;
        delivery.add(&given.bytes, std::mem::take(&mut packed), 0)?;
        has_more = given.has_more;
    }
    Ok(())
}

/// The next item of an input, unless the work is to stop.
pub(super) fn next<T, E>(
    items: &mut impl Iterator<Item = Result<T, E>>,
    watch: &PackWatch,
    failed: fn(E) -> PackError,
) -> Result<Option<T>, PackError> {
    check(watch)?;
    pull(items).transpose().map_err(|broken| match broken {
        Broken::Failed(error) => failed(error),
        Broken::Panicked(message) => PackError::InputPanicked(message),
    })
}

pub(super) fn check(watch: &PackWatch) -> Result<(), PackError> {
    if watch.sign().is_raised() { Err(PackError::Stopped) } else { Ok(()) }
}

/// What the work on a block gives; a panic in it is that block's error.
pub(super) fn caught<T>(number: u64, work: impl FnOnce() -> T) -> Result<T, PackError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let reason = format!("its work panicked: {}; please report this", message(&*panic));
        PackError::BlockHere { number, reason }
    })
}
