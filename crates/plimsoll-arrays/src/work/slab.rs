//! Slabs: steps along the first dimension of one level, one behind the other, as they lie in the array.

use plimsoll_blocks::pool::PooledBytes;

use super::Place as SlabPlace;
use crate::copy::{Place, copy_box};
use crate::grid::Grid;

/// Some steps of one level.
#[derive(Debug)]
pub struct Slab {
    /// The first of them, counted along the first dimension of its level.
    pub first: u64,
    /// How many.
    pub steps: u64,
    /// Their elements, row-major and little-endian.
    pub elements: PooledBytes,
    /// The place that it takes, if it is of the full resolution; goes back with it.
    pub place: Option<SlabPlace>,
}

impl Slab {
    /// The step behind its last.
    pub fn end(&self) -> u64 {
        self.first + self.steps
    }

    /// Copies what it has of a chunk that begins at `start` into the chunk's own elements; the chunk reaches over so much
    /// of the array.
    pub(super) fn copy_into(&self, chunk: &mut [u8], grid: &Grid, start: &[u64], extent: &[u64]) {
        let (from, to) = (self.first.max(start[0]), self.end().min(start[0] + extent[0]));
        if from >= to {
            return;
        }
        let with_first = |first: u64, rest: &[u64]| [&[first], rest].concat();
        let shape = with_first(self.steps, &grid.shape[1..]);
        let at = with_first(from - self.first, &start[1..]);
        let mut into = vec![0; grid.rank()];
        into[0] = from - start[0];
        let extent = with_first(to - from, &extent[1..]);
        let (from, into) = (Place { shape: &shape, start: &at }, Place { shape: &grid.chunk, start: &into });
        copy_box(&self.elements, from, chunk, into, &extent, grid.element_bytes());
    }
}
