//! Making one level from the one before it: what each reduction is, and doing it on the CPU.
//! Never sees more than one block of one level. Invariant: `reduce` and `reference` give the same bytes.
//!
//! A window is two elements long along each halved dimension and one along every other; at an odd end it is cut to what
//! is there, so that it always holds a power of two. Along its elements in row-major order:
//!
//! | reduction | integers | floats |
//! |---|---|---|
//! | mean | the sum in a wider type, and half a count, divided and rounded down: halves go up | the sum in order, of f16 in f32 and of others in f64, divided and rounded to nearest even |
//! | min, max, median, second-highest | by value; the lower of two medians | the same with NaN above every number, and -0 below 0 |
//!
//! A NaN that comes out is the canonical one. A mean with a NaN is NaN; a minimum is only if all are.
//!
//! | file | what it owns |
//! |---|---|
//! | `reference.rs` | every reduction of every type, plainly |
//! | `sample.rs` | what the reductions must know of a type |
//! | `rows.rs` | the common types, by rows |
//! | `keys.rs` | the order of elements by rows: least, greatest, middle |

mod keys;
mod reference;
mod rows;
mod sample;

pub use reference::reference;

use std::fmt;
use std::str::FromStr;

use crate::data_type::DataType;

/// How a window of elements becomes one.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their mean.
    #[default]
    Mean,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The middle one; of an even count the lower of the two.
    Median,
    /// The greatest but one: bright spots stay, single hot pixels go.
    SecondHighest,
}

impl Reduction {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mean, Self::Min, Self::Max, Self::Median, Self::SecondHighest];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::Median => "median",
            Self::SecondHighest => "second-highest",
        }
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A reduction that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no way to make levels; write one of mean, min, max, median, second-highest")]
pub struct ParseReductionError {
    text: String,
}

impl FromStr for Reduction {
    type Err = ParseReductionError;

    fn from_str(text: &str) -> Result<Self, ParseReductionError> {
        let known = Self::ALL.into_iter().find(|reduction| reduction.name() == text);
        known.ok_or_else(|| ParseReductionError { text: text.to_owned() })
    }
}

/// What is to be reduced: a row-major block of elements, and along which dimensions it is halved.
#[derive(Copy, Clone, Debug)]
pub struct Block<'a> {
    /// The elements, little-endian.
    pub elements: &'a [u8],
    /// Elements along each dimension.
    pub shape: &'a [usize],
    /// Which dimensions are halved.
    pub halved: &'a [bool],
}

impl Block<'_> {
    /// Elements along each dimension of what comes out.
    pub fn reduced_shape(&self) -> Vec<usize> {
        let half = |(size, halved): (&usize, &bool)| if *halved { size.div_ceil(2) } else { *size };
        self.shape.iter().zip(self.halved).map(half).collect()
    }

    fn check(&self, data_type: DataType) {
        assert_eq!(self.shape.len(), self.halved.len(), "one flag for each dimension");
        let bytes = self.shape.iter().product::<usize>() * data_type.bytes();
        assert_eq!(self.elements.len(), bytes, "a block as long as its shape says");
    }
}

