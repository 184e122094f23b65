//! The mean of the types that cameras and detectors give, row by row: sums of a row of windows side by side, so that the
//! compiler makes vector code of it.
//! Invariant: sums are made in the same order as in `reference.rs`, so that floats round alike.

use super::Block;
use crate::data_type::DataType;
use crate::fill::canonical_nan;

/// Elements of a window at the most that 32 bits hold the sum of, whatever they are.
const WINDOW_MAX: usize = 1 << 15;

/// Appends the means; false if there is no such way for this type.
pub(super) fn reduce(data_type: DataType, block: Block<'_>, out: &mut Vec<u8>) -> bool {
    let halvings = block.halved.iter().filter(|halved| **halved).count();
    if halvings as u32 > WINDOW_MAX.ilog2() || block.shape.is_empty() {
        return false;
    }
    match data_type {
        DataType::U8 => rows::<U8, 1>(block, out),
        DataType::U16 => rows::<U16, 2>(block, out),
        DataType::F32 => rows::<F32, 4>(block, out),
        _ => return false,
    }
    true
}

/// A type with the sums of its windows.
trait Summed<const W: usize> {
    type Sum: Copy;
    /// What changes nothing when an element is added to it.
    const NOTHING: Self::Sum;
    fn add(sum: Self::Sum, element: [u8; W]) -> Self::Sum;
    /// The mean of two to this power of elements.
    fn mean(sum: Self::Sum, log_count: u32) -> [u8; W];
}

struct U8;
struct U16;
struct F32;

impl Summed<1> for U8 {
    type Sum = u32;
    const NOTHING: u32 = 0;

    fn add(sum: u32, element: [u8; 1]) -> u32 {
        sum + u32::from(element[0])
    }

    fn mean(sum: u32, log_count: u32) -> [u8; 1] {
        [((sum + ((1 << log_count) >> 1)) >> log_count) as u8]
    }
}

impl Summed<2> for U16 {
    type Sum = u32;
    const NOTHING: u32 = 0;

    fn add(sum: u32, element: [u8; 2]) -> u32 {
        sum + u32::from(u16::from_le_bytes(element))
    }

    fn mean(sum: u32, log_count: u32) -> [u8; 2] {
        (((sum + ((1 << log_count) >> 1)) >> log_count) as u16).to_le_bytes()
    }
}

impl Summed<4> for F32 {
    type Sum = f64;
    /// Not 0: added to -0, that would give 0.
    const NOTHING: f64 = -0.0;

    fn add(sum: f64, element: [u8; 4]) -> f64 {
        sum + f64::from(f32::from_le_bytes(element))
    }

    fn mean(sum: f64, log_count: u32) -> [u8; 4] {
        let mean = (sum / f64::from(1_u32 << log_count)) as f32;
        let bits = if mean.is_nan() { canonical_nan(DataType::F32) as u32 } else { mean.to_bits() };
        bits.to_le_bytes()
    }
}

fn rows<S: Summed<W>, const W: usize>(block: Block<'_>, out: &mut Vec<u8>) {
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
fn add_row<S: Summed<W>, const W: usize>(sums: &mut [S::Sum], row: &[[u8; W]], is_halved: bool) {
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

fn write_row<S: Summed<W>, const W: usize>(
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
        *mean = S::mean(*sum, log_count);
    }
    // The window at an odd end is one element wide.
    if let (Some(mean), [sum]) = (means.get_mut(whole), &sums[whole..]) {
        *mean = S::mean(*sum, log_rows);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Reduction, reference};
    use super::*;

    proptest! {
        #[test]
        fn means_by_rows_are_those_of_the_reference(
            dimensions in proptest::collection::vec((1_usize..7, any::<bool>()), 1..5),
            seed: u64,
        ) {
            let (shape, halved): (Vec<usize>, Vec<bool>) = dimensions.into_iter().unzip();
            for data_type in [DataType::U8, DataType::U16, DataType::F32] {
                let bytes = shape.iter().product::<usize>() * data_type.bytes();
                let mut state = seed;
                let elements: Vec<u8> = std::iter::repeat_with(|| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 56) as u8
                }).take(bytes).collect();
                let block = Block { elements: &elements, shape: &shape, halved: &halved };
                let (mut fast, mut plain) = (Vec::new(), Vec::new());
                prop_assert!(reduce(data_type, block, &mut fast));
                reference(data_type, Reduction::Mean, block, &mut plain);
                prop_assert_eq!(&fast, &plain, "{} {:?} {:?}", data_type, &shape, &halved);
            }
        }
    }
}
