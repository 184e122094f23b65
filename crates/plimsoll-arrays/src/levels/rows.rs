//! The reductions of the types that cameras and detectors give, row by row: what a row of windows has come to side by side,
//! so that the compiler makes vector code of it.
//! Invariant: sums are made in the same order as in `reference.rs`, so that floats round alike.

use super::keys::{Greatest, Key, Least, Middle, Second};
use super::{Block, Reduction};
use crate::data_type::DataType;
use crate::fill::canonical_nan;

/// Elements of a window at the most that 32 bits hold the sum of, whatever they are.
const WINDOW_MAX: usize = 1 << 15;
/// Dimensions that are halved at most where windows are put into order.
const HALVED_MAX: usize = 3;

/// Appends the reduced block; false if there is no such way for this type.
pub(super) fn reduce(data_type: DataType, reduction: Reduction, block: Block<'_>, out: &mut Vec<u8>) -> bool {
    let halvings = block.halved.iter().filter(|halved| **halved).count();
    if halvings as u32 > WINDOW_MAX.ilog2() || block.shape.is_empty() {
        return false;
    }
    if reduction != Reduction::Mean {
        return halvings <= HALVED_MAX && by_order(data_type, reduction, halvings, block, out);
    }
    match data_type {
        DataType::U8 => rows::<U8, 1>(block, out),
        DataType::U16 => rows::<U16, 2>(block, out),
        DataType::I16 => rows::<I16, 2>(block, out),
        DataType::I32 => rows::<I32, 4>(block, out),
        DataType::U32 => rows::<U32, 4>(block, out),
        DataType::F32 => rows::<F32, 4>(block, out),
        DataType::F64 => rows::<F64, 8>(block, out),
        _ => return false,
    }
    true
}

fn by_order(data_type: DataType, reduction: Reduction, halvings: usize, block: Block<'_>, out: &mut Vec<u8>) -> bool {
    match data_type {
        DataType::U8 => ordered::<u8, 1>(reduction, halvings, block, out),
        DataType::U16 => ordered::<u16, 2>(reduction, halvings, block, out),
        DataType::I16 => ordered::<i16, 2>(reduction, halvings, block, out),
        DataType::I32 => ordered::<i32, 4>(reduction, halvings, block, out),
        DataType::U32 => ordered::<u32, 4>(reduction, halvings, block, out),
        DataType::F32 => ordered::<f32, 4>(reduction, halvings, block, out),
        DataType::F64 => ordered::<f64, 8>(reduction, halvings, block, out),
        _ => return false,
    }
    true
}

fn ordered<T: Key<W>, const W: usize>(reduction: Reduction, halvings: usize, block: Block<'_>, out: &mut Vec<u8>) {
    match reduction {
        Reduction::Min => rows::<Least<T>, W>(block, out),
        Reduction::Median if halvings < HALVED_MAX => rows::<Middle<T, 2>, W>(block, out),
        Reduction::Median => rows::<Middle<T, 4>, W>(block, out),
        Reduction::SecondHighest => rows::<Second<T>, W>(block, out),
        Reduction::Max | Reduction::Mean => rows::<Greatest<T>, W>(block, out),
    }
}

/// What the elements of a window come to, one after the other.
pub(super) trait Windowed<const W: usize> {
    type Sum: Copy;
    /// What changes nothing when an element is added to it.
    const NOTHING: Self::Sum;
    fn add(sum: Self::Sum, element: [u8; W]) -> Self::Sum;
    /// What two to this power of elements come to.
    fn reduced(sum: Self::Sum, log_count: u32) -> [u8; W];
}

/// The mean of an integer type, in sums that hold those of every window.
macro_rules! integer {
    ($name:ident, $type:ty, $sum:ty, $width:literal) => {
        struct $name;

        impl Windowed<$width> for $name {
            type Sum = $sum;
            const NOTHING: $sum = 0;

            fn add(sum: $sum, element: [u8; $width]) -> $sum {
                sum + <$sum>::from(<$type>::from_le_bytes(element))
            }

            fn reduced(sum: $sum, log_count: u32) -> [u8; $width] {
                (((sum + ((1 << log_count) >> 1)) >> log_count) as $type).to_le_bytes()
            }
        }
    };
}

integer!(U8, u8, u32, 1);
integer!(U16, u16, u32, 2);
integer!(I16, i16, i32, 2);
integer!(I32, i32, i64, 4);
integer!(U32, u32, u64, 4);

struct F32;
struct F64;

impl Windowed<4> for F32 {
    type Sum = f64;
    /// Not 0: added to -0, that would give 0.
    const NOTHING: f64 = -0.0;

    fn add(sum: f64, element: [u8; 4]) -> f64 {
        sum + f64::from(f32::from_le_bytes(element))
    }

    fn reduced(sum: f64, log_count: u32) -> [u8; 4] {
        let mean = (sum / f64::from(1_u32 << log_count)) as f32;
        let bits = if mean.is_nan() { canonical_nan(DataType::F32) as u32 } else { mean.to_bits() };
        bits.to_le_bytes()
    }
}

impl Windowed<8> for F64 {
    type Sum = f64;
    const NOTHING: f64 = -0.0;

    fn add(sum: f64, element: [u8; 8]) -> f64 {
        sum + f64::from_le_bytes(element)
    }

