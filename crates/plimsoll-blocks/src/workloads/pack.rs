//! A block in one library call: filter, match finding and coding fused into one rung on the CPU.
//! Invariant: a packed block depends on its own bytes and the recipe, never on what its session packed before.

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
        let packer = match self.recipe.format {
            Format::Zstd => FramePacker::new(&self.recipe).map(Packer::Frames),
            Format::Gzip => MemberPacker::like_zlib(self.recipe.level).map(Packer::Members),
            Format::Bgzf => MemberPacker::new(self.recipe.level).map(Packer::Members),
        };
        let packer = packer.map_err(Fault::work)?;
        let recipe = Recipe { filter: self.recipe.filter.filter(|_| !self.is_filtered), ..self.recipe };
        Ok(Box::new(PackSession { recipe, pool: self.pool.clone(), packer }))
    }
}

enum Packer {
    Frames(FramePacker),
    Members(MemberPacker),
}

struct PackSession {
    recipe: Recipe,
    pool: Pool,
    packer: Packer,
}

impl Session<PackWork> for PackSession {
    fn run(&mut self, block: &Block, _: &mut Context<'_, PackWork>) -> Result<Packed, Fault> {
        faults::point("pack");
        let filtered = self.recipe.filter.map(|filter| filter.apply(&block.bytes));
        let raw: &[u8] = filtered.as_deref().unwrap_or(&block.bytes);
        let mut bytes = self.pool.take(zstd_safe::compress_bound(raw.len()) + 256);
        let (into, mut members) = (bytes.vec_mut(), Vec::new());
        match (&mut self.packer, self.recipe.format) {
            (Packer::Frames(packer), _) => packer.pack(raw, into),
            (Packer::Members(packer), Format::Bgzf) => packer.bgzf(raw, into, &mut members),
            (Packer::Members(packer), _) => packer.ours(raw, into),
        }
        .map_err(Fault::work)?;
        Ok(Packed { bytes, raw: raw.len(), members })
    }
}