/// Appends the reduced block: the fastest way there is to what [`reference()`] gives.
///
/// ```
/// use plimsoll_arrays::{DataType, Reduction};
/// use plimsoll_arrays::levels::{Block, reduce};
///
/// let block = Block { elements: &[1, 2, 9, 3, 4, 9], shape: &[2, 3], halved: &[true, true] };
/// let mut half = Vec::new();
/// reduce(DataType::U8, Reduction::Mean, block, &mut half);
/// assert_eq!(half, [3, 9]);
/// ```
///
/// # Panics
///
/// If the elements are not as many as the shape says.
pub fn reduce(data_type: DataType, reduction: Reduction, block: Block<'_>, out: &mut Vec<u8>) {
    block.check(data_type);
    if !rows::reduce(data_type, reduction, block, out) {
        reference(data_type, reduction, block, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced<const N: usize>(
        data_type: DataType,
        reduction: Reduction,
        shape: &[usize],
        elements: &[[u8; N]],
    ) -> Vec<[u8; N]> {
        let (mut out, mut plain) = (Vec::new(), Vec::new());
        let halved = vec![true; shape.len()];
        let block = Block { elements: elements.as_flattened(), shape, halved: &halved };
        reduce(data_type, reduction, block, &mut out);
        reference(data_type, reduction, block, &mut plain);
        assert_eq!(out, plain);
        out.as_chunks().0.to_vec()
    }

    #[test]
    fn integer_means_never_wrap_and_halves_go_up() {
        let of = |values: [i64; 2]| {
            i64::from_le_bytes(reduced(DataType::I64, Reduction::Mean, &[2], &values.map(i64::to_le_bytes))[0])
        };
        assert_eq!(of([i64::MAX, i64::MAX]), i64::MAX);
        assert_eq!(of([i64::MIN, i64::MIN]), i64::MIN);
        assert_eq!((of([1, 2]), of([-1, -2]), of([-1, 0])), (2, -1, 0));
        let all = reduced(DataType::U16, Reduction::Mean, &[2, 2], &[u16::MAX.to_le_bytes(); 4]);
        assert_eq!(all, [u16::MAX.to_le_bytes()]);
        let all = reduced(DataType::U64, Reduction::Mean, &[2, 2], &[u64::MAX.to_le_bytes(); 4]);
        assert_eq!(all, [u64::MAX.to_le_bytes()]);
    }

    #[test]
    fn order_reductions_take_one_of_the_elements() {
        let bytes = [5_i8, -3, 7, 0].map(i8::to_le_bytes);
        let of = |reduction| i8::from_le_bytes(reduced(DataType::I8, reduction, &[2, 2], &bytes)[0]);
        assert_eq!(of(Reduction::Min), -3);
        assert_eq!(of(Reduction::Max), 7);
        assert_eq!(of(Reduction::Median), 0, "the lower of 0 and 5");
        assert_eq!(of(Reduction::SecondHighest), 5);
        let one = reduced(DataType::I8, Reduction::SecondHighest, &[1], &[[9]]);
        assert_eq!(one, [[9]], "a window of one element has no other");
    }

    #[test]
    fn nan_is_above_every_number() {
        let floats = [f32::NAN, 1.0, f32::INFINITY, -0.0].map(f32::to_le_bytes);
        let of = |reduction| f32::from_le_bytes(reduced(DataType::F32, reduction, &[4, 1], &floats)[0]);
        assert!(of(Reduction::Mean).is_nan() && of(Reduction::Max).is_nan());
        assert_eq!(of(Reduction::Min), 1.0);
        let negative_nan = [0xffc0_1234_u32, 0xffc0_1234].map(u32::to_le_bytes);
        let canonical = 0x7fc0_0000_u32.to_le_bytes();
        for reduction in Reduction::ALL {
            assert_eq!(reduced(DataType::F32, reduction, &[2], &negative_nan), [canonical], "{reduction}");
        }
        let zeros = [0.0_f32, -0.0].map(f32::to_le_bytes);
        assert_eq!(reduced(DataType::F32, Reduction::Min, &[2], &zeros), [(-0.0_f32).to_le_bytes()]);
        let below = [-0.0_f32, -0.0].map(f32::to_le_bytes);
        assert_eq!(reduced(DataType::F32, Reduction::Mean, &[2], &below), [(-0.0_f32).to_le_bytes()]);
    }

    #[test]
    fn dimensions_that_are_not_halved_stay() {
        let block = Block { elements: &[0, 10, 2, 30, 4, 50], shape: &[3, 2], halved: &[true, false] };
        let mut out = Vec::new();
        reduce(DataType::U8, Reduction::Mean, block, &mut out);
        assert_eq!(out, [1, 20, 4, 50]);
        assert_eq!(block.reduced_shape(), [2, 2]);
    }

    #[test]
    fn reductions_are_read() {
        for reduction in Reduction::ALL {
            assert_eq!(reduction.to_string().parse(), Ok(reduction));
        }
        assert!("average".parse::<Reduction>().is_err());
    }
}
