//! TIFF: the first page; grey, RGB and alpha of 8 or 16 bits. Floats and palettes are refused.

use std::io::Cursor;

use ::tiff::TiffResult;
use ::tiff::decoder::Decoder;
use ::tiff::decoder::ifd::Value;
use ::tiff::tags::Tag;
use image::ExtendedColorType;
use image::codecs::tiff::TiffDecoder;

use super::colour::Colour;
use super::error::DecodeError;
use super::format::Format;
use super::limits::Limits;
use super::plain;
use super::raster::Opened;

/// The value of ExtraSamples for colours that were multiplied with alpha.
const ASSOCIATED: u16 = 1;

pub(super) fn open(bytes: &[u8], limits: Limits) -> Result<Opened<'_>, DecodeError> {
    let decoder = TiffDecoder::new(Cursor::new(bytes)).map_err(|error| plain::failed(Format::Tiff, &error))?;
    let inks = matches!(
        image::ImageDecoder::original_color_type(&decoder),
        ExtendedColorType::Cmyk8 | ExtendedColorType::Cmyk16
    );
    let mut opened = plain::open(decoder, limits)?;
    let tags = Tags::of(bytes).map_err(|error| DecodeError::of_decoder(Format::Tiff, &error))?;
    if opened.facts.channels.alpha() && tags.associated_alpha {
        let feature = "colours are multiplied with alpha".to_owned();
        return Err(DecodeError::Unsupported { format: Format::Tiff, feature });
    }
    opened.facts.colour = match tags.profile {
        _ if inks => Colour::Strange("CMYK, the colours of inks"),
        profile => Colour::of_icc(profile),
    };
    Ok(opened)
}

/// What the image crate does not tell, or passes over where it cannot be read.
struct Tags {
    profile: Option<Vec<u8>>,
    /// Colours were multiplied with alpha.
    associated_alpha: bool,
}

impl Tags {
    fn of(bytes: &[u8]) -> TiffResult<Self> {
        let mut tiff = Decoder::new(Cursor::new(bytes))?;
        let profile = tiff.find_tag(Tag::IccProfile)?.map(Value::into_u8_vec).transpose()?;
        let extra = tiff.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples)?.unwrap_or_default();
        Ok(Self { profile, associated_alpha: extra.first() == Some(&ASSOCIATED) })
    }
}
