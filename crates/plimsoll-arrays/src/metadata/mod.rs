//! Metadata files, `zarr.json`: of arrays, and of the group around several levels. Written, and read back.
//! Never allocates by what a file says. Invariant: what was read here could have been planned: every number passes the
//! checks of a layout.
//!
//! | file | what it owns |
//! |---|---|
//! | `array.rs` | arrays: shape, chunks, keys |
//! | `codecs.rs` | the list of codecs |
//! | `fill_value.rs` | the fill value |
//! | `group.rs` | groups: axes, levels, scales |
//! | `fields.rs` | fields of JSON objects |
//! | `error.rs` | what can be wrong |

mod array;
mod codecs;
mod error;
mod fields;
mod fill_value;
mod group;

pub use array::{ArrayMetadata, KeySeparator};
pub use error::MetadataError;
pub use group::{Dataset, GroupMetadata, Multiscale};

use fields::Fields;
use serde_json::Value;

use crate::layout::{Layout, SpecError};
use crate::limits::METADATA_BYTES_MAX;

/// The name of a metadata file in its folder.
pub const FILE: &str = "zarr.json";

/// The key of the metadata of an array or group at a path; the root's path is empty.
pub fn key(path: &str) -> String {
    if path.is_empty() { FILE.to_owned() } else { format!("{path}/{FILE}") }
}

/// Every metadata file of a layout by its key when level 0 has so many elements along its first dimension: those of the
/// levels before that of their group, so that a group never names a level that is not there.
pub fn files(layout: &Layout, base: u64) -> Result<Vec<(String, Vec<u8>)>, SpecError> {
    let levels = layout.levels().iter().enumerate().map(|(number, level)| {
        let metadata = ArrayMetadata::of_level(layout, number, base)?;
        Ok((key(&level.path), metadata.to_json()))
    });
    let group = GroupMetadata::of_layout(layout).map(|group| Ok((key(""), group.to_json())));
    levels.chain(group).collect()
}

/// What a metadata file is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// An array.
    Array(Box<ArrayMetadata>),
    /// A group.
    Group(GroupMetadata),
}

impl Node {
    /// Reads a file's text.
    pub fn parse(text: &[u8]) -> Result<Self, MetadataError> {
        let json = parse_json(text)?;
        let fields = Fields::of(&json, "")?;
        // Another format has other fields: which ones are missing says nothing.
        check_format(fields)?;
        match fields.text("node_type")? {
            "array" => ArrayMetadata::parse(text).map(Box::new).map(Self::Array),
            "group" => GroupMetadata::parse(text).map(Self::Group),
            other => Err(MetadataError::field("node_type", format!("is '{other}', neither array nor group"))),
        }
    }
}

fn parse_json(text: &[u8]) -> Result<Value, MetadataError> {
    let bytes = text.len() as u64;
    if bytes > METADATA_BYTES_MAX {
        return Err(MetadataError::TooLarge { bytes });
    }
    Ok(serde_json::from_slice(text)?)
}

fn check_format(fields: Fields<'_>) -> Result<(), MetadataError> {
    match fields.value("zarr_format")?.as_u64() {
        Some(3) => Ok(()),
        _ => Err(MetadataError::unsupported("zarr_format", "a format other than 3")),
    }
}

fn check_node(fields: Fields<'_>, kind: &str) -> Result<(), MetadataError> {
    check_format(fields)?;
    fields.is("node_type", kind)
}

/// Bytes of a value in a metadata file, but for how far it is indented there.
pub(crate) fn bytes_of(json: &Value) -> u64 {
    pretty(json).len() as u64
}

fn pretty(json: &Value) -> Vec<u8> {
    let mut text = format!("{json:#}").into_bytes();
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests;
