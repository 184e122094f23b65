//! Checking a store from end to end: every object that is there, its index, every chunk of it.
//! Never goes by what the metadata say is there: it walks what is there. Invariant: memory is bounded by one chunk, its
//! encoded bytes and the longest index; time by what the stored bytes unpack to.

use std::fmt;

use super::object::{ChunkReader, StoredObject};
use super::{FaultError, Level, Store, StoreError};
use crate::codec::Scratch;
use crate::metadata;

/// Faults that are kept; more are only counted.
pub const FAULTS_MAX: usize = 1000;

/// How a store is checked.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Bytes of a chunk, unpacked, at the most: whoever lies about chunks does not get more memory than this.
    pub chunk_bytes_max: u64,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self { chunk_bytes_max: 1 << 30 }
    }
}

/// What came of checking.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Verification {
    /// Objects that were looked at.
    pub objects: u64,
    /// Chunks that were decoded.
    pub chunks: u64,
    /// Bytes that are stored.
    pub bytes: u64,
    /// Objects behind the end of the array: those of a run that was cut short, which published no more.
    pub behind_end: u64,
    /// A level is shorter than the one before it asks for, as after a run that was cut short.
    pub is_unfinished: bool,
    /// What is wrong, the first of it.
    pub faults: Vec<Fault>,
    /// How many faults there are in all.
    pub fault_count: u64,
}

impl Verification {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.fault_count == 0
    }

    /// Adds what came of checking something else.
    pub fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.chunks += other.chunks;
        self.bytes += other.bytes;
        self.behind_end += other.behind_end;
        self.is_unfinished |= other.is_unfinished;
        self.fault_count += other.fault_count;
        let room = FAULTS_MAX.saturating_sub(self.faults.len());
        self.faults.extend(other.faults.into_iter().take(room));
    }

    fn fault(&mut self, key: &str, chunk: Option<usize>, what: impl Into<FaultError>) {
        self.fault_count += 1;
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(Fault { key: key.to_owned(), chunk, what: what.into() });
        }
    }
}

/// One thing that is wrong, and where.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fault {
    /// The object or metadata file.
    pub key: String,
    /// The chunk within a shard, if it is about one.
    pub chunk: Option<usize>,
    /// What is wrong.
    pub what: FaultError,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.chunk {
            Some(chunk) => write!(f, "{}, chunk {chunk}: {}", self.key, self.what),
            None => write!(f, "{}: {}", self.key, self.what),
        }
    }
}

impl Store {
    /// Checks everything that is there.
    pub fn verify(&self, options: &VerifyOptions) -> Result<Verification, StoreError> {
        let mut all = self.verify_levels();
        let mut scratch = Scratch::default();
        for object in self.objects()? {
            all.add(self.verify_object(&object, options, &mut scratch));
        }
        Ok(all)
    }

    /// Checks that the shapes of the levels go together.
    pub fn verify_levels(&self) -> Verification {
        let mut found = Verification::default();
        for pair in self.levels().windows(2) {
            let (finer, shape) = (&pair[0].metadata.grid.shape, &pair[1].metadata.grid.shape);
            let fits = |(finer, size): (&u64, &u64)| size == finer || *size == finer.div_ceil(2);
            // Each level is published when its own objects are whole; a run that is cut short leaves coarser ones behind.
            let is_behind = finer.len() == shape.len() && shape[0] < finer[0] && shape[0] != finer[0].div_ceil(2);
            found.is_unfinished |= is_behind;
            let skipped = usize::from(is_behind);
            let (finer, shape) = (&finer[skipped..], &shape[skipped..]);
            if finer.len() != shape.len() || !finer.iter().zip(shape).all(fits) {
                let what = FaultError::LevelShape { shape: shape.to_vec(), finer: finer.to_vec() };
                found.fault(&metadata::key(&pair[1].path), None, what);
            }
        }
        found
    }

    /// Checks one object.
    ///
    /// # Panics
    ///
    /// If it belongs to a level that this store does not have.
    pub fn verify_object(&self, object: &StoredObject, options: &VerifyOptions, scratch: &mut Scratch) -> Verification {
        let mut found = Verification { objects: 1, bytes: object.bytes, ..Verification::default() };
        let level = &self.levels()[object.level];
        match check_place(level, object).and_then(|place| check_memory(level, options).map(|()| place)) {
            Err(what) => {
                found.fault(&object.key, None, what);
                return found;
            }
            Ok(ObjectPlace::BehindEnd) => found.behind_end += 1,
            Ok(ObjectPlace::Within) => {}
        }
        let mut reader = ChunkReader::new(&*self.sink, level);
        match reader.index(&object.key, object.bytes) {
            Err(what) => found.fault(&object.key, None, what),
            Ok(index) => {
                let is_sharded = level.metadata.grid.shard.is_some();
                for (chunk, place) in index.ranges() {
                    found.chunks += 1;
                    if let Err(what) = reader.decode(&object.key, place, scratch) {
                        found.fault(&object.key, is_sharded.then_some(chunk), what);
                    }
                }
            }
        }
        found
    }
}

enum ObjectPlace {
    Within,
    /// Beyond the end of the first dimension, along which arrays grow.
    BehindEnd,
}

/// Where an object lies; an error if it never can.
fn check_place(level: &Level, object: &StoredObject) -> Result<ObjectPlace, FaultError> {
    let coordinates = level.metadata.object_of_key(level.below(&object.key)).ok_or(FaultError::Stray)?;
    let counts = level.metadata.grid.object_counts();
    let is_within = |from: usize| coordinates[from..].iter().zip(&counts[from..]).all(|(at, count)| at < count);
    match is_within(1) {
        true if is_within(0) => Ok(ObjectPlace::Within),
        true => Ok(ObjectPlace::BehindEnd),
        false => Err(FaultError::Outside { shape: level.metadata.grid.shape.clone() }),
    }
}

fn check_memory(level: &Level, options: &VerifyOptions) -> Result<(), FaultError> {
    let (bytes, most) = (level.metadata.grid.chunk_bytes() as u64, options.chunk_bytes_max);
    if bytes <= most { Ok(()) } else { Err(FaultError::Memory { bytes, most }) }
}
