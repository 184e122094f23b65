//! The metadata of one array: written for one level of a layout, read back with every number checked.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::{MetadataError, check_node, codecs, fill_value, parse_json};
use crate::codec::{ChunkCodec, Codec};
use crate::data_type::DataType;
use crate::fill::FillValue;
use crate::grid::Grid;
use crate::layout::{Layout, SpecError};
use crate::order::StorageOrder;

/// What stands between the coordinates in the name of a chunk.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum KeySeparator {
    /// A folder for each dimension.
    Slash,
    /// All in one folder.
    Dot,
}

impl KeySeparator {
    const fn text(self) -> &'static str {
        match self {
            Self::Slash => "/",
            Self::Dot => ".",
        }
    }
}

/// The metadata of an array.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ArrayMetadata {
    /// Its shape and how it is cut.
    pub grid: Grid,
    /// What the elements are.
    pub data_type: DataType,
    /// How chunks are packed.
    pub codec: Codec,
    /// The order in which a chunk's dimensions are stored.
    pub order: StorageOrder,
    /// What elements are that nobody wrote.
    pub fill: FillValue,
    /// How chunks are named.
    pub separator: KeySeparator,
    /// Names of the dimensions.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// What the user keeps with it.
    pub attributes: Map<String, Value>,
}

impl ArrayMetadata {
    /// The metadata of a level when level 0 has so many elements along its first dimension.
    pub fn of_level(layout: &Layout, level: usize, base: u64) -> Result<Self, SpecError> {
        let names = layout.axes().map(|axes| axes.iter().map(|axis| Some(axis.name.clone())).collect());
        let is_root = layout.axes().is_none();
        Ok(Self {
            grid: layout.grid_at(level, base)?,
            data_type: layout.data_type(),
            codec: layout.codec(),
            order: layout.order().clone(),
            fill: layout.fill(),
            separator: KeySeparator::Slash,
            dimension_names: names,
            attributes: if is_root { layout.attributes().clone() } else { Map::new() },
        })
    }

    /// The codec with all that it must know of the chunks.
    pub fn chunk_codec(&self) -> ChunkCodec {
        ChunkCodec::new(self.codec, self.data_type, self.grid.chunk_bytes())
    }

    /// The name of an object of this array, behind the array's own path.
    pub fn object_key(&self, object: &[u64]) -> String {
        let separator = self.separator.text();
        object.iter().fold("c".to_owned(), |key, at| format!("{key}{separator}{at}"))
    }

    /// The coordinates in the name of an object; none if it is none, or lies outside of the array.
    pub fn object_of_key(&self, key: &str) -> Option<Vec<u64>> {
        let separator = self.separator.text();
        let coordinates = key.strip_prefix('c')?.strip_prefix(separator)?;
        let parts = coordinates.split(separator).map(|at| at.parse().ok());
        let object: Vec<u64> = parts.take(self.grid.rank() + 1).collect::<Option<_>>()?;
        // Numbers can be written in more than one way; names only in one.
        (object.len() == self.grid.rank() && self.object_key(&object) == key).then_some(object)
    }

    /// The fields in which another one's file is different.
    pub fn differs_from(&self, other: &Self) -> Vec<String> {
        let (own, others) = (self.fields(), other.fields());
        let names = own.as_object().into_iter().chain(others.as_object()).flat_map(Map::keys);
        let mut names: Vec<String> = names.filter(|name| own.get(name) != others.get(name)).cloned().collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The file's text.
    pub fn to_json(&self) -> Vec<u8> {
        super::pretty(&self.fields())
    }

    fn fields(&self) -> Value {
        let Grid { shape, chunk, shard, .. } = &self.grid;
        let mut json = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": self.data_type.zarr_name(),
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": self.grid.object() } },
            "chunk_key_encoding": { "name": "default", "configuration": { "separator": self.separator.text() } },
            "fill_value": fill_value::to_json(&self.fill),
            "codecs": codecs::to_json(&self.order, self.codec, self.data_type, shard.as_ref().map(|_| &chunk[..])),
            "attributes": self.attributes,
        });
        if let Some(names) = &self.dimension_names {
            json["dimension_names"] = json!(names);
        }
        json
    }

    /// Reads a file's text.
    pub fn parse(text: &[u8]) -> Result<Self, MetadataError> {
        let json = parse_json(text)?;
        let fields = Fields::of(&json, "")?;
        check_node(fields, "array")?;
        let data_type = data_type(fields)?;
        let chain = codecs::from_json(fields.list("codecs")?, data_type)?;
        let outer = chunk_shape(fields)?;
        let (chunk, shard) = match chain.inner_chunk {
            Some(inner) => (inner, Some(outer)),
            None => (outer, None),
        };
        let grid = Grid::new(fields.sizes("shape")?, chunk, shard, data_type)?;
        check_transformers(fields)?;
        Ok(Self {
            order: order(chain.order, grid.rank())?,
            fill: fill_value::from_json(fields.value("fill_value")?, data_type)?,
            separator: separator(fields)?,
            dimension_names: dimension_names(fields, grid.rank())?,
            attributes: fields.attributes()?,
            codec: chain.codec,
            data_type,
            grid,
        })
    }
}

fn data_type(fields: Fields<'_>) -> Result<DataType, MetadataError> {
    let name = fields.text("data_type")?;
    let known = DataType::ALL.into_iter().find(|data_type| data_type.zarr_name() == name);
    known.ok_or_else(|| MetadataError::unsupported("data_type", format!("'{name}'")))
}

fn chunk_shape(fields: Fields<'_>) -> Result<Vec<u64>, MetadataError> {
    let grid = Fields::of(fields.value("chunk_grid")?, "chunk_grid")?;
    grid.is("name", "regular")?;
    Fields::of(grid.value("configuration")?, "chunk_grid.configuration")?.sizes("chunk_shape")
}

fn order(order: Option<StorageOrder>, rank: usize) -> Result<StorageOrder, MetadataError> {
    let Some(order) = order else { return Ok(StorageOrder::new(None, rank)?) };
    match order.dimensions().len() == rank {
        true => Ok(order),
        false => Err(MetadataError::field("codecs.transpose.order", "has another number of dimensions than the shape")),
    }
}

fn separator(fields: Fields<'_>) -> Result<KeySeparator, MetadataError> {
    let encoding = Fields::of(fields.value("chunk_key_encoding")?, "chunk_key_encoding")?;
    encoding.is("name", "default")?;
    let configuration = encoding.optional("configuration");
    match configuration.and_then(|configuration| configuration.get("separator")).map(Value::as_str) {
        None | Some(Some("/")) => Ok(KeySeparator::Slash),
        Some(Some(".")) => Ok(KeySeparator::Dot),
        Some(_) => Err(MetadataError::field("chunk_key_encoding.configuration.separator", "is neither / nor .")),
    }
}

fn check_transformers(fields: Fields<'_>) -> Result<(), MetadataError> {
    match fields.optional("storage_transformers").and_then(Value::as_array) {
        Some(transformers) if !transformers.is_empty() => {
            Err(MetadataError::unsupported("storage_transformers", "storage transformers"))
        }
        _ => Ok(()),
    }
}

fn dimension_names(fields: Fields<'_>, rank: usize) -> Result<Option<Vec<Option<String>>>, MetadataError> {
    if fields.optional("dimension_names").is_none() {
        return Ok(None);
    }
    let names = fields.list("dimension_names")?;
    if names.len() != rank {
        return Err(MetadataError::field("dimension_names", "has another number of dimensions than the shape"));
    }
    Ok(Some(names.iter().map(|name| name.as_str().map(str::to_owned)).collect()))
}