    fn reduced(sum: f64, log_count: u32) -> [u8; 8] {
        let mean = sum / f64::from(1_u32 << log_count);
        let bits = if mean.is_nan() { canonical_nan(DataType::F64) } else { mean.to_bits() };
        bits.to_le_bytes()
    }
}

fn rows<S: Windowed<W>, const W: usize>(block: Block<'_>, out: &mut Vec<u8>) {
    let reduced = block.reduced_shape();
    let outer = block.shape.len() - 1;
    let (width, is_halved) = (block.shape[outer], block.halved[outer]);
    let elements = block.elements.as_chunks::<W>().0;
    let mut sums = vec![S::NOTHING; reduced[outer]];
    let mut windows = WindowRows::default();
    out.reserve(reduced.iter().product::<usize>() * W);
    for row in 0..reduced[..outer].iter().product::<usize>() {
        let rows = windows.of(block, &reduced, row);
        sums.fill(S::NOTHING);
        for row in rows {
            add_row::<S, W>(&mut sums, &elements[row * width..][..width], is_halved);
        }
        write_row::<S, W>(&sums, rows.len().ilog2(), is_halved, width, out);
    }
}

/// Which rows of the block one row of windows reaches over, in buffers that are used again.
#[derive(Default)]
struct WindowRows {
    rows: Vec<usize>,
    finer: Vec<usize>,
}

impl WindowRows {
    /// The rows of the windows of one reduced row, in row-major order.
    fn of(&mut self, block: Block<'_>, reduced: &[usize], row: usize) -> &[usize] {
        let outer = block.shape.len() - 1;
        let mut inner: usize = reduced[..outer].iter().product();
        self.rows.clear();
        self.rows.push(0);
        for ((&size, &is_halved), count) in block.shape[..outer].iter().zip(block.halved).zip(reduced) {
            inner /= count;
            let at = row / inner % count;
            let window = if is_halved { 2 * at..size.min(2 * at + 2) } else { at..at + 1 };
            self.finer.clear();
            self.finer.extend(self.rows.iter().flat_map(|row| window.clone().map(move |at| row * size + at)));
            std::mem::swap(&mut self.rows, &mut self.finer);
        }
        &self.rows
    }
}

/// Adds a row of elements to the sums of the windows.
fn add_row<S: Windowed<W>, const W: usize>(sums: &mut [S::Sum], row: &[[u8; W]], is_halved: bool) {
    if !is_halved {
        return sums.iter_mut().zip(row).for_each(|(sum, element)| *sum = S::add(*sum, *element));
    }
    let (pairs, odd) = row.as_chunks::<2>();
    for (sum, [first, second]) in sums.iter_mut().zip(pairs) {
        *sum = S::add(S::add(*sum, *first), *second);
    }
    if let (Some(sum), [last]) = (sums.last_mut(), odd) {
        *sum = S::add(*sum, *last);
    }
}

fn write_row<S: Windowed<W>, const W: usize>(
    sums: &[S::Sum],
    log_rows: u32,
    is_halved: bool,
    width: usize,
    out: &mut Vec<u8>,
) {
    let whole = if is_halved { width / 2 } else { width };
    let log_count = log_rows + u32::from(is_halved);
    let begin = out.len();
    out.resize(begin + sums.len() * W, 0);
    let means = out[begin..].as_chunks_mut::<W>().0;
    for (mean, sum) in means[..whole].iter_mut().zip(sums) {
        *mean = S::reduced(*sum, log_count);
    }
    // The window at an odd end is one element wide.
    if let (Some(mean), [sum]) = (means.get_mut(whole), &sums[whole..]) {
        *mean = S::reduced(*sum, log_rows);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reference;
    use super::*;

    const TYPES: [DataType; 7] =
        [DataType::U8, DataType::U16, DataType::I16, DataType::I32, DataType::U32, DataType::F32, DataType::F64];

    proptest! {
        #[test]
        fn rows_give_what_the_reference_gives(
            dimensions in proptest::collection::vec((1_usize..7, any::<bool>()), 1..5),
            seed: u64,
            is_odd: bool,
        ) {
            let (shape, halved): (Vec<usize>, Vec<bool>) = dimensions.into_iter().unzip();
            for (data_type, reduction) in TYPES.into_iter().flat_map(|of| Reduction::ALL.map(|how| (of, how))) {
                let bytes = shape.iter().product::<usize>() * data_type.bytes();
                let mut state = seed;
                // Few different bytes make equal elements, NaN of both signs and the ends of every type.
                let elements: Vec<u8> = std::iter::repeat_with(|| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let byte = (state >> 56) as u8;
                    if is_odd { [0, 0x7f, 0x80, 0xff][usize::from(byte & 3)] } else { byte }
                }).take(bytes).collect();
                let block = Block { elements: &elements, shape: &shape, halved: &halved };
                let (mut fast, mut plain) = (Vec::new(), Vec::new());
                let is_fast = reduce(data_type, reduction, block, &mut fast);
                prop_assert!(is_fast || halved.iter().filter(|halved| **halved).count() > HALVED_MAX);
                reference(data_type, reduction, block, &mut plain);
                prop_assert!(!is_fast || fast == plain, "{} {} {:?} {:?}", data_type, reduction, &shape, &halved);
            }
        }
    }
}
