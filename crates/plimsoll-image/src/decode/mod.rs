//! From the bytes of an image file to an [`Image`]: what the file means on a screen, as sRGB.
//! Never looks at file names, never guesses around damage, never starts a thread.
//! Invariant: nothing is allocated for pixels before the size in the header has passed the limits.
//!
//! What is decided here, so that two files of one picture give the same samples:
//!
//! - **Format**: found from the content. Files with several frames are refused ([`DecodeError::Animated`]); of a TIFF
//!   with several pages, the first is read.
//! - **Depth**: up to 8 bits become [`SampleKind::Rgb8`](crate::SampleKind::Rgb8), 9 to 16 bits
//!   [`Rgb16`](crate::SampleKind::Rgb16). Floats are refused: files seldom say what their 1.0 stands for.
//! - **Colour**: embedded profiles (ICC; in PNG also cICP, gAMA and cHRM; in QOI its linear flag) are converted to sRGB.
//!   What describes sRGB is left alone, bit for bit; a PNG with a gAMA of 1/2.2 counts as sRGB, as in browsers. What
//!   cannot be honoured (CMYK, PQ, HLG, a broken profile) is refused, unless profiles are ignored ([`Profiles`]).
//! - **Alpha**: laid on a [`Background`] in the coded (sRGB) space, as browsers do.
//! - **Orientation**: that of EXIF, TIFF and JPEG XL is applied: the image is upright.
//! - **Damage**: a truncated or corrupt file is refused; other programs show the part that can be read, and a score of
//!   that would mislead.
//!
//! ```
//! use plimsoll_image::decode::{self, DecodeError, DecodeOptions};
//! let pixmap = b"P6 1 1 255 \xff\x80\x00";
//! let decoded = decode::decode(pixmap, &DecodeOptions::default())?;
//! assert_eq!(decoded.image.size().to_string(), "1x1");
//! assert!(matches!(decode::decode(b"# Notes", &DecodeOptions::default()), Err(DecodeError::Unrecognised)));
//! # Ok::<(), DecodeError>(())
//! ```

mod background;
mod colour;
mod compose;
mod error;
mod format;
mod hdr;
mod jpeg;
mod jxl;
mod limits;
mod look;
mod plain;
mod png;
mod profile;
mod raster;
mod rgba;
mod sniff;
mod tiff;

use std::io::Read;
use std::path::Path;

use crate::{Image, Size};

pub use background::{Background, BackgroundError};
pub use colour::Profiles;
pub use error::DecodeError;
pub use format::Format;
pub use look::{Outlook, look};

use colour::{Colour, Conversion};
use limits::Limits;
use raster::{Facts, Opened, Raster};

/// How files are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeOptions {
    /// What shows through where an image is transparent.
    pub background: Background,
    /// Whether embedded colour profiles count.
    pub profiles: Profiles,
    /// Bytes that the samples of one image may take while it is read: those of the file, and the image made of them.
    /// Checked from the header.
    pub bytes_max: u64,
}

impl DecodeOptions {
    /// Enough for any image of [`Image::PIXELS_MAX`] pixels: 16 bits and alpha take 3.5 GiB.
    pub const BYTES_MAX: u64 = 4 << 30;
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self { background: Background::WHITE, profiles: Profiles::Honour, bytes_max: Self::BYTES_MAX }
    }
}

/// What the header of a file says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// How the file is coded.
    pub format: Format,
    /// The size of the image, upright.
    pub size: Size,
    /// Bits of a sample in the file.
    pub bits: u8,
    /// Whether pixels may be transparent.
    pub alpha: bool,
}

/// An image, and where it came from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Decoded {
    /// The image, as sRGB.
    pub image: Image,
    /// How the file was coded.
    pub format: Format,
    /// The crate that decoded it, and its version.
    pub decoder: &'static str,
    /// Bits of a sample in the file.
    pub bits: u8,
    /// Whether the file had transparency, which now shows the background.
    pub alpha: bool,
    /// Whether the samples were converted to sRGB from something else.
    pub converted: bool,
}

/// Bytes of one file at most: no format here needs more for [`Image::PIXELS_MAX`] pixels of 16 bits with alpha.
pub const FILE_BYTES_MAX: u64 = 4 << 30;

