//! The header of a safetensors file. Never reads a tensor, and trusts nothing: lengths are bounded before anything is
//! allocated for them, and tensors must cover the data exactly, without holes or overlaps.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::data_type::DataType;
use crate::error::FragmentError;
use crate::limits::{DIMENSIONS_MAX, HEADER_BYTES_MAX, NAME_BYTES_MAX, TENSOR_BYTES_MAX, TENSORS_MAX};

/// One tensor of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub data_type: DataType,
    /// Its sizes.
    pub shape: Vec<u64>,
    /// Where its bytes begin, from the first byte of data.
    pub offset: u64,
    /// How many there are.
    pub bytes: u64,
}

/// What a file holds, in the order of the data.
#[derive(Clone, Debug)]
pub struct Safetensors {
    /// The header as it stands in the file, so that the file can be made again byte for byte.
    pub header: String,
    /// Where the data begins.
    pub data_begins: u64,
    /// The tensors.
    pub tensors: Vec<TensorInfo>,
}

#[derive(Deserialize)]
struct Entry {
    dtype: DataType,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// The tensors of a header by their names. What is not understood is passed over and takes no memory: a header of 64 MiB of
/// brackets would take a gigabyte.
struct Entries(BTreeMap<String, Entry>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Header;
        impl<'de> Visitor<'de> for Header {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    if entries.len() == TENSORS_MAX {
                        return Err(A::Error::custom(format!("it has more than {TENSORS_MAX} tensors")));
                    }
                    let entry = map.next_value();
                    let entry = entry.map_err(|error| A::Error::custom(format!("tensor {name:?}: {error}")))?;
                    entries.insert(name, entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Header)
    }
}

const WANTED: &str = "a safetensors file";

/// Bytes of a tensor, if they can be counted and are not absurd.
pub(crate) fn tensor_bytes(data_type: DataType, shape: &[u64]) -> Option<u64> {
    let count = shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))?;
    count.checked_mul(data_type.bytes()).filter(|bytes| *bytes <= TENSOR_BYTES_MAX)
}

impl Safetensors {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// If it cannot be read or is not what it should be.
    pub fn open(path: &Path, file: &mut File) -> Result<Self, FragmentError> {
        let name = path.display().to_string();
        let short = |why: &str| FragmentError::malformed(&name, WANTED, why);
        let length = file.metadata().map_err(|error| FragmentError::reading(path, error))?.len();
        let mut eight = [0; 8];
        file.read_exact(&mut eight).map_err(|_| short("it is shorter than the length of its header"))?;
        let header_bytes = u64::from_le_bytes(eight);
        if header_bytes > HEADER_BYTES_MAX || header_bytes > length.saturating_sub(8) {
            return Err(short("its header is longer than the file, or than 100 MB"));
        }
        let mut header = vec![0; header_bytes as usize];
        file.read_exact(&mut header).map_err(|error| FragmentError::reading(path, error))?;
        let header = String::from_utf8(header).map_err(|_| short("its header is not UTF-8"))?;
        let tensors = parse(&header).map_err(|why| short(&why))?;
        let data = tensors.last().map_or(0, |last| last.offset + last.bytes);
        if data != length - 8 - header_bytes {
            return Err(short(&format!("its tensors cover {data} bytes of {}", length - 8 - header_bytes)));
        }
        Ok(Self { header, data_begins: 8 + header_bytes, tensors })
    }
}

/// The tensors that a header names, in the order of their data.
///
/// # Errors
/// What is wrong with it.
pub fn parse(header: &str) -> Result<Vec<TensorInfo>, String> {
    let Entries(entries) =
        serde_json::from_str(header).map_err(|error| format!("its header is no list of tensors: {error}"))?;
    let parsed = entries.into_iter().map(|(name, entry)| info(name, entry));
    let mut tensors = parsed.collect::<Result<Vec<_>, String>>()?;
    tensors.sort_by_key(|tensor| (tensor.offset, tensor.bytes));
    let mut end = 0;
    for tensor in &tensors {
        if tensor.offset != end {
            return Err(format!("tensor {:?} begins at {} instead of {end}", tensor.name, tensor.offset));
        }
        end = end.checked_add(tensor.bytes).ok_or("its tensors have more bytes than can be counted")?;
    }
    Ok(tensors)
}

fn info(name: String, entry: Entry) -> Result<TensorInfo, String> {
    let Entry { dtype, shape, data_offsets: [begin, end] } = entry;
    if name.len() > NAME_BYTES_MAX || shape.len() > DIMENSIONS_MAX {
        return Err(format!(
            "a tensor has a name of more than {NAME_BYTES_MAX} bytes, or more than {DIMENSIONS_MAX} dimensions"
        ));
    }
    let bytes = tensor_bytes(dtype, &shape).ok_or_else(|| format!("tensor {name:?} has an absurd size: {shape:?}"))?;
    if end.checked_sub(begin) != Some(bytes) {
        return Err(format!("tensor {name:?} needs {bytes} bytes and lies from {begin} to {end}"));
    }
    Ok(TensorInfo { name, data_type: dtype, shape, offset: begin, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_lie_are_refused() {
        let one = |entry: &str| parse(&format!("{{\"a\":{entry}}}"));
        assert!(one(r#"{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}"#).is_ok());
        assert!(one(r#"{"dtype":"F32","shape":[],"data_offsets":[0,4]}"#).is_ok());
        for wrong in [
            r#"{"dtype":"F32","shape":[2,3],"data_offsets":[0,25]}"#,
            r#"{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]}"#,
            r#"{"dtype":"F32","shape":[2,3],"data_offsets":[24,0]}"#,
            r#"{"dtype":"F99","shape":[2,3],"data_offsets":[0,24]}"#,
            r#"{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}"#,
            r#"{"dtype":"F32","shape":[1099511627776,2],"data_offsets":[0,8796093022208]}"#,
            r#"{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}"#,
            "7",
        ] {
            assert!(one(wrong).is_err(), "{wrong}");
        }
        let two = r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}}"#;
        assert!(parse(two).is_err(), "they overlap");
        assert!(parse("[]").is_err() && parse("{").is_err());
        assert_eq!(parse(r#"{"__metadata__":{"format":"pt"}}"#).unwrap(), []);
    }
}
