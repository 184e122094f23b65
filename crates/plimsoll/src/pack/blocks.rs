//! Input as blocks of one size, the last one shorter. Reads until the input ends, whatever its length was said to be.

use std::io::{self, Read};

use plimsoll_blocks::pool::{Pool, PooledBytes};

/// Blocks from a reader.
pub(super) struct Blocks<R> {
    reader: R,
    pool: Pool,
    block: usize,
    is_first: bool,
    over: bool,
}

/// Bytes of the first block that are read before there is room for a whole one: most small files are no longer, and room that
/// is used for the first time costs as much as packing them.
const FIRST: usize = 64 << 10;

impl<R: Read> Blocks<R> {
    pub(super) fn new(reader: R, block: usize, pool: &Pool) -> Self {
        Self { reader, pool: pool.clone(), block, is_first: true, over: false }
    }
}

impl<R: Read> Iterator for Blocks<R> {
    type Item = io::Result<PooledBytes>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        match self.read() {
            Err(reason) => {
                self.over = true;
                Some(Err(reason))
            }
            Ok(bytes) => {
                self.over = bytes.len() < self.block;
                (!bytes.is_empty()).then_some(Ok(bytes))
            }
        }
    }
}

impl<R: Read> Blocks<R> {
    fn read(&mut self) -> io::Result<PooledBytes> {
        let first = if std::mem::take(&mut self.is_first) { FIRST.min(self.block) } else { self.block };
        let mut bytes = self.pool.take(first);
        self.fill(&mut bytes, first)?;
        if bytes.len() < first || first == self.block {
            return Ok(bytes);
        }
        let mut whole = self.pool.take(self.block);
        whole.vec_mut().extend_from_slice(&bytes);
        self.fill(&mut whole, self.block - first)?;
        Ok(whole)
    }

    /// Appends so many bytes, or what there is.
    fn fill(&mut self, bytes: &mut PooledBytes, count: usize) -> io::Result<usize> {
        (&mut self.reader).take(count as u64).read_to_end(bytes.vec_mut())
    }
}
