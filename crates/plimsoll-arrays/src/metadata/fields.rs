//! Reading fields of JSON objects: each is there with the right kind, or is named in an error.

use serde_json::{Map, Value};

use super::MetadataError;
use crate::limits::RANK_MAX;

/// An object, with its place in the file for errors.
#[derive(Copy, Clone)]
pub(super) struct Fields<'a> {
    fields: &'a Map<String, Value>,
    place: &'a str,
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, place: &'a str) -> Result<Self, MetadataError> {
        let whole = if place.is_empty() { "the file" } else { place };
        let fields = value.as_object().ok_or_else(|| MetadataError::field(whole, "is no object"))?;
        Ok(Self { fields, place })
    }

    /// Where one of its fields is.
    pub(super) fn name(&self, field: &str) -> String {
        if self.place.is_empty() { field.to_owned() } else { format!("{}.{field}", self.place) }
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    pub(super) fn optional(&self, field: &str) -> Option<&'a Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    pub(super) fn value(&self, field: &str) -> Result<&'a Value, MetadataError> {
        self.fields.get(field).ok_or_else(|| MetadataError::field(self.name(field), "is missing"))
    }

    pub(super) fn text(&self, field: &str) -> Result<&'a str, MetadataError> {
        self.value(field)?.as_str().ok_or_else(|| MetadataError::field(self.name(field), "is no text"))
    }

    pub(super) fn list(&self, field: &str) -> Result<&'a [Value], MetadataError> {
        let list = self.value(field)?.as_array().ok_or_else(|| MetadataError::field(self.name(field), "is no list"))?;
        match list.len() {
            ..=RANK_MAX => Ok(list),
            length => {
                Err(MetadataError::field(self.name(field), format!("has {length} entries, more than make sense")))
            }
        }
    }

    /// Whole numbers, one for each dimension.
    pub(super) fn sizes(&self, field: &str) -> Result<Vec<u64>, MetadataError> {
        let wrong = || MetadataError::field(self.name(field), "is no list of whole numbers");
        self.list(field)?.iter().map(|size| size.as_u64().ok_or_else(wrong)).collect()
    }

    pub(super) fn floats(&self, field: &str) -> Result<Vec<f64>, MetadataError> {
        let wrong = || MetadataError::field(self.name(field), "is no list of numbers");
        self.list(field)?.iter().map(|number| number.as_f64().ok_or_else(wrong)).collect()
    }

    /// The user's own, which may be anything.
    pub(super) fn attributes(&self) -> Result<Map<String, Value>, MetadataError> {
        match self.optional("attributes") {
            None => Ok(Map::new()),
            Some(Value::Object(attributes)) => Ok(attributes.clone()),
            Some(_) => Err(MetadataError::field(self.name("attributes"), "is no object")),
        }
    }

    pub(super) fn is(&self, field: &str, expected: &str) -> Result<(), MetadataError> {
        match self.text(field)? {
            text if text == expected => Ok(()),
            other => Err(MetadataError::unsupported(self.name(field), format!("'{other}'"))),
        }
    }
}
