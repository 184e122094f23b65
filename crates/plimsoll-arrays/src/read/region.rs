//! Reading a box of elements out of a level: whatever is not stored is the fill value.

use super::object::ChunkReader;
use super::{FaultError, Level, Store, StoreError};
use crate::codec::Scratch;
use crate::copy::{Place, copy_box};

/// Bytes that are read at once at the most.
pub const REGION_BYTES_MAX: u64 = 1 << 30;

/// A box of elements: where it begins, and how many it has along each dimension.
#[derive(Copy, Clone)]
struct Region<'a> {
    start: &'a [u64],
    extent: &'a [u64],
}

impl Store {
    /// All elements of a level, row-major.
    pub fn read_level(&self, level: usize) -> Result<Vec<u8>, StoreError> {
        let shape = self.level(level)?.metadata.grid.shape.clone();
        self.read_region(level, &vec![0; shape.len()], &shape)
    }

    /// The elements of a region of a level, row-major.
    pub fn read_region(&self, level: usize, start: &[u64], extent: &[u64]) -> Result<Vec<u8>, StoreError> {
        let level = self.level(level)?;
        let region = Region { start, extent };
        let bytes = region.checked_bytes(level)?;
        let mut out = vec![0; bytes];
        level.metadata.fill.fill(&mut out);
        if bytes == 0 {
            return Ok(out);
        }
        let mut reader = ChunkReader::new(&*self.sink, level);
        let mut scratch = Scratch::default();
        let (first, last) = region.objects(level);
        let mut object = first.clone();
        loop {
            let key = level.key(&level.metadata.object_key(&object));
            if let Some(bytes) = reader.size(&key)? {
                let read = read_object(level, &mut reader, &mut scratch, (&object, &key, bytes), region, &mut out);
                read.map_err(|source| StoreError::Object { key, source })?;
            }
            if !step(&mut object, &first, &last) {
                return Ok(out);
            }
        }
    }
}

impl Region<'_> {
    /// Its bytes, if it lies in the level and is not too large.
    fn checked_bytes(&self, level: &Level) -> Result<usize, StoreError> {
        let grid = &level.metadata.grid;
        let ends = self.start.iter().zip(self.extent).map(|(start, extent)| start.checked_add(*extent));
        let is_inside = self.start.len() == grid.rank()
            && self.extent.len() == grid.rank()
            && ends.zip(&grid.shape).all(|(end, size)| end.is_some_and(|end| end <= *size));
        if !is_inside {
            let (start, extent) = (self.start.to_vec(), self.extent.to_vec());
            return Err(StoreError::Region { start, extent, shape: grid.shape.clone() });
        }
        // No overflow: the whole array was checked to be countable.
        let bytes = self.extent.iter().product::<u64>() * grid.element_bytes() as u64;
        match bytes {
            ..=REGION_BYTES_MAX => Ok(bytes as usize),
            _ => Err(StoreError::RegionBytes { most: REGION_BYTES_MAX }),
        }
    }

    /// The first and the last object that it reaches into, along each dimension.
    fn objects(&self, level: &Level) -> (Vec<u64>, Vec<u64>) {
        let sizes = self.start.iter().zip(self.extent).zip(level.metadata.grid.object());
        sizes.map(|((start, extent), size)| (start / size, (start + extent - 1) / size)).unzip()
    }
}

fn read_object(
    level: &Level,
    reader: &mut ChunkReader<'_>,
    scratch: &mut Scratch,
    (object, key, bytes): (&[u64], &str, u64),
    region: Region<'_>,
    out: &mut [u8],
) -> Result<(), FaultError> {
    let grid = &level.metadata.grid;
    for (chunk, place) in reader.index(key, bytes)?.ranges() {
        let begin = grid.chunk_start(object, chunk);
        let Some((start, extent)) = overlap(&begin, &grid.chunk_extent(&begin), region) else { continue };
        reader.read(key, place, scratch)?;
        let less = |from: &[u64]| -> Vec<u64> { start.iter().zip(from).map(|(start, from)| start - from).collect() };
        let from = Place { shape: &grid.chunk, start: &less(&begin) };
        let to = Place { shape: region.extent, start: &less(region.start) };
        copy_box(&reader.chunk, from, out, to, &extent, grid.element_bytes());
    }
    Ok(())
}

/// What a chunk and a region share: where it begins, and its extent.
fn overlap(begin: &[u64], size: &[u64], region: Region<'_>) -> Option<(Vec<u64>, Vec<u64>)> {
    let chunk = begin.iter().zip(size);
    let asked = region.start.iter().zip(region.extent);
    let both = chunk.zip(asked).map(|((begin, size), (start, extent))| {
        let (from, to) = ((*begin).max(*start), (begin + size).min(start + extent));
        (from < to).then(|| (from, to - from))
    });
    both.collect::<Option<Vec<_>>>().map(|both| both.into_iter().unzip())
}

/// Goes to the next object between the first and the last; false behind it.
fn step(object: &mut [u64], first: &[u64], last: &[u64]) -> bool {
    for ((at, first), last) in object.iter_mut().zip(first).zip(last).rev() {
        if *at < *last {
            *at += 1;
            return true;
        }
        *at = *first;
    }
    false
}
