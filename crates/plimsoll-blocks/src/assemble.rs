//! Packed blocks become a file: what comes before the first, and what after the last.
//! Never looks into a block.

use crate::filter::record;
use crate::gzip::gzi::GziIndex;
use crate::gzip::header::BGZF_END;
use crate::gzip::member::MemberPacker;
use crate::options::{Format, Recipe};
use crate::workloads::Packed;
use crate::zstd::codec::FramePacker;
use crate::zstd::seekable::{self, FrameSize};

/// Puts a file together. Its parts are written in the order in which they are asked for.
#[derive(Debug)]
pub struct Assembler {
    recipe: Recipe,
    frames: Vec<FrameSize>,
    index: GziIndex,
    /// The seek table has no place for more.
    too_many: bool,
}

/// Frames in a seek table that we write. With frames of 8 MiB that is 64 TiB; a larger file has no table.
const FRAMES_MAX: usize = 1 << 23;

impl Assembler {
    /// A file of this kind.
    pub fn new(recipe: Recipe) -> Self {
        Self { recipe, frames: Vec::new(), index: GziIndex::default(), too_many: false }
    }

    /// What comes before the first block.
    pub fn beginning(&mut self) -> Vec<u8> {
        let Some(filter) = &self.recipe.filter else { return Vec::new() };
        let record = record::frame(filter);
        self.add_frame(record.len(), 0);
        record
    }

    /// The next block is this one.
    pub fn add(&mut self, block: &Packed) {
        match self.recipe.format {
            Format::Zstd => self.add_frame(block.bytes.len(), block.raw),
            Format::Gzip => {}
            Format::Bgzf => block.members.iter().for_each(|(packed, raw)| self.index.add(*packed, *raw)),
        }
    }

    fn add_frame(&mut self, packed: usize, raw: usize) {
        if self.frames.len() >= FRAMES_MAX {
            (self.too_many, self.frames) = (true, Vec::new());
        }
        if !self.too_many {
            self.frames.push(FrameSize { packed: packed as u32, raw: raw as u32 });
        }
    }

    /// What comes after the last block; `is_empty` if there was none.
    ///
    /// # Errors
    /// What the library says, if it cannot pack nothing.
    pub fn end(&mut self, is_empty: bool) -> Result<Vec<u8>, String> {
        let mut end = Vec::new();
        match self.recipe.format {
            Format::Zstd => {
                if is_empty {
                    FramePacker::new(&self.recipe)?.pack(&[], &mut end)?;
                    self.add_frame(end.len(), 0);
                }
                if !self.too_many {
                    end.extend(seekable::table(&self.frames));
                }
            }
            Format::Gzip if is_empty => MemberPacker::new(self.recipe.level)?.ours(&[], &mut end)?,
            Format::Gzip => {}
            Format::Bgzf => end.extend(BGZF_END),
        }
        Ok(end)
    }

    /// The index of a BGZF file, for a file of its own.
    pub fn index(&self) -> Option<Vec<u8>> {
        (self.recipe.format == Format::Bgzf).then(|| self.index.bytes())
    }
}
