//! What tensors are made of, and their weights as 32-bit floats and back.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// The type of a tensor's elements, by its name in safetensors.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of safetensors say what they are")]
pub enum DataType {
    BOOL,
    U8,
    I8,
    #[serde(rename = "F8_E4M3")]
    F8E4M3,
    #[serde(rename = "F8_E5M2")]
    F8E5M2,
    #[serde(rename = "F8_E8M0")]
    F8E8M0,
    U16,
    I16,
    F16,
    BF16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
    C64,
}

impl DataType {
    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::BOOL | Self::U8 | Self::I8 | Self::F8E4M3 | Self::F8E5M2 | Self::F8E8M0 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::C64 => 8,
        }
    }

    /// The float type that is quantised; all others are kept as they are.
    pub fn float(self) -> Option<Float> {
        match self {
            Self::F16 => Some(Float::F16),
            Self::BF16 => Some(Float::BF16),
            Self::F32 => Some(Float::F32),
            _ => None,
        }
    }
}

/// A float type whose tensors are quantised.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say what they are")]
pub enum Float {
    F16,
    BF16,
    F32,
}

impl Float {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        if self == Self::F32 { 4 } else { 2 }
    }

    /// Little-endian elements as 32-bit floats, which hold all of them exactly.
    pub fn to_f32(self, bytes: &[u8]) -> Vec<f32> {
        let twos = || bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair));
        match self {
            Self::F16 => twos().map(|bits| f16::from_bits(bits).to_f32()).collect(),
            Self::BF16 => twos().map(|bits| f32::from_bits(u32::from(bits) << 16)).collect(),
            Self::F32 => bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect(),
        }
    }

    /// The nearest elements, little-endian, written over `bytes`.
    pub fn from_f32(self, floats: &[f32], bytes: &mut [u8]) {
        let pairs = bytes.chunks_exact_mut(self.bytes()).zip(floats);
        match self {
            Self::F16 => pairs.for_each(|(to, x)| to.copy_from_slice(&f16::from_f32(*x).to_le_bytes())),
            Self::BF16 => pairs.for_each(|(to, x)| to.copy_from_slice(&bf16::from_f32(*x).to_le_bytes())),
            Self::F32 => pairs.for_each(|(to, x)| to.copy_from_slice(&x.to_le_bytes())),
        }
    }

    /// The number of an element in the order of all elements of its type: neighbours differ by one.
    pub(crate) fn rank(self, bits: u32) -> u32 {
        let sign = 1_u32 << (8 * self.bytes() - 1);
        if bits & sign != 0 { !bits } else { bits | sign }
    }

    /// The element of this number.
    pub(crate) fn of_rank(self, rank: u32) -> u32 {
        let sign = 1_u32 << (8 * self.bytes() - 1);
        if rank & sign != 0 { rank & !sign } else { !rank }
    }

    /// The bits of the nearest element.
    pub(crate) fn bits_of(self, x: f32) -> u32 {
        match self {
            Self::F16 => f16::from_f32(x).to_bits().into(),
            Self::BF16 => bf16::from_f32(x).to_bits().into(),
            Self::F32 => x.to_bits(),
        }
    }
}
