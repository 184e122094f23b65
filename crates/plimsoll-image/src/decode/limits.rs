//! Whether an image of this size may be read from a file of this length. Decided from headers alone.

use crate::{Image, MakeImageError, Size};

use super::error::DecodeError;
use super::format::Format;
use super::raster::Channels;

/// What one file may ask for.
#[derive(Copy, Clone, Debug)]
pub(super) struct Limits {
    pub format: Format,
    /// Bytes of the file.
    pub file: u64,
    /// Bytes that samples may take.
    pub bytes_max: u64,
}

impl Limits {
    /// Passes a size if the image can be held, the file is long enough for it, and its samples keep to the limit.
    pub(super) fn check(&self, size: Size, channels: Channels, bits: u8) -> Result<(), DecodeError> {
        match size.pixels() {
            0 => return Err(MakeImageError::Empty(size).into()),
            pixels if pixels > Image::PIXELS_MAX => return Err(MakeImageError::TooLarge(size).into()),
            _ => {}
        }
        if pixels_a_byte(self.format).is_some_and(|most| self.file.saturating_mul(most) < size.pixels()) {
            return Err(DecodeError::Truncated { format: self.format });
        }
        let each = if bits > 8 { 2 } else { 1 };
        let needed = size.pixels() * (channels.count() as u64 + 3) * each;
        match needed > self.bytes_max {
            true => Err(DecodeError::TooLarge { size, needed, allowed: self.bytes_max }),
            false => Ok(()),
        }
    }

    /// The image crate's form, for what a decoder allocates for itself.
    pub(super) fn of_image(&self) -> image::Limits {
        let mut limits = image::Limits::no_limits();
        limits.max_alloc = Some(self.bytes_max);
        limits
    }
}

/// How many pixels one byte of a file can stand for at most: a tiny file with a huge header is found so, before anything
/// is allocated. WebP and JPEG XL can code a plain area in no bytes at all, and so can run lengths in BMP and fax codes in
/// TIFF: there only the other limits hold.
fn pixels_a_byte(format: Format) -> Option<u64> {
    match format {
        // Deflate: 258 bytes from two bits; eight pixels in each.
        Format::Png => Some(1032 * 8),
        // At least one bit for each block of 8 x 8; where components share the resolution, half as many blocks.
        Format::Jpeg => Some(8 * 64 * 2),
        // A code of at least three bits stands for at most 4096 pixels.
        Format::Gif => Some(4096 * 8 / 3),
        Format::Pnm => Some(8),
        Format::Qoi => Some(62),
        Format::Jxl | Format::WebP | Format::Tiff | Format::Bmp => None,
    }
}
