//! JPEG: baseline and progressive, 8 bits, grey and colour. Read strictly: a file that ends early, holds markers where none
//! belong, or lacks data in its middle (`complete`) is refused, where a lenient decoder would fill in grey and a metric would
//! score the filling.

mod bits;
mod complete;

use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::Size;

use self::bits::Fault;
use super::colour::Colour;
use super::compose;
use super::error::DecodeError;
use super::format::Format;
use super::limits::Limits;
use super::raster::{Channels, Facts, Opened, Raster};

/// Sides are 16 bits in the file.
const SIDE_MAX: usize = u16::MAX as usize;

pub(super) fn open(bytes: &[u8], limits: Limits) -> Result<Opened<'_>, DecodeError> {
    let segments = Segments::of(bytes);
    if !segments.ends {
        return Err(DecodeError::Truncated { format: Format::Jpeg });
    }
    let options = DecoderOptions::default().set_strict_mode(true).set_max_width(SIDE_MAX).set_max_height(SIDE_MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| failed(&error))?;
    let (info, space) = decoder.info().zip(decoder.input_colorspace()).ok_or_else(|| damaged("no header"))?;
    let size = Size { width: info.width.into(), height: info.height.into() };
    let (channels, output) = match space {
        ColorSpace::Luma => (Channels::Grey, ColorSpace::Luma),
        ColorSpace::RGB | ColorSpace::YCbCr | ColorSpace::CMYK | ColorSpace::YCCK => (Channels::Rgb, ColorSpace::RGB),
        other => {
            let feature = format!("colours are stored as {other:?}");
            return Err(DecodeError::Unsupported { format: Format::Jpeg, feature });
        }
    };
    limits.check(size, channels, 8)?;
    decoder.set_options(options.jpeg_set_out_colorspace(output));
    let colour = match decoder.icc_profile() {
        _ if matches!(space, ColorSpace::CMYK | ColorSpace::YCCK) => Colour::Strange("CMYK, the colours of inks"),
        None if segments.profile => Colour::Strange("a broken ICC profile"),
        profile => Colour::of_icc(profile),
    };
    let orientation = compose::orientation(decoder.exif().map(Vec::as_slice));
    let facts = Facts { size, bits: 8, channels, colour, orientation };
    let pixels = move || {
        complete::check(bytes).map_err(|fault| match fault {
            Fault::Short => DecodeError::Truncated { format: Format::Jpeg },
            Fault::Nonsense => damaged("a code that stands for nothing"),
        })?;
        Raster::read(size, channels, false, |samples| match decoder.output_buffer_size() {
            Some(length) if length == samples.len() => decoder.decode_into(samples).map_err(|error| failed(&error)),
            _ => Err(damaged("its parts do not fit together")),
        })
    };
    Ok(Opened { facts, pixels: Box::new(pixels) })
}

/// What the chain of segments tells.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Segments {
    /// There is an ICC profile, readable or not.
    profile: bool,
    /// There is an end marker after the first scan. Thumbnails have one too, so the search starts there.
    ends: bool,
}

impl Segments {
    fn of(bytes: &[u8]) -> Self {
        let mut found = Self::default();
        let mut rest = bytes.get(2..).unwrap_or_default();
        while let [0xff, marker, after @ ..] = rest {
            match (marker, after) {
                (0xff, _) => rest = &rest[1..],
                (0xda, scan) => {
                    found.ends = scan.windows(2).rev().any(|pair| pair == [0xff, 0xd9]);
                    return found;
                }
                (_, [high, low, segment @ ..]) => {
                    found.profile |= *marker == 0xe2 && segment.starts_with(b"ICC_PROFILE\0");
                    let length = usize::from(u16::from_be_bytes([*high, *low]));
                    rest = after.get(length..).unwrap_or_default();
                }
                _ => return found,
            }
        }
        // Something stands between the segments: the strict decoder says what, so here the end is not judged.
        Self { ends: !rest.is_empty(), ..found }
    }
}

fn failed(error: &DecodeErrors) -> DecodeError {
    match error {
        DecodeErrors::ExhaustedData | DecodeErrors::IoErrors(_) => DecodeError::Truncated { format: Format::Jpeg },
        DecodeErrors::Unsupported(scheme) => {
            DecodeError::Unsupported { format: Format::Jpeg, feature: format!("{scheme:?}") }
        }
        // The messages of the crate span lines.
        error => damaged(&format!("{error:?}").replace('\n', " ")),
    }
}

fn damaged(reason: &str) -> DecodeError {
    DecodeError::Damaged { format: Format::Jpeg, reason: reason.to_owned() }
}
