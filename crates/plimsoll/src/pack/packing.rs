//! Blocks under way: read while there is room, packed side by side, written in input order.
//! Never holds more than the window. Invariant: what is written is a prefix of the packed file; an error comes once, last,
//! and is that of the first block that has one.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll};

use plimsoll_blocks::Recipe;
use plimsoll_blocks::assemble::Assembler;
use plimsoll_blocks::pool::{Pool, PooledBytes};
use plimsoll_blocks::workloads::{Block, Packed};
use plimsoll_core::Bytes;
use plimsoll_runtime::{Orchestrator, TaskResult};

use super::blocks::Blocks;
use super::error::PackError;
use super::packer::{BYTES_MAX, PackSummary, PackerOptions, items_max};
use super::stages::{self, BlockFlow};
use super::watch::PackWatch;
use crate::in_order::InOrder;
use crate::intake::{Broken, Intake};

/// Packs everything that the input gives.
pub(super) fn pack(
    orchestrator: &Orchestrator,
    options: PackerOptions,
    recipe: &Recipe,
    pool: &Pool,
    input: impl Read + Send + 'static,
    output: &mut dyn Write,
    watch: &PackWatch,
) -> Result<PackSummary, PackError> {
    let (items, blocks) = (items_max(orchestrator), Blocks::new(input, recipe.block, pool));
    let mut packing = Packing {
        flow: stages::open(orchestrator, recipe, options.stages, pool, items)?,
        input: Some(match options.reads_here {
            true => Intake::here(blocks),
            false => Intake::start("plimsoll-pack-in", blocks),
        }),
        done: InOrder::new(),
        sizes: VecDeque::new(),
        bytes: 0,
        submitted: 0,
        items,
        last: None,
        watch,
    };
    let mut file = File::begin(recipe, output, watch)?;
    while let Some(done) = packing.next() {
        let (block, retries) = done?;
        file.add(&block, retries)?;
    }
    file.end()
}

/// The packed file as it is written, block by block.
pub(super) struct File<'a> {
    assembler: Assembler,
    output: &'a mut dyn Write,
    watch: &'a PackWatch,
    summary: PackSummary,
}

impl<'a> File<'a> {
    /// Writes what comes before the first block.
    pub(super) fn begin(recipe: &Recipe, output: &'a mut dyn Write, watch: &'a PackWatch) -> Result<Self, PackError> {
        let mut file = Self { assembler: Assembler::new(*recipe), output, watch, summary: PackSummary::default() };
        let beginning = file.assembler.beginning();
        file.write(&beginning, 0)?;
        Ok(file)
    }

    /// Writes the next block, which was tried so often in vain.
    pub(super) fn add(&mut self, block: &Packed, retries: u64) -> Result<(), PackError> {
        self.assembler.add(block);
        self.write(&block.bytes, block.raw as u64)?;
        self.summary.blocks += 1;
        self.summary.retries += retries;
        Ok(())
    }

    /// Writes what comes after the last block.
    pub(super) fn end(mut self) -> Result<PackSummary, PackError> {
        let end = self.assembler.end(self.summary.blocks == 0).map_err(PackError::End)?;
        self.write(&end, 0)?;
        self.output.flush().map_err(PackError::Output)?;
        self.summary.index = self.assembler.index();
        Ok(self.summary)
    }

    fn write(&mut self, bytes: &[u8], raw: u64) -> Result<(), PackError> {
        self.output.write_all(bytes).map_err(PackError::Output)?;
        self.summary.packed += bytes.len() as u64;
        self.summary.raw += raw;
        self.watch.add(raw, bytes.len() as u64);
        Ok(())
    }
}

struct Packing<'a> {
    flow: Box<dyn BlockFlow>,
    /// `None` once it has nothing more to give.
    input: Option<Intake<PooledBytes, io::Error>>,
    done: InOrder<TaskResult<Packed>>,
    /// The bytes of each block submitted and not yet delivered.
    sizes: VecDeque<u64>,
    bytes: u64,
    submitted: u64,
    items: usize,
    /// What ends it once all blocks before it are delivered.
    last: Option<PackError>,
    watch: &'a PackWatch,
}

impl Packing<'_> {
    /// The next block in input order, and how often it was tried in vain.
    fn next(&mut self) -> Option<Result<(Packed, u64), PackError>> {
        pollster::block_on(poll_fn(|context| self.poll(context)))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<(Packed, u64), PackError>>> {
        if self.watch.sign().poll_raised(context).is_ready() {
            return Poll::Ready(Some(Err(PackError::Stopped)));
        }
        self.fill(context);
        while let Poll::Ready(Some(ended)) = self.flow.poll(context) {
            self.done.put(ended.item, ended.result);
        }
        if let Some((number, result)) = self.done.take() {
            self.bytes -= self.sizes.pop_front().unwrap_or_default();
            return Poll::Ready(Some(match result {
                Ok(done) => Ok((done.output, done.report.attempts.len() as u64)),
                Err(failure) => Err(PackError::of_block(number, failure)),
            }));
        }
        if self.flow.outstanding() == 0 && self.input.is_none() {
            return Poll::Ready(self.last.take().map(Err));
        }
        Poll::Pending
    }

    /// Reads blocks while there is room for them.
    fn fill(&mut self, context: &mut Context<'_>) {
        while self.has_room()
            && let Some(input) = &mut self.input
            && let Poll::Ready(given) = input.poll_item(context)
        {
            match given {
                Some(Ok(bytes)) => self.submit(bytes),
                Some(Err(Broken::Failed(error))) => self.end(PackError::Input(error)),
                Some(Err(Broken::Panicked(message))) => self.end(PackError::InputPanicked(message)),
                None => self.input = None,
            }
        }
    }

    fn has_room(&self) -> bool {
        let under_way = self.submitted - self.done.taken();
        under_way == 0 || (under_way < self.items as u64 && self.bytes < BYTES_MAX)
    }

    fn submit(&mut self, bytes: PooledBytes) {
        let size = 2 * bytes.len() as u64;
        match self.flow.submit(Block { bytes: Arc::new(bytes) }, Bytes(size)) {
            Ok(_) => {
                self.submitted += 1;
                self.bytes += size;
                self.sizes.push_back(size);
            }
            Err(reason) => self.end(PackError::Refused { number: self.submitted, reason }),
        }
    }

    fn end(&mut self, error: PackError) {
        (self.input, self.last) = (None, Some(error));
    }
}
