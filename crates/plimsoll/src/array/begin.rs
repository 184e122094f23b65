//! How an array begins: in an empty store, in place of another one, or where an earlier run ended.
//! Never deletes what is no Zarr array or group.

use std::sync::Arc;

use plimsoll_arrays::Layout;
use plimsoll_arrays::metadata::{self, ArrayMetadata, GroupMetadata};
use plimsoll_arrays::read::Store;
use plimsoll_arrays::sink::Sink;

use super::error::ArrayError;

/// What to do with what is there.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// Nothing may be there.
    #[default]
    New,
    /// An array or group that is there is removed.
    Replace,
    /// The array that is there is gone on with, from its last whole shard. If nothing is there, it begins.
    Resume,
}

/// Where a writer begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Begun {
    /// The step; objects begin there.
    pub(super) first: u64,
    /// Steps that an earlier run has published, if there was one. They stay until they are written again.
    pub(super) there: Option<u64>,
    /// The same of each level, in steps of its own.
    pub(super) lengths: Vec<u64>,
}

/// Makes the store ready; says where the writer begins.
pub(super) fn begin(sink: &Arc<dyn Sink>, layout: &Layout, begin: Begin) -> Result<Begun, ArrayError> {
    let there = sink.list("")?;
    let Some(first) = there.first() else {
        return Ok(Begun::default());
    };
    match begin {
        // What is neither ours to replace nor to go on with is said at once.
        Begin::New => is_ours(sink).and(Err(ArrayError::Exists { key: first.key.clone() })),
        Begin::Replace => replace(sink, &first.key),
        Begin::Resume => resume(sink, layout),
    }
}

fn replace(sink: &Arc<dyn Sink>, first: &str) -> Result<Begun, ArrayError> {
    let root = metadata::key("");
    if sink.size(&root)?.is_none() {
        return Err(ArrayError::NotOurs { key: first.to_owned() });
    }
    // The root goes last: a store of which a part was removed is still one that can be replaced.
    let there = sink.list("")?;
    for listed in there.iter().filter(|listed| listed.key != root) {
        sink.delete(&listed.key)?;
    }
    sink.delete(&root)?;
    Ok(Begun::default())
}

fn resume(sink: &Arc<dyn Sink>, layout: &Layout) -> Result<Begun, ArrayError> {
    if sink.size(&metadata::key(""))?.is_none() {
        return is_ours(sink).map(|()| Begun::default());
    }
    let store = Store::open(Arc::clone(sink))?;
    if store.levels().len() != layout.levels().len() {
        let why = format!("it has {} levels, not {}", store.levels().len(), layout.levels().len());
        return Err(ArrayError::NotResumable { why });
    }
    let ours = GroupMetadata::of_layout(layout);
    if store.group().map(GroupMetadata::to_json) != ours.as_ref().map(GroupMetadata::to_json) {
        let why = "its axes, scales, levels or attributes are others than those described".to_owned();
        return Err(ArrayError::NotResumable { why });
    }
    let (mut whole, there) = (u64::MAX, store.levels()[0].metadata.grid.shape[0]);
    for (number, level) in store.levels().iter().enumerate() {
        whole = whole.min(whole_steps(layout, number, &level.metadata)?);
    }
    let factor = layout.levels().iter().map(|level| level.factor[0]).max().unwrap_or(1);
    let together = layout.levels()[0].grid.object()[0] * factor;
    let first = whole / together * together;
    let lengths = store.levels().iter().map(|level| level.metadata.grid.shape[0]).collect();
    Ok(Begun { first, there: Some(there), lengths })
}

/// The root's metadata are written last: without them there are only those of levels, or it is no store of ours.
fn is_ours(sink: &Arc<dyn Sink>) -> Result<(), ArrayError> {
    if sink.size(&metadata::key(""))?.is_some() {
        return Ok(());
    }
    let there = sink.list("")?;
    match there.iter().find(|listed| !listed.key.ends_with(metadata::FILE)) {
        Some(foreign) => Err(ArrayError::NotOurs { key: foreign.key.clone() }),
        None => Ok(()),
    }
}

/// Steps of the full resolution that a level has in whole objects, if it is the level that we would write.
fn whole_steps(layout: &Layout, number: usize, there: &ArrayMetadata) -> Result<u64, ArrayError> {
    let level = &layout.levels()[number];
    let base = there.grid.shape[0] * level.factor[0];
    let base = if layout.grows() { base } else { base.min(layout.levels()[0].grid.shape[0]) };
    let ours = ArrayMetadata::of_level(layout, number, base)?;
    let different = ours.differs_from(there);
    if different.is_empty() {
        return Ok(base);
    }
    let why = format!("level {number} has another {} than was described", different.join(", "));
    Err(ArrayError::NotResumable { why })
}

/// Removes what an earlier run that was cut short left behind the end of an array of so many steps.
pub(super) fn remove_behind(sink: &Arc<dyn Sink>, layout: &Layout, steps: u64) -> Result<(), ArrayError> {
    let store = Store::open(Arc::clone(sink))?;
    for object in store.objects()? {
        let (level, there) = (&layout.levels()[object.level], &store.levels()[object.level]);
        let below = object.key.strip_prefix(&there.path).unwrap_or(&object.key).trim_start_matches('/');
        let at = there.metadata.object_of_key(below);
        let begins = at.map_or(u64::MAX, |at| at[0] * level.grid.object()[0] * level.factor[0]);
        if begins >= steps {
            sink.delete(&object.key)?;
        }
    }
    Ok(())
}
