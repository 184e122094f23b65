//! A block in one library call: filter, match finding and coding fused into one rung on the CPU, or by whoever has a
//! [`BlockPacker`].
//! Invariant: a packed block depends on its own bytes and the recipe, never on what was packed before it.

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use super::{Block, Packed};
use crate::faults;
use crate::gzip::member::MemberPacker;
use crate::options::{Format, Recipe};
use crate::pool::Pool;
use crate::zstd::codec::FramePacker;

/// Packs blocks by the format's library.
pub struct PackWork {
    recipe: Recipe,
    pool: Pool,
    ladder: Ladder,
    /// The blocks that come were filtered by a stage of their own.
    is_filtered: bool,
}

impl PackWork {
    /// Packs blocks as the recipe says, filter included.
    pub fn new(recipe: Recipe, pool: &Pool) -> Self {
        let context = match recipe.format {
            Format::Zstd => FramePacker::context_bytes(&recipe),
            // What libdeflate takes at its highest level; twice, for small blocks have a compressor of their own.
            Format::Gzip | Format::Bgzf => 20 << 20,
        };
        let task = Bytes(recipe.block as u64 + (recipe.block as u64 >> 7) + (64 << 10));
        let footprint = Footprint { session: Bytes(context as u64), task, reference: Bytes::ZERO };
        let ladder = Ladder::from(vec![Rung::new("cpu", Place::On(DeviceKind::Cpu), footprint)]);
        Self { recipe, pool: pool.clone(), ladder, is_filtered: false }
    }

    /// Packs blocks that another stage has filtered.
    #[must_use]
    pub fn after_filter(mut self) -> Self {
        self.is_filtered = true;
        self
    }
}

impl Workload for PackWork {
    type Input = Block;
    type Reference = ();
    type Prepared = ();
    type Output = Packed;

    fn name(&self) -> &str {
        match self.recipe.format {
            Format::Zstd => "pack-zstd",
            Format::Gzip => "pack-gzip",
            Format::Bgzf => "pack-bgzf",
        }
    }

    fn units(&self, block: &Block) -> u64 {
        block.bytes.len() as u64
    }

    fn ladder(&self, _: &Block) -> Ladder {
        self.ladder.clone()
    }

    fn open(&self, _: &Rung, _: &Block, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        let recipe = Recipe { filter: self.recipe.filter.filter(|_| !self.is_filtered), ..self.recipe };
        let packer = BlockPacker::new(&recipe, &self.pool).map_err(Fault::work)?;
        Ok(Box::new(packer))
    }
}

impl Session<PackWork> for BlockPacker {
    fn run(&mut self, block: &Block, _: &mut Context<'_, PackWork>) -> Result<Packed, Fault> {
        self.pack(&block.bytes).map_err(Fault::work)
    }
}

/// Packs blocks by the format's library, whatever the method of the recipe.
pub struct BlockPacker {
    recipe: Recipe,
    pool: Pool,
    packer: Packer,
}

enum Packer {
    Frames(FramePacker),
    Members(MemberPacker),
}

impl BlockPacker {
    /// Packs as the recipe says, filter included, into buffers of this pool.
    ///
    /// # Errors
    /// What the library says, if it cannot be opened.
    pub fn new(recipe: &Recipe, pool: &Pool) -> Result<Self, String> {
        let packer = match recipe.format {
            Format::Zstd => Packer::Frames(FramePacker::new(recipe)?),
            Format::Gzip => Packer::Members(MemberPacker::like_zlib(recipe.level)?),
            Format::Bgzf => Packer::Members(MemberPacker::new(recipe.level)?),
        };
        Ok(Self { recipe: *recipe, pool: pool.clone(), packer })
    }

    /// Packs a block.
    ///
    /// # Errors
    /// What the library says.
    pub fn pack(&mut self, block: &[u8]) -> Result<Packed, String> {
        faults::point("pack");
        let filtered = self.recipe.filter.map(|filter| filter.apply(block));
        let raw: &[u8] = filtered.as_deref().unwrap_or(block);
        let mut bytes = self.pool.take(zstd_safe::compress_bound(raw.len()) + 256);
        let (into, mut members) = (bytes.vec_mut(), Vec::new());
        match (&mut self.packer, self.recipe.format) {
            (Packer::Frames(packer), _) => packer.pack(raw, into),
            (Packer::Members(packer), Format::Bgzf) => packer.bgzf(raw, into, &mut members),
            (Packer::Members(packer), _) => packer.ours(raw, into),
        }?;
        Ok(Packed { bytes, raw: raw.len(), members })
    }
}
