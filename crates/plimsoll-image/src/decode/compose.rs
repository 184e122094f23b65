//! From a raster in sRGB to an [`Image`]: grey is spread to three channels, transparency filled, the image turned upright.

use image::metadata::Orientation;

use crate::{Image, Size};

use super::background::Background;
use super::colour::tripled;
use super::error::DecodeError;
use super::raster::{Channels, Depth, Raster, reserved};

/// How an image with these EXIF data is to be turned. Some writers put the name of the data before them.
pub(super) fn orientation(exif: Option<&[u8]>) -> Orientation {
    let exif = exif.map(|exif| exif.strip_prefix(b"Exif\0\0").unwrap_or(exif));
    exif.and_then(Orientation::from_exif_chunk).unwrap_or(Orientation::NoTransforms)
}

/// The size of the image once it is turned.
pub(super) fn upright(size: Size, orientation: Orientation) -> Size {
    match orientation {
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH => {
            Size { width: size.height, height: size.width }
        }
        _ => size,
    }
}

/// The image, without transparency and upright.
pub(super) fn image(raster: Raster, background: Background, to: Orientation) -> Result<Image, DecodeError> {
    let size = upright(raster.size, to);
    let image = match raster.samples {
        Depth::Eight(samples) => {
            let samples = opaque(samples, raster.channels, background.channels())?;
            Image::rgb8(size, turned(samples, raster.size, to)?)
        }
        Depth::Sixteen(samples) => {
            let background = background.channels().map(|channel| u16::from(channel) * 257);
            let samples = opaque(samples, raster.channels, background)?;
            Image::rgb16(size, turned(samples, raster.size, to)?)
        }
    };
    Ok(image?)
}

/// A sample of either depth.
pub(super) trait Sample: Copy {
    /// What stands for 1.
    const FULL: u32;
    fn number(self) -> u32;
    /// Of a number up to [`Sample::FULL`].
    fn of(number: u32) -> Self;
}

impl Sample for u8 {
    const FULL: u32 = 255;
    fn number(self) -> u32 {
        self.into()
    }
    fn of(number: u32) -> Self {
        number as u8
    }
}

impl Sample for u16 {
    const FULL: u32 = 65535;
    fn number(self) -> u32 {
        self.into()
    }
    fn of(number: u32) -> Self {
        number as u16
    }
}

fn opaque<T: Sample>(samples: Vec<T>, channels: Channels, background: [T; 3]) -> Result<Vec<T>, DecodeError> {
    if channels == Channels::Rgb {
        return Ok(samples);
    }
    let mut pixels = reserved(samples.len() / channels.count() * 3)?;
    match channels {
        Channels::Rgb => {}
        Channels::Grey => return tripled(&samples),
        Channels::GreyAlpha => {
            let (stored, _) = samples.as_chunks::<2>();
            pixels.extend(stored.iter().flat_map(|&[grey, alpha]| over([grey; 3], alpha, background)));
        }
        Channels::Rgba => {
            let (stored, _) = samples.as_chunks::<4>();
            let colours = stored.iter().map(|&[red, green, blue, alpha]| ([red, green, blue], alpha));
            pixels.extend(colours.flat_map(|(colour, alpha)| over(colour, alpha, background)));
        }
    }
    Ok(pixels)
}

/// One pixel over the background, rounded to nearest. The sum stays below 2^32 for 16 bits too.
fn over<T: Sample>(pixel: [T; 3], alpha: T, background: [T; 3]) -> [T; 3] {
    let alpha = alpha.number();
    let mix = |above: T, below: T| {
        T::of((above.number() * alpha + below.number() * (T::FULL - alpha) + T::FULL / 2) / T::FULL)
    };
    std::array::from_fn(|channel| mix(pixel[channel], background[channel]))
}

/// Where a pixel of the upright image is stored.
pub(super) fn stored_place(stored: Size, to: Orientation, x: u32, y: u32) -> (u32, u32) {
    let (right, bottom) = (stored.width - 1, stored.height - 1);
    match to {
        Orientation::NoTransforms => (x, y),
        Orientation::FlipHorizontal => (right - x, y),
        Orientation::Rotate180 => (right - x, bottom - y),
        Orientation::FlipVertical => (x, bottom - y),
        Orientation::Rotate90FlipH => (y, x),
        Orientation::Rotate90 => (y, bottom - x),
        Orientation::Rotate270FlipH => (right - y, bottom - x),
        Orientation::Rotate270 => (right - y, x),
    }
}

/// Turns an image of three samples a pixel.
fn turned<T: Copy>(samples: Vec<T>, stored: Size, to: Orientation) -> Result<Vec<T>, DecodeError> {
    if to == Orientation::NoTransforms {
        return Ok(samples);
    }
    let size = upright(stored, to);
    let mut turned = reserved(samples.len())?;
    for y in 0..size.height {
        for x in 0..size.width {
            let (x, y) = stored_place(stored, to, x, y);
            let at = (y as usize * stored.width as usize + x as usize) * 3;
            turned.extend_from_slice(&samples[at..at + 3]);
        }
    }
    Ok(turned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_black_over_white_is_grey() {
        assert_eq!(over([0_u8; 3], 128, [255; 3]), [127; 3]);
        assert_eq!(over([0_u16; 3], 65535, [65535; 3]), [0; 3]);
        assert_eq!(over([65535_u16; 3], 32768, [65535; 3]), [65535; 3]);
        assert_eq!(over([10_u8, 20, 30], 0, [1, 2, 3]), [1, 2, 3]);
    }
}
