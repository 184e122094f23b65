//! The value of elements that nobody wrote: as it is typed, as bytes of an element, and whether a chunk holds nothing else.
//! Never decides whether a chunk is stored; it answers the question that decides it.

use std::fmt;
use std::str::FromStr;

use half::f16;

use crate::data_type::DataType;

/// A fill value as it is typed, before it is known what the elements are.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Fill {
    /// A whole number.
    Integer(i128),
    /// A fraction, an infinity or NaN.
    Float(f64),
    /// The bits of a float, for a NaN of one's own.
    Bits(u64),
}

impl Default for Fill {
    fn default() -> Self {
        Self::Integer(0)
    }
}

/// A fill value that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    /// It cannot be read.
    #[error(
        "'{text}' is no fill value; write a number, NaN, Infinity, -Infinity, or the bits of a float as 0x7fc00000"
    )]
    Unreadable {
        /// As it was typed.
        text: String,
    },
    /// Elements of the array cannot hold it.
    #[error("elements of {data_type} cannot hold the fill value {fill}; choose one that they can hold")]
    DoesNotFit {
        /// What was asked for.
        fill: Fill,
        /// What the elements are.
        data_type: DataType,
    },
}

impl FromStr for Fill {
    type Err = FillError;

    fn from_str(text: &str) -> Result<Self, FillError> {
        let refused = || FillError::Unreadable { text: text.to_owned() };
        if let Some(bits) = text.strip_prefix("0x") {
            return u64::from_str_radix(bits, 16).map(Self::Bits).map_err(|_| refused());
        }
        if let Ok(integer) = text.parse() {
            return Ok(Self::Integer(integer));
        }
        text.parse().map(Self::Float).map_err(|_| refused())
    }
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Float(float) => write!(f, "{float}"),
            Self::Bits(bits) => write!(f, "{bits:#x}"),
        }
    }
}

/// A fill value as one element holds it.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct FillValue {
    data_type: DataType,
    /// Little-endian; as many count as the element has.
    bytes: [u8; 8],
}

impl FillValue {
    /// The element that this is; an error if elements cannot hold it.
    pub fn new(fill: Fill, data_type: DataType) -> Result<Self, FillError> {
        let bits = if data_type.is_float() { float_bits(fill, data_type) } else { integer_bits(fill, data_type) };
        let refused = FillError::DoesNotFit { fill, data_type };
        bits.map(|bits| Self { data_type, bytes: bits.to_le_bytes() }).ok_or(refused)
    }

    /// Zero.
    pub const fn zero(data_type: DataType) -> Self {
        Self { data_type, bytes: [0; 8] }
    }

    /// What the elements are.
    pub const fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The element's bytes, little-endian.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.data_type.bytes()]
    }

    /// The element's bits, those above its width zero.
    pub(crate) fn bits(&self) -> u64 {
        u64::from_le_bytes(self.bytes)
    }

    /// Its value, if it is a float.
    pub(crate) fn float(&self) -> Option<f64> {
        match self.data_type {
            DataType::F16 => Some(f16::from_bits(self.bits() as u16).to_f64()),
            DataType::F32 => Some(f64::from(f32::from_bits(self.bits() as u32))),
            DataType::F64 => Some(f64::from_bits(self.bits())),
            _ => None,
        }
    }

    /// Its value, if it is a whole number.
    pub(crate) fn integer(&self) -> Option<i128> {
        let unused = 64 - 8 * self.data_type.bytes();
        match self.data_type {
            DataType::I8 | DataType::I16 | DataType::I32 | DataType::I64 => {
                Some(i128::from((self.bits() << unused) as i64 >> unused))
            }
            DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64 => Some(i128::from(self.bits())),
            DataType::F16 | DataType::F32 | DataType::F64 => None,
        }
    }

    /// Writes it over and over.
    pub fn fill(&self, elements: &mut [u8]) {
        let element = self.bytes();
        if element.iter().all(|byte| *byte == element[0]) {
            return elements.fill(element[0]);
        }
        elements.chunks_exact_mut(element.len()).for_each(|to| to.copy_from_slice(element));
    }

    /// Whether a chunk holds nothing else, bit by bit: such a chunk need not be stored.
    pub fn is_all(&self, chunk: &[u8]) -> bool {
        let (words, rest) = chunk.as_chunks::<FAST>();
        let pattern = self.pattern();
        words.iter().all(|word| *word == pattern) && *rest == pattern[..rest.len()]
    }

    fn pattern(&self) -> [u8; FAST] {
        let element = self.bytes();
        std::array::from_fn(|at| element[at % element.len()])
    }
}

/// Bytes that are compared at once: a multiple of every element, and as wide as vector registers are.
const FAST: usize = 64;

