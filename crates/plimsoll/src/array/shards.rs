//! Packed chunks into objects, and objects into the store: on a thread of its own, so that a slow store keeps no core idle.
//! Never packs. Invariant: an object appears whole or not at all, and a published length names only steps whose objects
//! are there.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_arrays::Layout;
use plimsoll_arrays::metadata::{self, ArrayMetadata};
use plimsoll_arrays::shard::ShardBuilder;
use plimsoll_arrays::sink::{Object, Sink};
use plimsoll_arrays::work::Encoded;

use super::error::ArrayError;
use super::watch::ArrayWatch;

/// Chunks of one object, packed.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) level: usize,
    pub(super) object: Vec<u64>,
    pub(super) encoded: Encoded,
    pub(super) ends_object: bool,
    pub(super) ends_row_of_objects: bool,
}

/// What was stored.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) objects: u64,
    pub(super) chunks: u64,
    pub(super) bytes: u64,
}

struct UnderWay {
    builder: ShardBuilder,
    /// Not begun before it has a chunk: an object of nothing but the fill value is not stored.
    object: Option<Box<dyn Object>>,
}

/// Where packed chunks go.
pub(super) struct Shards {
    layout: Arc<Layout>,
    sink: Arc<dyn Sink>,
    /// Of each level, for its keys.
    arrays: Vec<ArrayMetadata>,
    under_way: HashMap<(usize, Vec<u64>), UnderWay>,
    watch: ArrayWatch,
    stored: Stored,
    /// How long each level was before: it gets no shorter while what is there is written again.
    lengths: Vec<u64>,
}

impl Shards {
    pub(super) fn new(
        layout: &Arc<Layout>,
        sink: &Arc<dyn Sink>,
        watch: &ArrayWatch,
        lengths: &[u64],
    ) -> Result<Self, ArrayError> {
        let levels = 0..layout.levels().len();
        let arrays = levels.map(|level| ArrayMetadata::of_level(layout, level, 0)).collect::<Result<_, _>>()?;
        Ok(Self {
            layout: Arc::clone(layout),
            sink: Arc::clone(sink),
            arrays,
            under_way: HashMap::new(),
            watch: watch.clone(),
            stored: Stored::default(),
            lengths: lengths.to_vec(),
        })
    }

    /// Writes what says how long every level is when level 0 has so many steps.
    pub(super) fn publish(&self, steps: u64) -> Result<(), ArrayError> {
        for (key, bytes) in metadata::files(&self.layout, steps)? {
            self.sink.put(&key, &bytes)?;
        }
        Ok(())
    }

    /// Takes packed chunks in, those of an object one after the other.
    pub(super) fn take(&mut self, written: &Written) -> Result<(), ArrayError> {
        match self.layout.levels()[written.level].grid.shard {
            Some(_) => self.take_into_shard(written)?,
            None => self.put_chunk(written)?,
        }
        self.watch.add(written.encoded.raw, written.encoded.bytes.len() as u64, written.level);
        self.stored.chunks += written.encoded.chunks.len() as u64;
        self.stored.bytes += written.encoded.bytes.len() as u64;
        if written.ends_row_of_objects { self.publish_level(written) } else { Ok(()) }
    }

    /// Ends the objects that nothing more comes for, and publishes the whole. Says what was stored.
    pub(super) fn end(mut self, steps: u64) -> Result<Stored, ArrayError> {
        for (_, shard) in std::mem::take(&mut self.under_way) {
            self.finish(shard)?;
        }
        self.publish(steps)?;
        Ok(self.stored)
    }

    fn put_chunk(&mut self, written: &Written) -> Result<(), ArrayError> {
        if written.encoded.bytes.is_empty() {
            return Ok(());
        }
        self.stored.objects += 1;
        Ok(self.sink.put(&self.key(written), &written.encoded.bytes)?)
    }

    fn take_into_shard(&mut self, written: &Written) -> Result<(), ArrayError> {
        let key = self.key(written);
        let place = (written.level, written.object.clone());
        let chunks = self.layout.levels()[written.level].grid.chunks_in_object();
        let new = || UnderWay { builder: ShardBuilder::new(chunks), object: None };
        let mut shard = self.under_way.remove(&place).unwrap_or_else(new);
        for (chunk, bytes) in &written.encoded.chunks {
            let added = shard.builder.add(*chunk, *bytes as u64);
            added.map_err(|reason| ArrayError::Shard { key: key.clone(), reason })?;
        }
        if !written.encoded.bytes.is_empty() {
            let object = match &mut shard.object {
                Some(object) => object,
                none => none.insert(self.sink.begin(&key)?),
            };
            object.append(&written.encoded.bytes)?;
        }
        if written.ends_object {
            return self.finish(shard);
        }
        self.under_way.insert(place, shard);
        Ok(())
    }

    fn finish(&mut self, shard: UnderWay) -> Result<(), ArrayError> {
        let UnderWay { builder, object: Some(mut object) } = shard else {
            return Ok(());
        };
        let index = builder.finish();
        object.append(&index)?;
        object.finish()?;
        self.stored.objects += 1;
        self.stored.bytes += index.len() as u64;
        Ok(())
    }

    /// A level is as long as its objects are whole.
    fn publish_level(&self, written: &Written) -> Result<(), ArrayError> {
        let level = &self.layout.levels()[written.level];
        let length = (written.object[0] + 1) * level.grid.object()[0];
        if self.lengths.get(written.level).is_some_and(|there| length <= *there) {
            return Ok(());
        }
        // A level that has no objects of its own beyond what was declared ends there.
        let whole = self.layout.levels()[0].grid.shape[0];
        let base = length * level.factor[0];
        let base = if self.layout.grows() { base } else { base.min(whole) };
        let array = ArrayMetadata::of_level(&self.layout, written.level, base)?;
        Ok(self.sink.put(&metadata::key(&level.path), &array.to_json())?)
    }

    fn key(&self, written: &Written) -> String {
        let path = &self.layout.levels()[written.level].path;
        let key = self.arrays[written.level].object_key(&written.object);
        if path.is_empty() { key } else { format!("{path}/{key}") }
    }
}
