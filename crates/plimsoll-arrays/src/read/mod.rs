//! Reading stores: what is there, whether it is sound, and the elements themselves.
//! Never trusts a file: metadata, indices and chunks may say anything, and end in an error that names the place.
//!
//! | file | what it owns |
//! |---|---|
//! | `info.rs` | what a user wants to know |
//! | `verify.rs` | checking everything that is there |
//! | `region.rs` | a box of elements |
//! | `object.rs` | one object: its index and its chunks |
//! | `error.rs` | what can be wrong |

mod error;
mod info;
mod object;
mod region;
mod verify;

pub use error::{FaultError, StoreError};
pub use info::{Info, LevelInfo};
pub use object::StoredObject;
pub use region::REGION_BYTES_MAX;
pub use verify::{FAULTS_MAX, Fault, Verification, VerifyOptions};

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::limits::METADATA_BYTES_MAX;
use crate::metadata::{self, ArrayMetadata, GroupMetadata, MetadataError, Node};
use crate::sink::{Sink, SinkError};

/// A store that was opened: its metadata, read and checked.
#[derive(Clone)]
pub struct Store {
    sink: Arc<dyn Sink>,
    group: Option<GroupMetadata>,
    levels: Vec<Level>,
}

/// One level of a store.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Level {
    /// Where it lies in the store; empty if the root is the array.
    pub path: String,
    /// Its metadata.
    pub metadata: ArrayMetadata,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("levels", &self.levels).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store that lies there: an array, or a group of levels.
    pub fn open(sink: Arc<dyn Sink>) -> Result<Self, StoreError> {
        let root = match node(&*sink, "")? {
            None => return Err(StoreError::NotAStore),
            Some(Node::Array(metadata)) => {
                let levels = vec![Level { path: String::new(), metadata: *metadata }];
                return Ok(Self { sink, group: None, levels });
            }
            Some(Node::Group(group)) => group,
        };
        let multiscale = root.multiscale.as_ref().ok_or(StoreError::NoLevels)?;
        let levels: Result<_, _> = multiscale.datasets.iter().map(|dataset| level(&*sink, &dataset.path)).collect();
        Ok(Self { levels: levels?, group: Some(root), sink })
    }

    /// Its levels, the full resolution first; at least one.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The group around the levels, if its root is one.
    pub fn group(&self) -> Option<&GroupMetadata> {
        self.group.as_ref()
    }

    /// What the user keeps with it.
    pub fn attributes(&self) -> &Map<String, Value> {
        self.group.as_ref().map_or(&self.levels[0].metadata.attributes, |group| &group.attributes)
    }

    /// Every object that is there, of every level.
    pub fn objects(&self) -> Result<Vec<StoredObject>, SinkError> {
        let levels: Result<Vec<_>, _> = (0..self.levels.len()).map(|level| self.objects_of(level)).collect();
        Ok(levels?.into_iter().flatten().collect())
    }

    fn objects_of(&self, level: usize) -> Result<Vec<StoredObject>, SinkError> {
        let listed = self.sink.list(&self.levels[level].key("c"))?;
        let is_below = |key: &str| {
            let below = self.levels[level].below(key);
            below.strip_prefix('c').is_some_and(|coordinates| coordinates.starts_with(['/', '.']))
        };
        let listed = listed.into_iter().filter(|listed| is_below(&listed.key));
        Ok(listed.map(|listed| StoredObject { level, key: listed.key, bytes: listed.bytes }).collect())
    }

    fn level(&self, level: usize) -> Result<&Level, StoreError> {
        self.levels.get(level).ok_or(StoreError::NoSuchLevel { level, levels: self.levels.len() })
    }
}

impl Level {
    /// The key of what lies below it.
    fn key(&self, below: &str) -> String {
        if self.path.is_empty() { below.to_owned() } else { format!("{}/{below}", self.path) }
    }

    /// A key without the level's own path.
    fn below<'a>(&self, key: &'a str) -> &'a str {
        let below = key.strip_prefix(&self.path).unwrap_or(key);
        below.strip_prefix('/').unwrap_or(below)
    }
}

fn level(sink: &dyn Sink, path: &str) -> Result<Level, StoreError> {
    let wrong = |why: &str| StoreError::Metadata {
        key: metadata::key(path),
        source: MetadataError::Field { field: "node_type".to_owned(), why: why.to_owned() },
    };
    match node(sink, path)? {
        Some(Node::Array(metadata)) => Ok(Level { path: path.to_owned(), metadata: *metadata }),
        Some(Node::Group(_)) => Err(wrong("is a group where a level must be an array")),
        None => Err(SinkError::Missing { key: metadata::key(path) }.into()),
    }
}

/// The metadata at a path; none if there are none.
fn node(sink: &dyn Sink, path: &str) -> Result<Option<Node>, StoreError> {
    let key = metadata::key(path);
    let Some(bytes) = sink.size(&key)? else { return Ok(None) };
    if bytes > METADATA_BYTES_MAX {
        return Err(StoreError::Metadata { key, source: MetadataError::TooLarge { bytes } });
    }
    let text = sink.get(&key, 0..bytes)?;
    Node::parse(&text).map(Some).map_err(|source| StoreError::Metadata { key, source })
}
