//! Match finding as a stage: the sequences of a block, on any device. On a GPU a match is found for every position; on the
//! CPU only where the parse looks. What is taken is the same.

use std::sync::Arc;

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Session, Workload};

use super::Block;
use crate::faults;
use crate::matches::parse::{NoMatch, Sequence, sequences};
use crate::matches::tables::Tables;
use crate::matches::{FIRST_BITS, LANE_BITS, Reach, kernels};
use crate::options::{Format, Recipe};
use crate::pool::PooledBytes;

/// Finds the sequences of blocks.
pub struct FindWork {
    reach: Reach,
    /// Deflate has no matches longer than what is compared.
    extend: bool,
}

/// A block and its sequences.
pub struct Found {
    pub(crate) bytes: Arc<PooledBytes>,
    pub(crate) sequences: Vec<Sequence>,
}

impl FindWork {
    /// For the format of this recipe.
    pub fn new(recipe: &Recipe) -> Self {
        match recipe.format {
            Format::Zstd => Self { reach: Reach::BLOCK, extend: true },
            Format::Gzip | Format::Bgzf => Self { reach: Reach::DEFLATE, extend: false },
        }
    }
}

impl Workload for FindWork {
    type Input = Block;
    type Reference = ();
    type Prepared = ();
    type Output = Found;

    fn name(&self) -> &str {
        if self.extend { "pack-match-block" } else { "pack-match-window" }
    }

    fn units(&self, block: &Block) -> u64 {
        block.bytes.len() as u64
    }

    fn ladder(&self, block: &Block) -> Ladder {
        let tables = Bytes((4 << FIRST_BITS) + (4 << LANE_BITS));
        let host = Footprint { session: tables, task: Bytes(block.bytes.len() as u64), reference: Bytes::ZERO };
        let device = Footprint::task(kernels::bytes_for(block.bytes.len()));
        Ladder::from(vec![
            Rung::new("gpu", Place::On(DeviceKind::Gpu), device),
            Rung::new("cpu", Place::On(DeviceKind::Cpu), host),
        ])
    }

    fn open(&self, rung: &Rung, _: &Block, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        let tables = (rung.place == Place::On(DeviceKind::Cpu)).then(Tables::new);
        Ok(Box::new(FindSession { reach: self.reach, extend: self.extend, tables }))
    }
}

struct FindSession {
    reach: Reach,
    extend: bool,
    /// On the CPU.
    tables: Option<Tables>,
}

impl Session<FindWork> for FindSession {
    fn run(&mut self, block: &Block, context: &mut Context<'_, FindWork>) -> Result<Found, Fault> {
        faults::point("match");
        let bytes = &block.bytes[..];
        let taken = match &mut self.tables {
            Some(tables) => {
                let mut finder = tables.finder(bytes, self.reach);
                sequences(bytes, self.extend, |position| finder.at(position)).map_err(Fault::work)?
            }
            None => {
                let matches = kernels::find(context.backend, bytes, self.reach)?;
                let at = |position: usize| {
                    matches.get(position).map_or_else(Default::default, |word| kernels::unpacked(*word))
                };
                sequences(bytes, self.extend, at).map_err(wrong_answer)?
            }
        };
        Ok(Found { bytes: Arc::clone(&block.bytes), sequences: taken })
    }
}

/// A device that finds matches that are none does not compute rightly.
fn wrong_answer(error: NoMatch) -> Fault {
    Fault::WrongAnswer { detail: error.to_string() }
}
