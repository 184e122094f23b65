//! TIFF: the first page; grey, RGB and alpha of 8 or 16 bits. Floats and palettes are refused.

use std::io::Cursor;

use ::tiff::decoder::Decoder;
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
    if opened.facts.channels.alpha() && has_associated_alpha(bytes) {
        let feature = "colours are multiplied with alpha".to_owned();
        return Err(DecodeError::Unsupported { format: Format::Tiff, feature });
    }
    if inks {
        opened.facts.colour = Colour::Strange("CMYK, the colours of inks");
    }
    Ok(opened)
}

fn has_associated_alpha(bytes: &[u8]) -> bool {
    let extra = Decoder::new(Cursor::new(bytes)).and_then(|mut tiff| tiff.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples));
    extra.is_ok_and(|extra| extra.is_some_and(|extra| extra.first() == Some(&ASSOCIATED)))
}
