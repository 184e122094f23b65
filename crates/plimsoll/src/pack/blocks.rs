//! Input as blocks of one size, the last one shorter. Reads until the input ends, whatever its length was said to be.

use std::io::{self, Read};

use plimsoll_blocks::pool::{Pool, PooledBytes};

/// Blocks from a reader.
pub(super) struct Blocks<R> {
    reader: R,
    pool: Pool,
    block: usize,
    over: bool,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(reader: R, block: usize, pool: &Pool) -> Self {
        Self { reader, pool: pool.clone(), block, over: false }
    }
}

impl<R: Read> Iterator for Blocks<R> {
    type Item = io::Result<PooledBytes>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let mut bytes = self.pool.take(self.block);
        let read = (&mut self.reader).take(self.block as u64).read_to_end(bytes.vec_mut());
        self.over = read.as_ref().map_or(true, |read| *read < self.block);
        match read {
            Err(reason) => Some(Err(reason)),
            Ok(0) => None,
            Ok(_) => Some(Ok(bytes)),
        }
    }
}
