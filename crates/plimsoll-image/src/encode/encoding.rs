//! The formats that are written, and which names ask for them.

use std::fmt;
use std::path::Path;

use super::error::EncodeError;

/// How an image file is coded. All but JPEG keep every sample.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// Portable Network Graphics.
    Png,
    /// Portable pixmap: samples as they are.
    Ppm,
    /// Tagged Image File Format, uncompressed.
    Tiff,
    /// WebP, lossless.
    WebP,
    /// Quite OK Image.
    Qoi,
    /// Windows bitmap.
    Bmp,
    /// JPEG, at a high quality.
    Jpeg,
}

impl Encoding {
    /// Every format that is written.
    pub const ALL: [Self; 7] = [Self::Png, Self::Ppm, Self::Tiff, Self::WebP, Self::Qoi, Self::Bmp, Self::Jpeg];

    /// What the ending of a file's name asks for.
    ///
    /// # Errors
    /// [`EncodeError::Ending`] if it has none that is known.
    pub fn of_path(path: &Path) -> Result<Self, EncodeError> {
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        let known = Self::ALL.into_iter().find(|encoding| encoding.endings().iter().any(|known| ending == **known));
        known.ok_or_else(|| EncodeError::Ending(path.to_owned()))
    }

    /// Endings of names, in small letters; the usual one first.
    pub fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Png => &["png"],
            Self::Ppm => &["ppm", "pnm"],
            Self::Tiff => &["tiff", "tif"],
            Self::WebP => &["webp"],
            Self::Qoi => &["qoi"],
            Self::Bmp => &["bmp"],
            Self::Jpeg => &["jpg", "jpeg"],
        }
    }

    /// Whether samples may have 16 bits.
    pub fn holds_16_bits(self) -> bool {
        matches!(self, Self::Png | Self::Ppm | Self::Tiff)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Png => "PNG",
            Self::Ppm => "PPM",
            Self::Tiff => "TIFF",
            Self::WebP => "WebP",
            Self::Qoi => "QOI",
            Self::Bmp => "BMP",
            Self::Jpeg => "JPEG",
        })
    }
}
