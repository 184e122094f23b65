//! How an array is cut: shards (or chunks) as objects, chunks within a shard, and where each begins.
//! Never reads or writes anything. Invariant: every product that a method gives was checked against overflow in `new`.

use crate::data_type::DataType;
use crate::layout::SpecError;
use crate::limits::{ARRAY_BYTES_MAX, CHUNK_BYTES_MAX, CHUNKS_PER_SHARD_MAX, DIMENSION_MAX, RANK_MAX};

/// An array's shape and how it is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grid {
    /// Elements along each dimension; the first is 0 while nothing was written along a dimension that grows.
    pub shape: Vec<u64>,
    /// Elements of a chunk along each dimension.
    pub chunk: Vec<u64>,
    /// Elements of a shard along each dimension, if chunks are put into shards.
    pub shard: Option<Vec<u64>>,
    /// Chunks of an object along each dimension: of a shard, or one where there are none.
    pub chunks_per_object: Vec<u64>,
    element_bytes: usize,
}

impl Grid {
    /// Checks that the parts go together, and that nothing of it is too large to be counted.
    pub fn new(
        shape: Vec<u64>,
        chunk: Vec<u64>,
        shard: Option<Vec<u64>>,
        data_type: DataType,
    ) -> Result<Self, SpecError> {
        check_shape(&shape)?;
        check_sizes("chunk", &chunk, shape.len())?;
        let chunks_per_object = match &shard {
            Some(shard) => chunks_per_shard(shard, &chunk, shape.len())?,
            None => vec![1; shape.len()],
        };
        let grid = Self { shape, chunk, shard, chunks_per_object, element_bytes: data_type.bytes() };
        grid.check_products()?;
        Ok(grid)
    }

    fn check_products(&self) -> Result<(), SpecError> {
        let bytes = self.element_bytes as u64;
        let chunk = product(&self.chunk, bytes).unwrap_or(u64::MAX);
        if chunk > CHUNK_BYTES_MAX {
            return Err(SpecError::chunk_bytes(chunk));
        }
        let chunks = product(&self.chunks_per_object, 1).unwrap_or(u64::MAX);
        if chunks > CHUNKS_PER_SHARD_MAX {
            return Err(SpecError::ShardChunks { got: chunks });
        }
        let is_countable = |shape: &[u64]| product(shape, bytes).is_some_and(|bytes| bytes <= ARRAY_BYTES_MAX);
        if !is_countable(&self.shape[1..]) || !is_countable(&self.shape) {
            return Err(SpecError::TooLarge { what: "array" });
        }
        // Chunks reach over the ends of the array: what they cover must be countable as well.
        let covered: Vec<u64> =
            self.shape.iter().zip(self.object()).map(|(n, object)| n.next_multiple_of(*object)).collect();
        if !is_countable(&covered[1..]) || !is_countable(&covered) {
            return Err(SpecError::TooLarge { what: "array with its last shards" });
        }
        Ok(())
    }

    /// The same array with so many elements along its first dimension.
    pub fn with_length(&self, length: u64) -> Result<Self, SpecError> {
        let mut grid = self.clone();
        grid.shape[0] = length;
        check_shape(&grid.shape)?;
        grid.check_products()?;
        Ok(grid)
    }

    /// Dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Elements along each dimension of what is stored as one object: a shard, or a chunk where there are no shards.
    pub fn object(&self) -> &[u64] {
        self.shard.as_deref().unwrap_or(&self.chunk)
    }

    /// Bytes of an element.
    pub fn element_bytes(&self) -> usize {
        self.element_bytes
    }

    /// Elements of a chunk.
    pub fn chunk_elements(&self) -> usize {
        self.chunk_bytes() / self.element_bytes
    }

    /// Bytes of a chunk before it is packed.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk.iter().product::<u64>() as usize * self.element_bytes
    }

    /// Chunks in one object.
    pub fn chunks_in_object(&self) -> usize {
        self.chunks_per_object.iter().product::<u64>() as usize
    }

    /// Objects along each dimension.
    pub fn object_counts(&self) -> Vec<u64> {
        self.shape.iter().zip(self.object()).map(|(n, object)| n.div_ceil(*object)).collect()
    }

    /// Chunks along each dimension, those of the last shard only as far as the array reaches.
    pub fn chunk_counts(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk).map(|(n, chunk)| n.div_ceil(*chunk)).collect()
    }

    /// Objects over all dimensions but the first: those that are under way at once while the first grows.
    pub fn objects_in_row(&self) -> u64 {
        self.object_counts()[1..].iter().product()
    }

    /// Chunks over all dimensions but the first.
    pub fn chunks_in_row(&self) -> u64 {
        self.chunk_counts()[1..].iter().product()
    }

    /// Elements of one step along the first dimension.
    pub fn step_elements(&self) -> u64 {
        self.shape[1..].iter().product()
    }

    /// Bytes of one step along the first dimension.
    pub fn step_bytes(&self) -> u64 {
        self.step_elements() * self.element_bytes as u64
    }

    /// Elements of the whole array.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The coordinates of an object among objects, by its number in row-major order.
    pub fn object_at(&self, number: u64) -> Vec<u64> {
        unravel(number, &self.object_counts())
    }

    /// The number of a chunk within its object, from its coordinates there.
    pub fn chunk_number(&self, within: &[u64]) -> usize {
        within.iter().zip(&self.chunks_per_object).fold(0, |number, (at, count)| number * count + at) as usize
    }

    /// Where a chunk begins in the array.
    pub fn chunk_start(&self, object: &[u64], chunk: usize) -> Vec<u64> {
        let within = unravel(chunk as u64, &self.chunks_per_object);
        let starts = object.iter().zip(self.object()).zip(within.iter().zip(&self.chunk));
        starts.map(|((object, size), (within, chunk))| object * size + within * chunk).collect()
    }

    /// Elements of a chunk that lie in the array, along each dimension; all zero if none do.
    pub fn chunk_extent(&self, start: &[u64]) -> Vec<u64> {
        let left: Vec<u64> = self.shape.iter().zip(start).map(|(n, start)| n.saturating_sub(*start)).collect();
        if left.contains(&0) {
            return vec![0; left.len()];
        }
        left.iter().zip(&self.chunk).map(|(left, chunk)| *left.min(chunk)).collect()
    }
}

