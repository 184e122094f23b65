//! What the reductions must know of a type: reading and writing it, its order, its mean.

use std::cmp::Ordering;

use half::f16;

use crate::data_type::DataType;
use crate::fill::canonical_nan;

/// An element of one type.
pub(super) trait Sample: Copy {
    /// Its bytes.
    const BYTES: usize;
    fn read(bytes: &[u8]) -> Self;
    fn write(self, out: &mut Vec<u8>);
    /// By value; NaN above every number, -0 below 0.
    fn order(&self, other: &Self) -> Ordering;
    /// The mean of a window that is not empty.
    fn mean(window: &[Self]) -> Self;
}

macro_rules! integer {
    ($type:ty, $wide:ty) => {
        impl Sample for $type {
            const BYTES: usize = size_of::<$type>();

            fn read(bytes: &[u8]) -> Self {
                Self::from_le_bytes(std::array::from_fn(|at| bytes[at]))
            }

            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }

            fn mean(window: &[Self]) -> Self {
                let sum: $wide = window.iter().map(|sample| <$wide>::from(*sample)).sum();
                let count = window.len() as $wide;
                // Halves go up, also below zero: floor(sum / count + 1 / 2).
                (2 * sum + count).div_euclid(2 * count) as Self
            }
        }
    };
}

integer!(i8, i64);
integer!(i16, i64);
integer!(i32, i64);
integer!(i64, i128);
integer!(u8, u64);
integer!(u16, u64);
integer!(u32, u64);
integer!(u64, u128);

macro_rules! float {
    ($type:ty, $data_type:expr, $bits:ty, $wide:ty, $widen:expr, $narrow:expr) => {
        impl Sample for $type {
            const BYTES: usize = size_of::<$type>();

            fn read(bytes: &[u8]) -> Self {
                Self::from_le_bytes(std::array::from_fn(|at| bytes[at]))
            }

            fn write(self, out: &mut Vec<u8>) {
                let bits = if self.is_nan() { canonical_nan($data_type) as $bits } else { self.to_bits() };
                out.extend_from_slice(&bits.to_le_bytes());
            }

            fn order(&self, other: &Self) -> Ordering {
                let by_nan = self.is_nan().cmp(&other.is_nan());
                // Of two NaN both are written as the same one.
                by_nan.then_with(|| self.total_cmp(other))
            }

            fn mean(window: &[Self]) -> Self {
                let sum = window.iter().map(|sample| $widen(*sample)).reduce(|sum, sample| sum + sample);
                $narrow(sum.unwrap_or_default() / window.len() as $wide)
            }
        }
    };
}

float!(f16, DataType::F16, u16, f32, f16::to_f32, f16::from_f32);
float!(f32, DataType::F32, u32, f64, f64::from, |wide: f64| wide as f32);
float!(f64, DataType::F64, u64, f64, std::convert::identity, std::convert::identity);
