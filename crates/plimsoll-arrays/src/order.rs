//! The order in which the dimensions of a chunk are stored, and moving a chunk into it and back.
//! Invariant: the first dimension stays first, so that a chunk can be stored as it fills up.

use crate::layout::SpecError;

/// A storage order: which dimension of the array each stored one is, slowest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageOrder {
    dimensions: Vec<usize>,
}

impl StorageOrder {
    /// Checks that each dimension is listed once and the first is first; without a list, the array's own order.
    pub fn new(order: Option<&[usize]>, rank: usize) -> Result<Self, SpecError> {
        let own: Vec<usize> = (0..rank).collect();
        let dimensions = order.map_or_else(|| own.clone(), <[usize]>::to_vec);
        let mut sorted = dimensions.clone();
        sorted.sort_unstable();
        match sorted == own && dimensions.first() == Some(&0) {
            true => Ok(Self { dimensions }),
            false => Err(SpecError::Order { order: dimensions }),
        }
    }

    /// Any permutation, as files of others have them.
    pub(crate) fn any(dimensions: Vec<usize>) -> Option<Self> {
        let mut sorted = dimensions.clone();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..dimensions.len()).then_some(Self { dimensions })
    }

    /// Which dimension of the array each stored one is.
    pub fn dimensions(&self) -> &[usize] {
        &self.dimensions
    }

    /// Whether chunks are stored as they lie in the array.
    pub fn is_own(&self) -> bool {
        self.dimensions.is_sorted()
    }

    /// Appends the elements of a chunk of this shape in storage order.
    pub fn store(&self, chunk: &[u8], shape: &[u64], element: usize, out: &mut Vec<u8>) {
        if self.is_own() {
            return out.extend_from_slice(chunk);
        }
        let strides = strides(shape);
        let stored: Vec<(u64, u64)> = self.dimensions.iter().map(|at| (shape[*at], strides[*at])).collect();
        out.reserve(chunk.len());
        each(&stored, |at| out.extend_from_slice(&chunk[at * element..][..element]));
    }

    /// Undoes it: `stored` holds the elements of a chunk of this shape in storage order.
    pub fn restore(&self, stored: &[u8], shape: &[u64], element: usize, out: &mut Vec<u8>) {
        if self.is_own() {
            return out.extend_from_slice(stored);
        }
        let stored_shape: Vec<u64> = self.dimensions.iter().map(|at| shape[*at]).collect();
        let stored_strides = strides(&stored_shape);
        let mut by_dimension = vec![(0, 0); shape.len()];
        for (position, at) in self.dimensions.iter().enumerate() {
            by_dimension[*at] = (shape[*at], stored_strides[position]);
        }
        out.reserve(stored.len());
        each(&by_dimension, |at| out.extend_from_slice(&stored[at * element..][..element]));
    }
}

/// Elements from one index to the next along each dimension, row-major.
fn strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at];
    }
    strides
}

/// Gives the place of every element, the last of the dimensions fastest; each is (size, stride).
fn each(dimensions: &[(u64, u64)], mut give: impl FnMut(usize)) {
    fn walk(dimensions: &[(u64, u64)], from: u64, give: &mut impl FnMut(usize)) {
        match dimensions {
            [] => give(from as usize),
            [(size, stride), inner @ ..] => (0..*size).for_each(|at| walk(inner, from + at * stride, give)),
        }
    }
    walk(dimensions, 0, &mut give);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn elements_go_where_the_order_says() {
        // Shape 2, 2, 3 stored as 2, 3, 2.
        let order = StorageOrder::new(Some(&[0, 2, 1]), 3).unwrap();
        let mut stored = Vec::new();
        order.store(&(0..12).collect::<Vec<u8>>(), &[2, 2, 3], 1, &mut stored);
        assert_eq!(stored, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
    }

    #[test]
    fn what_is_no_order_is_refused() {
        for wrong in [&[0, 1][..], &[0, 1, 1], &[1, 0, 2], &[0, 1, 3], &[]] {
            assert!(StorageOrder::new(Some(wrong), 3).is_err(), "{wrong:?}");
        }
        assert!(StorageOrder::any(vec![2, 1, 0]).is_some());
        assert!(StorageOrder::any(vec![2, 1, 1]).is_none());
    }

    proptest! {
        #[test]
        fn what_is_restored_is_what_it_was(
            shape in proptest::collection::vec(1_u64..4, 1..5),
            order in Just([0_usize, 1, 2, 3]).prop_shuffle(),
            element in 1_usize..5,
        ) {
            let order: Vec<usize> = order.into_iter().filter(|at| *at < shape.len()).collect();
            let order = StorageOrder::any(order).unwrap();
            let bytes = shape.iter().product::<u64>() as usize * element;
            let chunk: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
            let (mut stored, mut back) = (Vec::new(), Vec::new());
            order.store(&chunk, &shape, element, &mut stored);
            order.restore(&stored, &shape, element, &mut back);
            prop_assert_eq!(back, chunk);
        }
    }
}
