//! What an element is: its name in metadata, its bytes, how people write it.
//! Never anything but little-endian: that is how elements lie in chunks and in memory here.

use std::fmt;
use std::str::FromStr;

use plimsoll_blocks::filter::Element;

/// The type of an array's elements.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE 754, 16 bits.
    F16,
    /// IEEE 754, 32 bits.
    F32,
    /// IEEE 754, 64 bits.
    F64,
}

/// One line for each type: how Zarr names it, how it is typed, its bytes.
const TABLE: [(DataType, &str, &str, usize); 11] = [
    (DataType::I8, "int8", "i8", 1),
    (DataType::I16, "int16", "i16", 2),
    (DataType::I32, "int32", "i32", 4),
    (DataType::I64, "int64", "i64", 8),
    (DataType::U8, "uint8", "u8", 1),
    (DataType::U16, "uint16", "u16", 2),
    (DataType::U32, "uint32", "u32", 4),
    (DataType::U64, "uint64", "u64", 8),
    (DataType::F16, "float16", "f16", 2),
    (DataType::F32, "float32", "f32", 4),
    (DataType::F64, "float64", "f64", 8),
];

impl DataType {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F16,
        Self::F32,
        Self::F64,
    ];

    /// Its name in Zarr's metadata, such as `uint16`.
    pub const fn zarr_name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Its short name, such as `u16`.
    pub const fn short_name(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// Bytes of one element.
    pub const fn bytes(self) -> usize {
        TABLE[self as usize].3
    }

    /// Whether it holds fractions, infinities and NaN.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// What a shuffle moves: only the width counts there.
    pub(crate) const fn filter_element(self) -> Element {
        match self.bytes() {
            1 => Element::U8,
            2 => Element::U16,
            4 => Element::U32,
            _ => Element::U64,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.zarr_name())
    }
}

/// A type of elements that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no element type; write one of i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64")]
pub struct ParseDataTypeError {
    text: String,
}

impl FromStr for DataType {
    type Err = ParseDataTypeError;

    fn from_str(text: &str) -> Result<Self, ParseDataTypeError> {
        let known = TABLE.iter().find(|(_, zarr, short, _)| text == *zarr || text == *short);
        known.map(|(data_type, ..)| *data_type).ok_or_else(|| ParseDataTypeError { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_types() {
        for (at, data_type) in DataType::ALL.into_iter().enumerate() {
            assert_eq!(TABLE[at].0, data_type);
            assert_eq!(data_type as usize, at);
        }
    }

    #[test]
    fn both_names_are_read_and_others_refused() {
        for data_type in DataType::ALL {
            assert_eq!(data_type.zarr_name().parse(), Ok(data_type));
            assert_eq!(data_type.short_name().parse(), Ok(data_type));
            assert_eq!(data_type.filter_element().width(), data_type.bytes());
        }
        for wrong in ["", "u24", "UINT16", "float128", "bool"] {
            assert!(wrong.parse::<DataType>().is_err(), "{wrong}");
        }
    }
}
