//! Copying a box of elements from one row-major array into another.
//! Never checks a file's word: whoever calls has made the box fit both arrays.

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
    if extent.contains(&0) {
        return;
    }
    let inner = extent.len() - 1;
    let row = extent[inner] as usize * element;
    let mut index = vec![0; inner];
    loop {
        let source = at.offset(&index) * element;
        let target = into.offset(&index) * element;
        to[target..target + row].copy_from_slice(&from[source..source + row]);
        if !step(&mut index, &extent[..inner]) {
            return;
        }
    }
}

impl Place<'_> {
    /// The element at an index of the box; the last dimension is left out, it begins where the box does.
    fn offset(&self, index: &[u64]) -> usize {
        let index = index.iter().copied().chain([0]);
        let places = self.shape.iter().zip(self.start.iter().zip(index));
        places.fold(0, |offset, (size, (start, index))| offset * size + start + index) as usize
    }
}

/// Goes to the next index; false behind the last.
fn step(index: &mut [u64], extent: &[u64]) -> bool {
    for (at, size) in index.iter_mut().zip(extent).rev() {
        *at += 1;
        if *at < *size {
            return true;
        }
        *at = 0;
    }
    false
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
