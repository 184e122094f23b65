//! Rows of chunks: slabs of one level come in, and go out as batches of chunks once a row is whole.
//! Invariant: every chunk of the array is in one batch, row by row, and within a row object by object.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_arrays::work::{Batch, Slab};
use plimsoll_arrays::{Grid, Layout};

/// Bytes of a batch: what a core packs in a few milliseconds, and more than handing it over costs.
const BATCH_BYTES: usize = 1 << 20;

/// Chunks in a batch at the most.
pub(super) fn chunks_in_batch(grid: &Grid) -> usize {
    (BATCH_BYTES / grid.chunk_bytes().max(1)).clamp(1, grid.chunks_in_object())
}

/// A batch, and whether it is the last of its object. Objects that the end of the array cuts short have no last one.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) batch: Batch,
    pub(super) ends_object: bool,
    /// It is the last of all objects that lie beside each other.
    pub(super) ends_row_of_objects: bool,
}

/// The slabs of one level that are not yet packed.
#[derive(Debug)]
pub(super) struct Rows {
    level: usize,
    grid: Grid,
    /// Objects over all dimensions but the first, by their coordinates.
    objects: Vec<Vec<u64>>,
    slabs: VecDeque<Arc<Slab>>,
    /// The first row of chunks that was not given out.
    row: u64,
}

impl Rows {
    /// Rows of a level, from this step of it on; it must begin an object.
    pub(super) fn new(layout: &Layout, level: usize, first: u64) -> Self {
        let grid = layout.levels()[level].grid.clone();
        let row = first / grid.chunk[0];
        Self { level, objects: inner_objects(&grid), grid, slabs: VecDeque::new(), row }
    }

    /// Takes the next slab in, and gives the batches of every row that is whole with it.
    pub(super) fn add(&mut self, slab: Arc<Slab>) -> Vec<Cut> {
        let end = slab.end();
        self.slabs.push_back(slab);
        let mut cuts = Vec::new();
        while (self.row + 1) * self.grid.chunk[0] <= end {
            self.cut(&mut cuts);
        }
        cuts
    }

    /// Gives the batches of what is left, when nothing more comes.
    pub(super) fn end(&mut self) -> Vec<Cut> {
        let mut cuts = Vec::new();
        if self.slabs.back().is_some_and(|slab| slab.end() > self.row * self.grid.chunk[0]) {
            self.cut(&mut cuts);
        }
        cuts
    }

    fn cut(&mut self, cuts: &mut Vec<Cut>) {
        let slabs = self.slabs_of_row();
        let rows = self.grid.chunks_per_object[0];
        let (object, within) = (self.row / rows, self.row % rows);
        let ends = within + 1 == rows;
        let side = self.grid.chunks_in_object() / rows as usize;
        let begin = within as usize * side;
        let piece = chunks_in_batch(&self.grid);
        for (at, inner) in self.objects.iter().enumerate() {
            let object = [&[object], &inner[..]].concat();
            for from in (begin..begin + side).step_by(piece) {
                let to = (from + piece).min(begin + side);
                let ends_object = ends && to == begin + side;
                let batch =
                    Batch { level: self.level, object: object.clone(), chunks: from..to, slabs: Arc::clone(&slabs) };
                let ends_row_of_objects = ends_object && at + 1 == self.objects.len();
                cuts.push(Cut { batch, ends_object, ends_row_of_objects });
            }
        }
        self.row += 1;
        let needed = self.row * self.grid.chunk[0];
        while self.slabs.front().is_some_and(|slab| slab.end() <= needed) {
            self.slabs.pop_front();
        }
    }

    fn slabs_of_row(&self) -> Arc<[Arc<Slab>]> {
        let end = (self.row + 1) * self.grid.chunk[0];
        self.slabs.iter().filter(|slab| slab.first < end).cloned().collect()
    }
}

/// The coordinates of objects over all dimensions but the first, row-major.
fn inner_objects(grid: &Grid) -> Vec<Vec<u64>> {
    let counts: Vec<u64> = grid.shape[1..].iter().zip(&grid.object()[1..]).map(|(n, size)| n.div_ceil(*size)).collect();
    counts.iter().fold(vec![Vec::new()], |before, count| {
        let beside = |front: &Vec<u64>| (0..*count).map(|at| [&front[..], &[at]].concat()).collect::<Vec<_>>();
        before.iter().flat_map(beside).collect()
    })
}
