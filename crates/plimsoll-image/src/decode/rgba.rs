//! From a raster in sRGB to red, green, blue and alpha, upright: for images that are laid over others.
//! Sixteen bits hold samples of both depths exactly.

use image::metadata::Orientation;

use crate::Size;

use super::compose::{Sample, stored_place, upright};
use super::error::DecodeError;
use super::raster::{Channels, Depth, Facts, Raster, zeroed};

/// Bytes of a pixel.
const PIXEL_BYTES: u64 = 8;

/// Passes an image if its samples, in the file's form and in this one, keep to the limit.
pub(super) fn check(facts: &Facts, bytes_max: u64) -> Result<(), DecodeError> {
    let stored = facts.channels.count() as u64 * if facts.bits > 8 { 2 } else { 1 };
    let needed = facts.size.pixels() * (stored + PIXEL_BYTES);
    match needed > bytes_max {
        true => Err(DecodeError::TooLarge { size: facts.size, needed, allowed: bytes_max }),
        false => Ok(()),
    }
}

/// The size of the image and its pixels.
pub(super) fn pixels(raster: &Raster, to: Orientation) -> Result<(Size, Vec<[u16; 4]>), DecodeError> {
    let size = upright(raster.size, to);
    let mut pixels = zeroed(size.pixels() as usize)?;
    match &raster.samples {
        Depth::Eight(samples) => fill(samples, raster, to, size, &mut pixels),
        Depth::Sixteen(samples) => fill(samples, raster, to, size, &mut pixels),
    }
    Ok((size, pixels))
}

fn fill<T: Sample>(samples: &[T], raster: &Raster, to: Orientation, size: Size, pixels: &mut [[u16; 4]]) {
    let places = (0..size.height).flat_map(|y| (0..size.width).map(move |x| (x, y)));
    for (pixel, (x, y)) in pixels.iter_mut().zip(places) {
        let (x, y) = stored_place(raster.size, to, x, y);
        let at = (y as usize * raster.size.width as usize + x as usize) * raster.channels.count();
        let sample = |channel: usize| (samples[at + channel].number() * (u32::from(u16::MAX) / T::FULL)) as u16;
        *pixel = match raster.channels {
            Channels::Grey => [sample(0), sample(0), sample(0), u16::MAX],
            Channels::GreyAlpha => [sample(0), sample(0), sample(0), sample(1)],
            Channels::Rgb => [sample(0), sample(1), sample(2), u16::MAX],
            Channels::Rgba => [sample(0), sample(1), sample(2), sample(3)],
        };
    }
}
