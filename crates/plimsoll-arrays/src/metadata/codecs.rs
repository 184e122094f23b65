//! The list of codecs in JSON: storage order, little-endian bytes, and what packs them; all of it in shards or not.

use serde_json::{Value, json};

use super::MetadataError;
use super::fields::Fields;
use crate::codec::{BLOSC_LEVELS, BloscCompressor, Codec, GZIP_LEVELS, Shuffle, ZSTD_LEVELS};
use crate::data_type::DataType;
use crate::order::StorageOrder;

const FIELD: &str = "codecs";

/// What a list of codecs says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) order: Option<StorageOrder>,
    pub(super) codec: Codec,
    /// The chunks within, if this is a list of shards.
    pub(super) inner_chunk: Option<Vec<u64>>,
}

pub(super) fn to_json(order: &StorageOrder, codec: Codec, data_type: DataType, inner_chunk: Option<&[u64]>) -> Value {
    let chain = chain(order, codec, data_type);
    match inner_chunk {
        None => chain,
        Some(chunk) => json!([{
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": chunk,
                "codecs": chain,
                "index_codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }, { "name": "crc32c" }],
                "index_location": "end",
            },
        }]),
    }
}

fn chain(order: &StorageOrder, codec: Codec, data_type: DataType) -> Value {
    let mut chain = Vec::new();
    if !order.is_own() {
        chain.push(json!({ "name": "transpose", "configuration": { "order": order.dimensions() } }));
    }
    chain.push(json!({ "name": "bytes", "configuration": { "endian": "little" } }));
    chain.extend(packer(codec, data_type));
    Value::from(chain)
}

fn packer(codec: Codec, data_type: DataType) -> Option<Value> {
    match codec {
        Codec::None => None,
        Codec::Zstd { level } => Some(json!({ "name": "zstd", "configuration": { "level": level, "checksum": true } })),
        Codec::Gzip { level } => Some(json!({ "name": "gzip", "configuration": { "level": level } })),
        Codec::Blosc { compressor, level, shuffle } => Some(json!({
            "name": "blosc",
            "configuration": {
                "cname": compressor.name(),
                "clevel": level,
                "shuffle": shuffle.name(),
                "typesize": data_type.bytes(),
                "blocksize": 0,
            },
        })),
    }
}

pub(super) fn from_json(codecs: &[Value], data_type: DataType) -> Result<Chain, MetadataError> {
    if let [only] = codecs
        && name(only)? == "sharding_indexed"
    {
        return sharded(only, data_type);
    }
    unsharded(codecs, data_type)
}

fn sharded(sharding: &Value, data_type: DataType) -> Result<Chain, MetadataError> {
    let place = "codecs.sharding_indexed";
    let configuration = Fields::of(Fields::of(sharding, place)?.value("configuration")?, place)?;
    let index: Result<Vec<&str>, _> = configuration.list("index_codecs")?.iter().map(name).collect();
    if index? != ["bytes", "crc32c"] {
        return Err(MetadataError::unsupported(
            configuration.name("index_codecs"),
            "an index other than plain with crc32c",
        ));
    }
    if configuration.has("index_location") {
        configuration.is("index_location", "end")?;
    }
    let inner = unsharded(configuration.list("codecs")?, data_type)?;
    Ok(Chain { inner_chunk: Some(configuration.sizes("chunk_shape")?), ..inner })
}

fn unsharded(codecs: &[Value], data_type: DataType) -> Result<Chain, MetadataError> {
    let mut left = codecs;
    let order = match left {
        [first, rest @ ..] if name(first)? == "transpose" => {
            left = rest;
            Some(transpose(first)?)
        }
        _ => None,
    };
    left = match left {
        [bytes, rest @ ..] if name(bytes)? == "bytes" => {
            check_endian(bytes, data_type)?;
            rest
        }
        _ => return Err(MetadataError::unsupported(FIELD, "elements that are not kept as plain bytes")),
    };
    let codec = match left {
        [] => Codec::None,
        [packer] => unpacker(packer)?,
        _ => return Err(MetadataError::unsupported(FIELD, "more than one codec for bytes")),
    };
    Ok(Chain { order, codec, inner_chunk: None })
}

/// The name of a codec, which may stand alone.
fn name(codec: &Value) -> Result<&str, MetadataError> {
    match codec {
        Value::String(name) => Ok(name),
        _ => Fields::of(codec, FIELD)?.text("name"),
    }
}

fn transpose(codec: &Value) -> Result<StorageOrder, MetadataError> {
    let configuration = Fields::of(Fields::of(codec, FIELD)?.value("configuration")?, "codecs.transpose")?;
    let order = configuration.sizes("order")?.into_iter().map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    let wrong = || MetadataError::field(configuration.name("order"), "does not list every dimension once");
    StorageOrder::any(order.collect()).ok_or_else(wrong)
}

fn check_endian(bytes: &Value, data_type: DataType) -> Result<(), MetadataError> {
    let configuration = bytes.get("configuration").filter(|configuration| !configuration.is_null());
    match configuration.and_then(|configuration| configuration.get("endian")) {
        None if data_type.bytes() == 1 => Ok(()),
        Some(Value::String(endian)) if endian == "little" || data_type.bytes() == 1 => Ok(()),
        None => Err(MetadataError::field("codecs.bytes.endian", "is missing")),
        Some(other) => Err(MetadataError::unsupported("codecs.bytes.endian", format!("{other}"))),
    }
}

fn unpacker(codec: &Value) -> Result<Codec, MetadataError> {
    let kind = name(codec)?;
    let place = format!("codecs.{kind}");
    let Some(configuration) = codec.get("configuration") else {
        return Err(MetadataError::unsupported(FIELD, format!("'{kind}' without a configuration")));
    };
    let fields = Fields::of(configuration, &place)?;
    match kind {
        "zstd" => Ok(Codec::Zstd { level: level(fields, "level", ZSTD_LEVELS)? }),
        "gzip" => Ok(Codec::Gzip { level: level(fields, "level", GZIP_LEVELS)? }),
        "blosc" => Ok(Codec::Blosc {
            compressor: known(fields, "cname", BloscCompressor::named)?,
            level: level(fields, "clevel", BLOSC_LEVELS)?,
            shuffle: known(fields, "shuffle", Shuffle::named)?,
        }),
        _ => Err(MetadataError::unsupported(FIELD, format!("'{kind}'"))),
    }
}

fn level(fields: Fields<'_>, field: &str, levels: std::ops::RangeInclusive<i32>) -> Result<i32, MetadataError> {
    let level = fields.value(field)?.as_i64().and_then(|level| i32::try_from(level).ok());
    let wrong = || MetadataError::field(fields.name(field), format!("is none of {levels:?}"));
    level.filter(|level| levels.contains(level)).ok_or_else(wrong)
}

fn known<T>(fields: Fields<'_>, field: &str, named: fn(&str) -> Option<T>) -> Result<T, MetadataError> {
    let text = fields.text(field)?;
    named(text).ok_or_else(|| MetadataError::unsupported(fields.name(field), format!("'{text}'")))
}