/// Row-major coordinates of a number.
fn unravel(mut number: u64, counts: &[u64]) -> Vec<u64> {
    let mut at = vec![0; counts.len()];
    for (at, count) in at.iter_mut().zip(counts).rev() {
        *at = number % (*count).max(1);
        number /= (*count).max(1);
    }
    at
}

fn product(factors: &[u64], first: u64) -> Option<u64> {
    factors.iter().try_fold(first, |product, factor| product.checked_mul(*factor))
}

fn check_shape(shape: &[u64]) -> Result<(), SpecError> {
    if shape.is_empty() || shape.len() > RANK_MAX {
        return Err(SpecError::Rank { rank: shape.len() });
    }
    if let Some(inner) = shape[1..].iter().position(|n| *n == 0) {
        return Err(SpecError::Zero { what: "shape", dimension: inner + 1 });
    }
    match shape.iter().position(|n| *n > DIMENSION_MAX) {
        Some(dimension) => Err(SpecError::Dimension { dimension, got: shape[dimension] }),
        None => Ok(()),
    }
}

fn check_sizes(what: &'static str, sizes: &[u64], rank: usize) -> Result<(), SpecError> {
    if sizes.len() != rank {
        return Err(SpecError::Lengths { what, rank, got: sizes.len() });
    }
    if let Some(dimension) = sizes.iter().position(|size| *size == 0) {
        return Err(SpecError::Zero { what, dimension });
    }
    match sizes.iter().position(|size| *size > DIMENSION_MAX) {
        Some(dimension) => Err(SpecError::Dimension { dimension, got: sizes[dimension] }),
        None => Ok(()),
    }
}

fn chunks_per_shard(shard: &[u64], chunk: &[u64], rank: usize) -> Result<Vec<u64>, SpecError> {
    check_sizes("shard", shard, rank)?;
    let pairs = shard.iter().zip(chunk).enumerate();
    pairs
        .map(|(dimension, (&shard, &chunk))| {
            let is_whole = shard % chunk == 0;
            is_whole.then_some(shard / chunk).ok_or(SpecError::ShardNotWhole { dimension, shard, chunk })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(shape: &[u64], chunk: &[u64], shard: Option<&[u64]>) -> Result<Grid, SpecError> {
        Grid::new(shape.to_vec(), chunk.to_vec(), shard.map(<[u64]>::to_vec), DataType::U16)
    }

    #[test]
    fn counts_and_starts() {
        let grid = grid(&[10, 7, 9], &[2, 2, 3], Some(&[4, 4, 6])).unwrap();
        assert_eq!(grid.object_counts(), [3, 2, 2]);
        assert_eq!(grid.chunk_counts(), [5, 4, 3]);
        assert_eq!(grid.chunks_in_object(), 8);
        assert_eq!(grid.chunk_bytes(), 24);
        assert_eq!(grid.chunk_number(&[1, 0, 1]), 5);
        assert_eq!(grid.object_at(5), [1, 0, 1]);
        assert_eq!(grid.chunk_start(&[1, 0, 1], 5), [6, 0, 9]);
        assert_eq!(grid.chunk_extent(&[8, 6, 6]), [2, 1, 3]);
        assert_eq!(grid.chunk_extent(&[6, 0, 9]), [0, 0, 0]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(grid(&[], &[], None), Err(SpecError::Rank { rank: 0 }));
        assert_eq!(grid(&[1; 33], &[1; 33], None), Err(SpecError::Rank { rank: 33 }));
        assert_eq!(grid(&[4, 0], &[1, 1], None), Err(SpecError::Zero { what: "shape", dimension: 1 }));
        assert_eq!(grid(&[4, 4], &[1, 0], None), Err(SpecError::Zero { what: "chunk", dimension: 1 }));
        assert_eq!(grid(&[4, 4], &[1], None), Err(SpecError::Lengths { what: "chunk", rank: 2, got: 1 }));
        let not_whole = SpecError::ShardNotWhole { dimension: 1, shard: 5, chunk: 2 };
        assert_eq!(grid(&[4, 4], &[1, 2], Some(&[1, 5])), Err(not_whole));
        assert!(matches!(grid(&[1 << 40; 4], &[1; 4], None), Err(SpecError::TooLarge { .. })));
        assert!(matches!(grid(&[1 << 40; 2], &[1 << 40; 2], None), Err(SpecError::ChunkBytes { .. })));
        assert!(matches!(grid(&[9; 2], &[1; 2], Some(&[1 << 40, 1 << 40])), Err(SpecError::ShardChunks { .. })));
        assert!(matches!(grid(&[1 << 54], &[1], None), Err(SpecError::Dimension { .. })));
    }
}
