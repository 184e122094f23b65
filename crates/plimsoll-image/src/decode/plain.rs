//! Formats that the image crate's decoders read as they are: WebP, GIF, BMP, PNM, QOI (and, from `tiff`, TIFF).

use std::io::Cursor;

use image::codecs::bmp::BmpDecoder;
use image::codecs::gif::GifDecoder;
use image::codecs::pnm::PnmDecoder;
use image::codecs::qoi::QoiDecoder;
use image::codecs::webp::WebPDecoder;
use image::{ColorType, ImageDecoder, ImageError};

use crate::Size;

use super::colour::Colour;
use super::compose;
use super::error::DecodeError;
use super::format::Format;
use super::limits::Limits;
use super::profile;
use super::raster::{Channels, Facts, Opened, Raster};

pub(super) fn open_webp(bytes: &[u8], limits: Limits) -> Result<Opened<'_>, DecodeError> {
    let decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(|error| failed(Format::WebP, &error))?;
    match decoder.has_animation() {
        true => Err(DecodeError::Animated { format: Format::WebP }),
        false => open(decoder, limits),
    }
}

pub(super) fn open_gif(bytes: &[u8], limits: Limits) -> Result<Opened<'_>, DecodeError> {
    let decoder = GifDecoder::new(Cursor::new(bytes)).map_err(|error| failed(Format::Gif, &error))?;
    match gif_frames(bytes) {
        Frames::One => open(decoder, limits),
        Frames::More => Err(DecodeError::Animated { format: Format::Gif }),
        Frames::BrokenOff => Err(DecodeError::Truncated { format: Format::Gif }),
    }
}

pub(super) fn open_bmp(bytes: &[u8], limits: Limits) -> Result<Opened<'_>, DecodeError> {
    let decoder = BmpDecoder::new(Cursor::new(bytes)).map_err(|error| failed(Format::Bmp, &error))?;
    open(decoder, limits)
}

pub(super) fn open_pnm(bytes: &[u8], limits: Limits) -> Result<Opened<'_>, DecodeError> {
    let decoder = PnmDecoder::new(Cursor::new(bytes)).map_err(|error| failed(Format::Pnm, &error))?;
    open(decoder, limits)
}

pub(super) fn open_qoi(bytes: &[u8], limits: Limits) -> Result<Opened<'_>, DecodeError> {
    let decoder = QoiDecoder::new(Cursor::new(bytes)).map_err(|error| failed(Format::Qoi, &error))?;
    let mut opened = open(decoder, limits)?;
    // The last byte of the header: 1 if all channels are linear.
    if bytes.get(13) == Some(&1) {
        opened.facts.colour = Colour::Described(Box::new(profile::of_gamma(Some(1.0), None)));
    }
    Ok(opened)
}

/// Any decoder of the image crate.
pub(super) fn open<'a>(mut decoder: impl ImageDecoder + 'a, limits: Limits) -> Result<Opened<'a>, DecodeError> {
    let format = limits.format;
    let (width, height) = decoder.dimensions();
    let size = Size { width, height };
    let wrong = move |error: ImageError| DecodeError::of_image(format, size, &error);
    let (channels, sixteen) = match decoder.color_type() {
        ColorType::L8 => (Channels::Grey, false),
        ColorType::La8 => (Channels::GreyAlpha, false),
        ColorType::Rgb8 => (Channels::Rgb, false),
        ColorType::Rgba8 => (Channels::Rgba, false),
        ColorType::L16 => (Channels::Grey, true),
        ColorType::La16 => (Channels::GreyAlpha, true),
        ColorType::Rgb16 => (Channels::Rgb, true),
        ColorType::Rgba16 => (Channels::Rgba, true),
        _ => return Err(DecodeError::Unsupported { format, feature: "samples that are floats".to_owned() }),
    };
    let bits = if sixteen { 16 } else { 8 };
    limits.check(size, channels, bits)?;
    decoder.set_limits(limits.of_image()).map_err(wrong)?;
    let colour = Colour::of_icc(decoder.icc_profile().map_err(wrong)?);
    let orientation = match decoder.exif_metadata().map_err(wrong)? {
        Some(exif) => compose::orientation(Some(&exif)),
        None => decoder.orientation().map_err(wrong)?,
    };
    let facts = Facts { size, bits, channels, colour, orientation };
    let pixels = move || Raster::read(size, channels, sixteen, |samples| decoder.read_image(samples).map_err(wrong));
    Ok(Opened { facts, pixels: Box::new(pixels) })
}

/// An error before the size is known.
pub(super) fn failed(format: Format, error: &ImageError) -> DecodeError {
    DecodeError::of_image(format, Size { width: 0, height: 0 }, error)
}

/// How many images a GIF holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Frames {
    One,
    More,
    /// The data end before the first image does.
    BrokenOff,
}

/// Walks the blocks of a GIF.
fn gif_frames(bytes: &[u8]) -> Frames {
    let mut frames = 0;
    let mut rest = bytes.get(10).and_then(|&flags| bytes.get(13 + table_bytes(flags)..));
    while let Some([kind, block @ ..]) = rest {
        rest = match kind {
            0x21 => block.get(1..).and_then(after_sub_blocks),
            0x2c if frames == 1 => return Frames::More,
            0x2c => {
                let data = block.get(8).and_then(|&flags| block.get(10 + table_bytes(flags)..));
                let after = data.and_then(after_sub_blocks);
                frames += usize::from(after.is_some());
                after
            }
            _ => None,
        };
    }
    if frames == 1 { Frames::One } else { Frames::BrokenOff }
}

fn table_bytes(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

fn after_sub_blocks(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        match rest.split_first()? {
            (0, after) => return Some(after),
            (&length, after) => rest = after.get(usize::from(length)..)?,
        }
    }
}
