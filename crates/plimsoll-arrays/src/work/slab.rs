//! Slabs: steps along the first dimension of one level, as they lie in the array or cut into chunks.

use std::sync::Arc;

use plimsoll_blocks::pool::PooledBytes;

use super::Place as SlabPlace;
use super::scatter::chunk_offset;
use crate::copy::{Place, append_box, copy_box};
use crate::grid::Grid;

/// How the elements of a slab lie.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Row-major, as in the array.
    #[default]
    Steps,
    /// Chunk behind chunk, row by row of chunks, each whole: what is beyond the array is the fill value.
    Chunks {
        /// Whether their blocks are shuffled as the codec wants them.
        is_shuffled: bool,
    },
}

/// Some steps of one level.
#[derive(Debug)]
pub struct Slab {
    /// The first of them, counted along the first dimension of its level.
    pub first: u64,
    /// How many.
    pub steps: u64,
    /// Their elements, little-endian.
    pub elements: PooledBytes,
    /// How they lie.
    pub form: Form,
    /// The place that it takes, if it is of the full resolution; goes back with the last that holds it.
    pub place: Option<Arc<SlabPlace>>,
}

impl Slab {
    /// The step behind its last.
    pub fn end(&self) -> u64 {
        self.first + self.steps
    }

    /// The chunk that begins there, if it is one of those that it is cut into.
    pub(super) fn chunk(&self, grid: &Grid, start: &[u64]) -> Option<(&[u8], bool)> {
        let Form::Chunks { is_shuffled } = self.form else { return None };
        let is_inside = (self.first..self.end()).contains(&start[0]);
        let at = is_inside.then(|| chunk_offset(grid, self.first, start))?;
        self.elements.get(at..at + grid.chunk_bytes()).map(|chunk| (chunk, is_shuffled))
    }

    /// Appends a chunk that begins there, if it has the whole of it: nobody needs to make room for it first.
    pub(super) fn append_chunk(&self, out: &mut Vec<u8>, grid: &Grid, start: &[u64]) -> bool {
        let is_inside = |at: usize| start[at] + grid.chunk[at] <= grid.shape[at];
        let is_whole = start[0] >= self.first && start[0] + grid.chunk[0] <= self.end();
        if self.form != Form::Steps || !is_whole || !(1..grid.rank()).all(is_inside) {
            return false;
        }
        let (mut shape, mut at) = (grid.shape.clone(), start.to_vec());
        (shape[0], at[0]) = (self.steps, start[0] - self.first);
        append_box(&self.elements, Place { shape: &shape, start: &at }, out, &grid.chunk, grid.element_bytes());
        true
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
