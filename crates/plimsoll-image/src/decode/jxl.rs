//! JPEG XL, bare or in a container, on the calling thread. The decoder turns the image upright itself, and gives sRGB
//! directly where the file describes its colours by name or codes them as XYB.

use image::metadata::Orientation;
use jxl_oxide::color::{ColourEncoding, ColourSpace, TransferFunction};
use jxl_oxide::image::BitDepth;
use jxl_oxide::{
    AllocTracker, EnumColourEncoding, HdrType, InitializeResult, JxlImage, JxlThreadPool, PixelFormat, RenderingIntent,
};

use crate::Size;

use super::colour::{Colour, Profiles};
use super::error::DecodeError;
use super::format::Format;
use super::hdr::HdrCurve;
use super::limits::Limits;
use super::raster::{Channels, Depth, Facts, Opened, Raster, zeroed};

/// Bytes that are given to the decoder while it looks for the header.
const HEADER_STEP: usize = 4096;

pub(super) fn open(bytes: &[u8], limits: Limits, profiles: Profiles) -> Result<Opened<'_>, DecodeError> {
    let (mut image, rest) = begin(bytes, limits)?;
    let size = Size { width: image.width(), height: image.height() };
    let metadata = &image.image_header().metadata;
    let BitDepth::IntegerSample { bits_per_sample: bits @ 1..=16 } = metadata.bit_depth else {
        return Err(unsupported("samples that are floats, or of more than 16 bits"));
    };
    if metadata.animation.is_some() {
        return Err(DecodeError::Animated { format: Format::Jxl });
    }
    if metadata.ec_info.iter().any(|channel| channel.alpha_associated() == Some(true)) {
        return Err(unsupported("colours are multiplied with alpha"));
    }
    let xyb = metadata.xyb_encoded;
    let srgb = is_srgb(&metadata.colour_encoding);
    let channels = match image.pixel_format() {
        PixelFormat::Gray => Channels::Grey,
        PixelFormat::Graya => Channels::GreyAlpha,
        PixelFormat::Rgb => Channels::Rgb,
        PixelFormat::Rgba => Channels::Rgba,
        PixelFormat::Cmyk | PixelFormat::Cmyka => return Err(unsupported("CMYK, the colours of inks")),
    };
    limits.check(size, channels, bits as u8)?;
    let hdr = image.hdr_type().map(|curve| match curve {
        HdrType::Pq => HdrCurve::Pq,
        HdrType::Hlg => HdrCurve::Hlg,
    });
    let colour = match (hdr, image.original_icc()) {
        (Some(curve), _) => Colour::Hdr(curve),
        (None, Some(icc)) if !xyb => Colour::Icc(icc.to_vec()),
        // Asked for what it already gives, the decoder would convert to light and back, and lose the last bits.
        _ if srgb || profiles == Profiles::Ignore => Colour::Srgb,
        _ => {
            image.request_color_encoding(match channels.grey() {
                true => EnumColourEncoding::gray_srgb(RenderingIntent::Relative),
                false => EnumColourEncoding::srgb(RenderingIntent::Relative),
            });
            Colour::Converted
        }
    };
    let facts = Facts { size, bits: bits as u8, channels, colour, orientation: Orientation::NoTransforms };
    Ok(Opened { facts, pixels: Box::new(move || pixels(image, rest, size, channels, bits > 8)) })
}

/// The size in the header, and whether samples have more than eight bits.
pub(super) fn stored_size(bytes: &[u8]) -> Result<(Size, bool), DecodeError> {
    let limits = Limits { format: Format::Jxl, file: bytes.len() as u64, bytes_max: u64::MAX };
    let (image, _) = begin(bytes, limits)?;
    let wide = image.image_header().metadata.bit_depth.bits_per_sample() > 8;
    Ok((Size { width: image.width(), height: image.height() }, wide))
}

/// Whether samples are sRGB, or grey with its curve.
fn is_srgb(encoding: &ColourEncoding) -> bool {
    match encoding {
        ColourEncoding::Enum(EnumColourEncoding { colour_space: ColourSpace::Grey, tf, .. }) => {
            matches!(tf, TransferFunction::Srgb)
        }
        encoding => encoding.is_srgb(),
    }
}

/// Feeds the decoder until it knows the header; the bytes that it did not take come back.
fn begin(bytes: &[u8], limits: Limits) -> Result<(JxlImage, &[u8]), DecodeError> {
    let memory = usize::try_from(limits.bytes_max).unwrap_or(usize::MAX);
    let builder = JxlImage::builder().pool(JxlThreadPool::none()).alloc_tracker(AllocTracker::with_limit(memory));
    let mut waiting = builder.build_uninit();
    let mut rest = bytes;
    let mut step = HEADER_STEP;
    loop {
        let part = &rest[..step.min(rest.len())];
        let taken = waiting.feed_bytes(part).map_err(failed)?;
        let at_the_end = part.len() == rest.len();
        rest = &rest[taken..];
        match waiting.try_init().map_err(failed)? {
            InitializeResult::Initialized(image) => return Ok((image, rest)),
            InitializeResult::NeedMoreData(_) if at_the_end => return Err(truncated()),
            InitializeResult::NeedMoreData(again) => waiting = again,
        }
        // Every try reads from the start again: steps that double keep the sum of them small.
        step *= 2;
    }
}

fn pixels(
    mut image: JxlImage,
    mut rest: &[u8],
    size: Size,
    channels: Channels,
    sixteen: bool,
) -> Result<Raster, DecodeError> {
    while !rest.is_empty() && !image.is_loading_done() {
        match image.feed_bytes(rest).map_err(failed)? {
            0 => break,
            taken => rest = &rest[taken..],
        }
    }
    image.finalize().map_err(failed)?;
    if !image.is_loading_done() || image.num_loaded_keyframes() == 0 {
        return Err(truncated());
    }
    let render = image.render_frame(0).map_err(failed)?;
    let mut stream = render.stream();
    if (stream.width(), stream.height(), stream.channels() as usize) != (size.width, size.height, channels.count()) {
        return Err(damaged("its frame does not fit its header"));
    }
    let count = size.pixels() as usize * channels.count();
    let samples = if sixteen {
        let mut samples = zeroed::<u16>(count)?;
        stream.write_to_buffer(&mut samples);
        Depth::Sixteen(samples)
    } else {
        let mut samples = zeroed::<u8>(count)?;
        stream.write_to_buffer(&mut samples);
        Depth::Eight(samples)
    };
    Ok(Raster { size, channels, samples })
}

fn failed(error: Box<dyn std::error::Error + Send + Sync + 'static>) -> DecodeError {
    DecodeError::of_decoder(Format::Jxl, &*error)
}

fn truncated() -> DecodeError {
    DecodeError::Truncated { format: Format::Jxl }
}

fn unsupported(feature: &str) -> DecodeError {
    DecodeError::Unsupported { format: Format::Jxl, feature: feature.to_owned() }
}

fn damaged(reason: &str) -> DecodeError {
    DecodeError::Damaged { format: Format::Jxl, reason: reason.to_owned() }
}
