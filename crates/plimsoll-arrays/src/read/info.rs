//! What a user wants to know of a store: shapes, chunks, codec, and how much of it is there.

use serde_json::{Map, Value};

use super::object::ChunkReader;
use super::{Level, Store, StoreError};
use crate::codec::Codec;
use crate::data_type::DataType;
use crate::fill::FillValue;
use crate::grid::Grid;
use crate::order::StorageOrder;
use crate::spec::Axis;

/// What there is to know of a store.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Info {
    /// What the elements are.
    pub data_type: DataType,
    /// How chunks are packed.
    pub codec: Codec,
    /// What elements are that nobody wrote.
    pub fill: FillValue,
    /// The order in which a chunk's dimensions are stored.
    pub order: StorageOrder,
    /// What the dimensions are, if the metadata say it.
    pub axes: Option<Vec<Axis>>,
    /// How levels were made, if the metadata say it.
    pub reduction: Option<String>,
    /// Every level, the full resolution first.
    pub levels: Vec<LevelInfo>,
    /// What the user keeps with it.
    pub attributes: Map<String, Value>,
}

/// What there is to know of one level.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LevelInfo {
    /// Where it lies in the store; empty if the root is the array.
    pub path: String,
    /// Its shape and how it is cut.
    pub grid: Grid,
    /// Objects that are there.
    pub objects: u64,
    /// Objects whose index cannot be read; `verify` says why.
    pub unreadable: u64,
    /// Chunks that the array has.
    pub chunks: u64,
    /// Chunks that are stored; all others hold the fill value alone.
    pub stored_chunks: u64,
    /// Bytes of the objects.
    pub stored_bytes: u64,
}

impl LevelInfo {
    /// Bytes of the array's elements.
    pub fn bytes(&self) -> u64 {
        self.grid.elements() * self.grid.element_bytes() as u64
    }

    /// Bytes of the stored chunks before they were packed, for each byte that is stored.
    pub fn ratio(&self) -> Option<f64> {
        let unpacked = self.stored_chunks as f64 * self.grid.chunk_bytes() as f64;
        (self.stored_bytes > 0).then(|| unpacked / self.stored_bytes as f64)
    }
}

impl Info {
    /// Bytes of the stored chunks of all levels before they were packed, for each byte that is stored.
    pub fn ratio(&self) -> Option<f64> {
        let sum = |of: fn(&LevelInfo) -> f64| self.levels.iter().map(of).sum::<f64>();
        let stored = sum(|level| level.stored_bytes as f64);
        let unpacked = sum(|level| level.stored_chunks as f64 * level.grid.chunk_bytes() as f64);
        (stored > 0.0).then(|| unpacked / stored)
    }
}

impl Store {
    /// What there is to know. Reads the index of every shard and no chunk.
    pub fn info(&self) -> Result<Info, StoreError> {
        let first = &self.levels()[0].metadata;
        let multiscale = self.group.as_ref().and_then(|group| group.multiscale.as_ref());
        let levels: Result<_, StoreError> = (0..self.levels().len()).map(|level| self.level_info(level)).collect();
        Ok(Info {
            data_type: first.data_type,
            codec: first.codec,
            fill: first.fill,
            order: first.order.clone(),
            axes: multiscale.map(|multiscale| multiscale.axes.clone()),
            reduction: multiscale.and_then(|multiscale| multiscale.reduction.clone()),
            levels: levels?,
            attributes: self.attributes().clone(),
        })
    }

    fn level_info(&self, number: usize) -> Result<LevelInfo, StoreError> {
        let level = &self.levels()[number];
        let Level { path, metadata } = level;
        let reader = ChunkReader::new(&*self.sink, level);
        let mut info = LevelInfo {
            path: path.clone(),
            grid: metadata.grid.clone(),
            objects: 0,
            unreadable: 0,
            chunks: metadata.grid.chunk_counts().iter().product(),
            stored_chunks: 0,
            stored_bytes: 0,
        };
        for object in self.objects_of(number)? {
            info.objects += 1;
            info.stored_bytes += object.bytes;
            match reader.index(&object.key, object.bytes) {
                Ok(index) => info.stored_chunks += index.stored() as u64,
                Err(_) => info.unreadable += 1,
            }
        }
        Ok(info)
    }
}
