//! The image that is laid over frames: read and decoded while the chain is read.
//! Never changes afterwards. Invariant: its `Debug` text names its content, not its path.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use crate::frames::operation::OperationError;
use crate::image::Size;

/// An image with its transparency.
pub(super) struct Layer {
    pub(super) size: Size,
    /// The columns and rows that hold all that is not wholly transparent.
    pub(super) drawn: (Range<u32>, Range<u32>),
    /// Red, green, blue, alpha: sRGB, 16 bits.
    pixels: Vec<[u16; 4]>,
    content: u64,
}

impl Layer {
    /// The image in a file.
    #[cfg(feature = "decode")]
    pub(super) fn read(path: &Path) -> Result<Self, OperationError> {
        use crate::decode::{DecodeOptions, read, rgba};
        let named = |error: &dyn fmt::Display| OperationError::because(format_args!("{}: {error}", path.display()));
        // This one names the path itself.
        let bytes = read(path).map_err(OperationError::because)?;
        let (size, pixels) = rgba(&bytes, &DecodeOptions::default()).map_err(|error| named(&error))?;
        Ok(Self::new(size, pixels, twox_hash::XxHash3_64::oneshot(&bytes)))
    }

    /// The image in a file.
    #[cfg(not(feature = "decode"))]
    pub(super) fn read(path: &Path) -> Result<Self, OperationError> {
        let _: fn(Size, Vec<[u16; 4]>, u64) -> Self = Self::new;
        Err(OperationError::because(format_args!(
            "{}: built without the feature `decode`, which reads images",
            path.display()
        )))
    }

    fn new(size: Size, pixels: Vec<[u16; 4]>, content: u64) -> Self {
        Self { size, drawn: drawn(size, &pixels), pixels, content }
    }

    /// Red, green, blue and alpha of a pixel, 0 to 1.
    pub(super) fn pixel(&self, x: u32, y: u32) -> [f64; 4] {
        self.pixels[y as usize * self.size.width as usize + x as usize]
            .map(|sample| f64::from(sample) / f64::from(u16::MAX))
    }
}

/// The smallest rectangle with all pixels that are not wholly transparent.
fn drawn(size: Size, pixels: &[[u16; 4]]) -> (Range<u32>, Range<u32>) {
    let (mut columns, mut rows) = (size.width..0, size.height..0);
    for (y, row) in (0..).zip(pixels.chunks_exact(size.width as usize)) {
        let seen = |pixel: &[u16; 4]| pixel[3] > 0;
        let (Some(first), Some(last)) = (row.iter().position(seen), row.iter().rposition(seen)) else { continue };
        columns = columns.start.min(first as u32)..columns.end.max(last as u32 + 1);
        rows = rows.start.min(y)..y + 1;
    }
    (columns, rows)
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layer({}, content {:016x})", self.size, self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wholly_transparent_is_left_out() {
        let size = Size { width: 4, height: 3 };
        let mut pixels = vec![[9, 9, 9, 0]; 12];
        assert!(drawn(size, &pixels).0.is_empty());
        pixels[4 + 1][3] = 1;
        pixels[8 + 2][3] = 5;
        assert_eq!(drawn(size, &pixels), (1..3, 1..3));
    }
}
