//! PNG: depths of 1 to 16 bits, palettes, transparency; colours by cICP, iCCP, sRGB, gAMA and cHRM, in that order.

use std::io::Cursor;

use ::png::{BitDepth, ColorType, Decoder, DecodingError, Info, Limits as PngLimits, Reader, Transformations};

use crate::Size;

use super::colour::Colour;
use super::compose;
use super::error::DecodeError;
use super::format::Format;
use super::hdr::HdrCurve;
use super::limits::Limits;
use super::profile::{self, Corners};
use super::raster::{Channels, Facts, Opened, Raster};

/// The gAMA of sRGB, in hundred thousandths, and how far from it still means sRGB: writers round 1/2.2 differently.
const SRGB_GAMMA: u32 = 45_455;
const SRGB_GAMMA_TOLERANCE: u32 = 100;

pub(super) fn open(bytes: &[u8], limits: Limits) -> Result<Opened<'_>, DecodeError> {
    let memory = usize::try_from(limits.bytes_max).unwrap_or(usize::MAX);
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), PngLimits { bytes: memory });
    decoder.set_ignore_text_chunk(true);
    decoder.set_transformations(Transformations::EXPAND);
    let info = decoder.read_header_info().map_err(|error| failed(Size { width: 0, height: 0 }, &error))?;
    let size = Size { width: info.width, height: info.height };
    let bits = info.bit_depth as u8;
    limits.check(size, Channels::Rgba, bits)?;
    let reader = decoder.read_info().map_err(|error| failed(size, &error))?;
    let info = reader.info();
    if info.animation_control.is_some_and(|animation| animation.num_frames > 1) {
        return Err(DecodeError::Animated { format: Format::Png });
    }
    let (colour_type, depth) = reader.output_color_type();
    let channels = match colour_type {
        ColorType::Grayscale => Channels::Grey,
        ColorType::GrayscaleAlpha => Channels::GreyAlpha,
        ColorType::Rgb | ColorType::Indexed => Channels::Rgb,
        ColorType::Rgba => Channels::Rgba,
    };
    let orientation = compose::orientation(info.exif_metadata.as_deref());
    let facts = Facts { size, bits, channels, colour: colour(info, bytes), orientation };
    let sixteen = depth == BitDepth::Sixteen;
    Ok(Opened { facts, pixels: Box::new(move || pixels(reader, size, channels, sixteen)) })
}

fn pixels(
    mut reader: Reader<Cursor<&[u8]>>,
    size: Size,
    channels: Channels,
    sixteen: bool,
) -> Result<Raster, DecodeError> {
    Raster::read(size, channels, sixteen, |samples| {
        if reader.output_buffer_size() != Some(samples.len()) {
            let reason = "a palette image without a palette".to_owned();
            return Err(DecodeError::Damaged { format: Format::Png, reason });
        }
        reader.next_frame(samples).map_err(|error| failed(size, &error))?;
        if sixteen {
            samples.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| *pair = u16::from_be_bytes(*pair).to_ne_bytes());
        }
        Ok(())
    })
}

fn colour(info: &Info<'_>, bytes: &[u8]) -> Colour {
    if let Some(points) = info.coding_independent_code_points {
        if let Some(curve) = HdrCurve::of_code_point(points.transfer_function) {
            return Colour::Hdr(curve);
        }
        return match profile::of_code_points(points.color_primaries, points.transfer_function) {
            _ if !points.is_video_full_range_image => Colour::Strange("samples of narrow range"),
            Some(profile) => Colour::Described(Box::new(profile)),
            None => Colour::Strange("code points (cICP) that are not known"),
        };
    }
    match &info.icc_profile {
        Some(icc) => return Colour::Icc(icc.to_vec()),
        None if has_profile(bytes) => return Colour::Strange("a broken ICC profile"),
        None if info.srgb.is_some() => return Colour::Srgb,
        None => {}
    }
    let gamma = info.gama_chunk.map(|gamma| gamma.into_scaled());
    let gamma = gamma.filter(|gamma| gamma.abs_diff(SRGB_GAMMA) > SRGB_GAMMA_TOLERANCE);
    let corners: Option<Corners> = info.chrm_chunk.map(|chroma| {
        [chroma.white, chroma.red, chroma.green, chroma.blue].map(|(x, y)| (x.into_value(), y.into_value()))
    });
    match (gamma, corners) {
        (None, None) => Colour::Srgb,
        (_, Some(corners)) if corners.iter().any(|&(_, y)| y <= 0.0) => Colour::Strange("a cHRM that is no colour"),
        (gamma, corners) => {
            Colour::Described(Box::new(profile::of_gamma(gamma.map(|gamma| 1e5 / gamma as f32), corners)))
        }
    }
}

/// Whether there is an iCCP chunk before the pixels: the decoder passes over one that it cannot read.
fn has_profile(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(8..).unwrap_or_default();
    while let Some((&[a, b, c, d], after)) = rest.split_first_chunk::<4>() {
        let skip = (u32::from_be_bytes([a, b, c, d]) as usize).saturating_add(8);
        match after.first_chunk::<4>() {
            Some(b"iCCP") => return true,
            Some(b"IDAT") | None => return false,
            Some(_) => rest = after.get(skip..).unwrap_or_default(),
        }
    }
    false
}

fn failed(size: Size, error: &DecodingError) -> DecodeError {
    match error {
        DecodingError::LimitsExceeded => DecodeError::over_the_limit(Format::Png, size),
        error => DecodeError::of_decoder(Format::Png, error),
    }
}