/// The bytes of a file.
///
/// # Errors
/// [`DecodeError::Unreadable`], also for a folder; [`DecodeError::NoFile`] for a pipe or a device;
/// [`DecodeError::FileTooLarge`].
pub fn read(path: &Path) -> Result<Vec<u8>, DecodeError> {
    let unreadable = |reason| DecodeError::Unreadable { path: path.to_owned(), reason };
    let (file, length) = look::open_plain(path)?;
    let mut bytes = Vec::new();
    let wanted = usize::try_from(length).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(wanted).map_err(|_| DecodeError::OutOfMemory { bytes: length })?;
    // The size that the file system tells is a hint (the file may grow), so the reading itself is bounded.
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    match bytes.len() as u64 {
        too_many if too_many > FILE_BYTES_MAX => Err(DecodeError::FileTooLarge { path: path.to_owned() }),
        _ => Ok(bytes),
    }
}

/// What the header of a file says. Reads no pixels.
///
/// # Errors
/// [`DecodeError`] if the format is not known or the header makes no sense.
pub fn header(bytes: &[u8]) -> Result<Header, DecodeError> {
    let (format, opened) = open(bytes, &DecodeOptions { profiles: Profiles::Ignore, ..DecodeOptions::default() })?;
    let facts = opened.facts;
    let size = compose::upright(facts.size, facts.orientation);
    Ok(Header { format, size, bits: facts.bits, alpha: facts.channels.alpha() })
}

/// The image in the bytes of a file.
///
/// # Errors
/// [`DecodeError`]: which one says what to do next.
pub fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Decoded, DecodeError> {
    let (format, opened) = open(bytes, options)?;
    let (facts, raster, converted) = raster(opened, options.profiles)?;
    let image = compose::image(raster, options.background, facts.orientation)?;
    let (bits, alpha) = (facts.bits, facts.channels.alpha());
    Ok(Decoded { image, format, decoder: format.decoder(), bits, alpha, converted })
}

/// The image in the bytes of a file with its transparency: its size, and red, green, blue and alpha of each pixel as
/// 16-bit sRGB.
///
/// # Errors
/// As [`decode`].
pub(crate) fn rgba(bytes: &[u8], options: &DecodeOptions) -> Result<(Size, Vec<[u16; 4]>), DecodeError> {
    let (_, opened) = open(bytes, options)?;
    rgba::check(&opened.facts, options.bytes_max)?;
    let (facts, raster, _) = raster(opened, options.profiles)?;
    rgba::pixels(&raster, facts.orientation)
}

/// What a header says, the samples in sRGB, and whether they were converted to it.
fn raster(opened: Opened<'_>, profiles: Profiles) -> Result<(Facts, Raster, bool), DecodeError> {
    let Opened { mut facts, pixels } = opened;
    let colour = std::mem::replace(&mut facts.colour, Colour::Srgb);
    let by_the_decoder = matches!(colour, Colour::Converted);
    let conversion = Conversion::plan(colour, facts.channels, profiles)?;
    let raster = pixels()?;
    Ok(match conversion {
        Some(conversion) => (facts, conversion.apply(raster)?, true),
        None => (facts, raster, by_the_decoder),
    })
}

fn open<'a>(bytes: &'a [u8], options: &DecodeOptions) -> Result<(Format, Opened<'a>), DecodeError> {
    let format = sniff::known(bytes)?;
    let limits = Limits { format, file: bytes.len() as u64, bytes_max: options.bytes_max };
    let opened = match format {
        Format::Png => png::open(bytes, limits),
        Format::Jpeg => jpeg::open(bytes, limits),
        Format::Jxl => jxl::open(bytes, limits, options.profiles),
        Format::Tiff => tiff::open(bytes, limits),
        Format::WebP => plain::open_webp(bytes, limits),
        Format::Gif => plain::open_gif(bytes, limits),
        Format::Bmp => plain::open_bmp(bytes, limits),
        Format::Pnm => plain::open_pnm(bytes, limits),
        Format::Qoi => plain::open_qoi(bytes, limits),
    }?;
    Ok((format, opened))
}
