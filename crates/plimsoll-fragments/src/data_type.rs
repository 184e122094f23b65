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

    /// An element as the bits of the 32-bit float that holds it, whatever it is: what is no number keeps its bits.
    pub(crate) fn widened(self, bits: u32) -> u32 {
        match self {
            Self::F32 => bits,
            Self::BF16 => bits << 16,
            Self::F16 => {
                let (sign, exponent, fraction) = ((bits & 0x8000) << 16, bits >> 10 & 0x1f, bits & 0x3ff);
                match (exponent, fraction) {
                    (0, 0) => sign,
                    (0, _) => {
                        let leading = fraction.ilog2();
                        sign | (leading + 103) << 23 | fraction << (23 - leading) & 0x7f_ffff
                    }
                    (31, _) => sign | 0x7f80_0000 | fraction << 13,
                    _ => sign | (exponent + 112) << 23 | fraction << 13,
                }
            }
        }
    }

    /// The elements that 32-bit floats hold, to the last bit, if they hold elements of this type.
    pub fn narrowed(self, floats: &[f32]) -> Vec<u8> {
        let of_f16 = |x: &f32| {
            let bits = x.to_bits();
            let number = f16::from_f32(*x).to_bits();
            if x.is_nan() { (bits >> 16 & 0x8000) as u16 | 0x7c00 | (bits >> 13 & 0x3ff) as u16 } else { number }
        };
        match self {
            Self::F16 => floats.iter().flat_map(|x| of_f16(x).to_le_bytes()).collect(),
            Self::BF16 => floats.iter().flat_map(|x| ((x.to_bits() >> 16) as u16).to_le_bytes()).collect(),
            Self::F32 => floats.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_short_float_is_widened_and_narrowed_to_itself() {
        for float in [Float::F16, Float::BF16] {
            let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
            let wide: Vec<f32> = (0..=u32::from(u16::MAX)).map(|bits| f32::from_bits(float.widened(bits))).collect();
            assert!(float.narrowed(&wide) == bytes, "{float:?}");
            let numbers = wide.iter().zip(float.to_f32(&bytes)).filter(|(_, x)| !x.is_nan());
            numbers.for_each(|(wide, x)| assert_eq!(wide.to_bits(), x.to_bits(), "{float:?}"));
        }
    }
}