impl fmt::Debug for FillValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for FillValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.integer(), self.float()) {
            (Some(integer), _) => write!(f, "{integer}"),
            (_, Some(float)) => write!(f, "{float}"),
            _ => write!(f, "{:#x}", self.bits()),
        }
    }
}

fn integer_bits(fill: Fill, data_type: DataType) -> Option<u64> {
    let integer = match fill {
        Fill::Integer(integer) => integer,
        Fill::Float(float) if float.fract() == 0.0 && float.abs() < 2_f64.powi(64) => float as i128,
        Fill::Float(_) | Fill::Bits(_) => return None,
    };
    let bits = 8 * data_type.bytes() as u32;
    let is_signed = matches!(data_type, DataType::I8 | DataType::I16 | DataType::I32 | DataType::I64);
    let (lowest, highest) =
        if is_signed { (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1) } else { (0, (1_i128 << bits) - 1) };
    let mask = u64::MAX >> (64 - bits);
    (lowest..=highest).contains(&integer).then_some(integer as u64 & mask)
}

fn float_bits(fill: Fill, data_type: DataType) -> Option<u64> {
    let value = match fill {
        Fill::Integer(integer) => integer as f64,
        Fill::Float(float) => float,
        Fill::Bits(bits) => return (bits <= u64::MAX >> (64 - 8 * data_type.bytes())).then_some(bits),
    };
    if value.is_nan() {
        return Some(canonical_nan(data_type));
    }
    let (bits, held) = match data_type {
        DataType::F16 => (u64::from(f16::from_f64(value).to_bits()), f16::from_f64(value).to_f64()),
        DataType::F32 => (u64::from((value as f32).to_bits()), f64::from(value as f32)),
        _ => (value.to_bits(), value),
    };
    // A finite value that would become an infinity is one that the elements cannot hold; a rounded one they can.
    (held.is_finite() == value.is_finite()).then_some(bits)
}

/// The one NaN that Zarr calls `NaN`: positive, quiet, nothing else set.
pub(crate) const fn canonical_nan(data_type: DataType) -> u64 {
    match data_type {
        DataType::F16 => 0x7e00,
        DataType::F32 => 0x7fc0_0000,
        _ => 0x7ff8_0000_0000_0000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, data_type: DataType) -> Result<FillValue, FillError> {
        FillValue::new(text.parse()?, data_type)
    }

    #[test]
    fn every_type_holds_its_ends_and_nothing_beyond() {
        let ends = [
            (DataType::I8, "-128", "127", "128"),
            (DataType::U16, "0", "65535", "-1"),
            (DataType::I64, "-9223372036854775808", "9223372036854775807", "9223372036854775808"),
            (DataType::U64, "0", "18446744073709551615", "18446744073709551616"),
        ];
        for (data_type, lowest, highest, beyond) in ends {
            assert_eq!(value(lowest, data_type).unwrap().to_string(), lowest);
            assert_eq!(value(highest, data_type).unwrap().to_string(), highest);
            assert!(matches!(value(beyond, data_type), Err(FillError::DoesNotFit { .. })), "{data_type}");
        }
        assert!(value("1.5", DataType::I32).is_err());
        assert!(value("1e6", DataType::F16).is_err(), "would be infinite");
        assert_eq!(value("2.0", DataType::U8).unwrap().bytes(), [2]);
    }

    #[test]
    fn floats_have_infinities_nan_and_bits() {
        assert_eq!(value("NaN", DataType::F32).unwrap().bytes(), 0x7fc0_0000_u32.to_le_bytes());
        assert_eq!(value("0x7fc00001", DataType::F32).unwrap().bytes(), 0x7fc0_0001_u32.to_le_bytes());
        assert_eq!(value("-Infinity", DataType::F64).unwrap().bytes(), f64::NEG_INFINITY.to_le_bytes());
        assert_eq!(value("0.5", DataType::F16).unwrap().bytes(), 0x3800_u16.to_le_bytes());
        assert!(value("0x10000", DataType::F16).is_err(), "more bits than there are");
        assert!(matches!(value("zero", DataType::F64), Err(FillError::Unreadable { .. })));
    }

    #[test]
    fn one_other_element_anywhere_makes_a_chunk_worth_storing() {
        for data_type in DataType::ALL {
            let fill = value("7", data_type).unwrap();
            let mut chunk = vec![0; 37 * data_type.bytes()];
            fill.fill(&mut chunk);
            assert!(fill.is_all(&chunk));
            for at in 0..chunk.len() {
                chunk[at] ^= 0x80;
                assert!(!fill.is_all(&chunk), "{data_type} at {at}");
                chunk[at] ^= 0x80;
            }
        }
    }
}
