//! A plain writer over the parts of the crate, for tests: the whole array in memory, one chunk after the other.

use plimsoll_arrays::codec::Scratch;
use plimsoll_arrays::copy::{Place, copy_box};
use plimsoll_arrays::levels::{Block, reduce};
use plimsoll_arrays::metadata;
use plimsoll_arrays::shard::ShardBuilder;
use plimsoll_arrays::sink::Sink;
use plimsoll_arrays::{DataType, Grid, Layout, LevelLayout};

/// Writes an array of so many steps along its first dimension, every level and the metadata.
pub(crate) fn write(sink: &dyn Sink, layout: &Layout, length: u64, elements: &[u8]) {
    let mut elements = elements.to_vec();
    for (number, level) in layout.levels().iter().enumerate() {
        let grid = layout.grid_at(number, length).unwrap();
        if number > 0 {
            let finer = layout.grid_at(number - 1, length).unwrap();
            let shape: Vec<usize> = finer.shape.iter().map(|size| *size as usize).collect();
            let mut reduced = Vec::new();
            let block = Block { elements: &elements, shape: &shape, halved: &level.halved };
            reduce(layout.data_type(), layout.reduction(), block, &mut reduced);
            elements = reduced;
        }
        let writer = LevelWriter { sink, layout, level, grid: &grid, elements: &elements };
        writer.write();
    }
    for (key, text) in metadata::files(layout, length).unwrap() {
        sink.put(&key, &text).unwrap();
    }
}

struct LevelWriter<'a> {
    sink: &'a dyn Sink,
    layout: &'a Layout,
    level: &'a LevelLayout,
    grid: &'a Grid,
    elements: &'a [u8],
}

impl LevelWriter<'_> {
    fn write(&self) {
        let mut scratch = Scratch::default();
        for number in 0..self.grid.object_counts().iter().product() {
            let object = self.grid.object_at(number);
            self.write_object(&self.level.object_key(&object), &object, &mut scratch);
        }
    }

    fn write_object(&self, key: &str, object: &[u64], scratch: &mut Scratch) {
        let codec = self.layout.chunk_codec();
        let (mut shard, mut bytes) = (ShardBuilder::new(self.grid.chunks_in_object()), Vec::new());
        for chunk in 0..self.grid.chunks_in_object() {
            let Some(elements) = self.chunk(&self.grid.chunk_start(object, chunk)) else { continue };
            let begin = bytes.len();
            codec.encode(&elements, scratch, &mut bytes).unwrap();
            assert_eq!(shard.add(chunk, (bytes.len() - begin) as u64).unwrap(), begin as u64);
        }
        if shard.is_empty() {
            return;
        }
        let mut written = self.sink.begin(key).unwrap();
        written.append(&bytes).unwrap();
        if self.grid.shard.is_some() {
            written.append(&shard.finish()).unwrap();
        }
        written.finish().unwrap();
    }

    /// A chunk in storage order, padded; none if it is all fill.
    fn chunk(&self, start: &[u64]) -> Option<Vec<u8>> {
        let mut chunk = vec![0; self.grid.chunk_bytes()];
        self.layout.fill().fill(&mut chunk);
        let extent = self.grid.chunk_extent(start);
        let from = Place { shape: &self.grid.shape, start };
        let to = Place { shape: &self.grid.chunk, start: &vec![0; start.len()] };
        copy_box(self.elements, from, &mut chunk, to, &extent, self.grid.element_bytes());
        if self.layout.fill().is_all(&chunk) {
            return None;
        }
        let mut stored = Vec::new();
        self.layout.order().store(&chunk, &self.grid.chunk, self.grid.element_bytes(), &mut stored);
        Some(stored)
    }
}

/// Elements that pack somewhat: slow waves, noise, runs of the fill value zero, and every special float.
pub(crate) fn elements(data_type: DataType, count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let width = data_type.bytes();
    (0..count)
        .flat_map(|at| {
            let bits = match (at / 29) % 4 {
                0 => 0,
                1 => noise() << 33 | noise(),
                _ => (at as u64 % 61) * 3 + noise() % 4,
            };
            bits.to_le_bytes().into_iter().take(width)
        })
        .collect()
}
