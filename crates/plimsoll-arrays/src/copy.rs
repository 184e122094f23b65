//! Copying a box of elements from one row-major array into another, or behind one.
//! Never checks a file's word: whoever calls has made the box fit both arrays.

use crate::limits::RANK_MAX;

/// One of the two arrays: its shape, and where the box begins in it.
#[derive(Copy, Clone, Debug)]
pub struct Place<'a> {
    /// Elements along each dimension.
    pub shape: &'a [u64],
    /// Where the box begins.
    pub start: &'a [u64],
}

/// Copies a box of this extent, of elements of so many bytes.
///
/// # Panics
///
/// If the box does not lie in both arrays.
pub fn copy_box(from: &[u8], at: Place<'_>, to: &mut [u8], into: Place<'_>, extent: &[u64], element: usize) {
    let target = into.offset() * element;
    each_row(at, into.shape, extent, element, |source, row, offset| {
        let target = target + offset;
        to[target..target + row].copy_from_slice(&from[source..source + row]);
    });
}

/// Appends a box of this extent, row-major.
///
/// # Panics
///
/// If the box does not lie in the array.
pub fn append_box(from: &[u8], at: Place<'_>, to: &mut Vec<u8>, extent: &[u64], element: usize) {
    // Rows come in their order, without a gap between them.
    each_row(at, extent, extent, element, |source, row, _| to.extend_from_slice(&from[source..source + row]));
}

/// Gives where each row of a box begins, how many bytes it has, and how many bytes behind the box's beginning it lies in an
/// array of the other shape.
fn each_row(at: Place<'_>, to: &[u64], extent: &[u64], element: usize, mut give: impl FnMut(usize, usize, usize)) {
    if extent.contains(&0) {
        return;
    }
    let (rows, row) = rows(at.shape, to, extent, element);
    let (mut source, mut target) = (at.offset() * element, 0);
    let Some(((count, from_step, to_step), outer)) = rows.split_last() else {
        return give(source, row, target);
    };
    let mut index = [0; RANK_MAX];
    loop {
        for at in 0..*count {
            give(source + at * from_step, row, target + at * to_step);
        }
        // The next of the outer dimensions, those that are done from their beginning again.
        let mut dimension = outer.len();
        loop {
            if dimension == 0 {
                return;
            }
            dimension -= 1;
            let (size, from_step, to_step) = outer[dimension];
            index[dimension] += 1;
            source += from_step;
            target += to_step;
            if index[dimension] < size {
                break;
            }
            source -= size * from_step;
            target -= size * to_step;
            index[dimension] = 0;
        }
    }
}

/// Dimensions over which rows are repeated, each with how often and how many bytes further on in both arrays; and the bytes
/// of a row. Dimensions that are copied whole belong to the row.
fn rows(from: &[u64], to: &[u64], extent: &[u64], element: usize) -> (Vec<(usize, usize, usize)>, usize) {
    let (mut row, mut steps) = (element, (element, element));
    let mut rows = Vec::with_capacity(extent.len());
    for at in (0..extent.len()).rev() {
        // What was copied so far lies without a gap in both.
        if rows.is_empty() && steps == (row, row) {
            row *= extent[at] as usize;
        } else {
            rows.push((extent[at] as usize, steps.0, steps.1));
        }
        steps = (steps.0 * from[at] as usize, steps.1 * to[at] as usize);
    }
    rows.reverse();
    (rows, row)
}

impl Place<'_> {
    /// The element with which the box begins.
    fn offset(&self) -> usize {
        self.shape.iter().zip(self.start).fold(0, |offset, (size, start)| offset * size + start) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_goes_from_corner_to_corner() {
        let from: Vec<u8> = (0..12).collect();
        let mut to = [99; 8];
        let (at, into) = (Place { shape: &[3, 4], start: &[1, 2] }, Place { shape: &[2, 4], start: &[0, 1] });
        copy_box(&from, at, &mut to, into, &[2, 2], 1);
        assert_eq!(to, [99, 6, 7, 99, 99, 10, 11, 99]);
    }

    /// Element by element, over boxes that are whole along some dimensions.
    #[test]
    fn every_box_is_copied_as_its_elements_are() {
        let shape = [3, 4, 2, 5];
        let from: Vec<u8> = (0..120).collect();
        for cut in 0_u64..16 {
            let part = |at: usize| cut >> at & 1;
            let extent: Vec<u64> = (0..4).map(|at| shape[at] - part(at)).collect();
            let start: Vec<u64> = (0..4).map(part).collect();
            let into: Vec<u64> = (0..4).map(|at| extent[at] + 1 - part(at)).collect();
            let mut to = vec![255; into.iter().product::<u64>() as usize];
            let mut expected = to.clone();
            for n in 0..extent.iter().product::<u64>() {
                let index = [n / (extent[1] * extent[2] * extent[3]), n / (extent[2] * extent[3]), n / extent[3], n];
                let index: Vec<u64> = index.iter().zip(&extent).map(|(index, size)| index % size).collect();
                let place = |shape: &[u64], start: &[u64]| {
                    (0..4).fold(0, |offset, at| offset * shape[at] + start[at] + index[at]) as usize
                };
                expected[place(&into, &[0; 4])] = from[place(&shape, &start)];
            }
            let (at, into) = (Place { shape: &shape, start: &start }, Place { shape: &into, start: &[0; 4] });
            copy_box(&from, at, &mut to, into, &extent, 1);
            assert_eq!(to, expected, "{cut:04b}");
            let (mut appended, whole) = (vec![9], Place { shape: &extent, start: &[0; 4] });
            append_box(&from, at, &mut appended, &extent, 1);
            let mut copied = vec![0; appended.len() - 1];
            copy_box(&from, at, &mut copied, whole, &extent, 1);
            assert_eq!(appended[1..], copied, "{cut:04b}");
        }
    }

    #[test]
    fn one_dimension_and_an_empty_box() {
        let mut to = [0; 6];
        let (at, into) = (Place { shape: &[4], start: &[1] }, Place { shape: &[3], start: &[0] });
        copy_box(&[0, 0, 1, 1, 2, 2, 3, 3], at, &mut to, into, &[3], 2);
        assert_eq!(to, [1, 1, 2, 2, 3, 3]);
        copy_box(&[], Place { shape: &[0, 4], start: &[0, 0] }, &mut to, into, &[0, 4], 2);
        assert_eq!(to, [1, 1, 2, 2, 3, 3]);
    }
}
