//! The formats that are read, and which crate reads each.
//! Invariant: the versions named here are those of Cargo.lock (`tests/decode/versions.rs`).

use std::fmt;

/// How an image file is coded.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Portable Network Graphics.
    Png,
    /// JPEG (JFIF, EXIF).
    Jpeg,
    /// JPEG XL, bare or in its container.
    Jxl,
    /// WebP, lossy or lossless.
    WebP,
    /// Tagged Image File Format.
    Tiff,
    /// Graphics Interchange Format.
    Gif,
    /// Windows bitmap.
    Bmp,
    /// Portable anymap: PBM, PGM, PPM, PAM.
    Pnm,
    /// Quite OK Image.
    Qoi,
}

impl Format {
    /// Every format that is read.
    pub const ALL: [Self; 9] =
        [Self::Png, Self::Jpeg, Self::Jxl, Self::WebP, Self::Tiff, Self::Gif, Self::Bmp, Self::Pnm, Self::Qoi];

    /// The crate that decodes this format, and its version.
    pub fn decoder(self) -> &'static str {
        match self {
            Self::Png => "png 0.18.1",
            Self::Jpeg => "zune-jpeg 0.5.15",
            Self::Jxl => "jxl-oxide 0.12.6",
            Self::WebP => "image-webp 0.2.4",
            Self::Tiff => "tiff 0.11.3",
            Self::Gif => "gif 0.14.2",
            Self::Bmp | Self::Pnm => "image 0.25.10",
            Self::Qoi => "qoi 0.4.1",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Jxl => "JPEG XL",
            Self::WebP => "WebP",
            Self::Tiff => "TIFF",
            Self::Gif => "GIF",
            Self::Bmp => "BMP",
            Self::Pnm => "PNM",
            Self::Qoi => "QOI",
        })
    }
}
