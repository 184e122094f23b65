//! Why a file gave no image. Variants are named, and messages written, by what to do next.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use crate::{MakeImageError, Size};

use super::format::Format;

/// Why a file gave no image, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The file cannot be read: check the path and its rights.
    #[error("{}: cannot be read ({reason})", path.display())]
    Unreadable {
        /// The file, or folder.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// A pipe, a socket or a device, which may have no end: save what it gives to a file.
    #[error("{}: a pipe or a device, not a file; save what it gives to a file first", path.display())]
    NoFile {
        /// What was given.
        path: PathBuf,
    },
    /// The file is longer than any image that is taken.
    #[error("{}: longer than the {max} bytes that are read at most", path.display(), max = super::FILE_BYTES_MAX)]
    FileTooLarge {
        /// The file.
        path: PathBuf,
    },
    /// There are no bytes: make the file again.
    #[error("the file is empty")]
    Empty,
    /// Not an image that is known: give another file, or convert it.
    #[error("not an image of a known format (PNG, JPEG, JPEG XL, WebP, TIFF, GIF, BMP, PNM, QOI)")]
    Unrecognised,
    /// An image, but of a format that is not read: convert it to PNG.
    #[error("{name} files are not read; convert to PNG first: {}", convert(name))]
    ConvertFirst {
        /// The format.
        name: &'static str,
    },
    /// Of a format that is read, but with a feature that is not: convert it to a plain PNG.
    #[error("this {format} file is not read ({feature}); convert it to an 8- or 16-bit PNG first")]
    Unsupported {
        /// How the file is coded.
        format: Format,
        /// What is not read.
        feature: String,
    },
    /// More than one frame: extract the frame that counts.
    #[error("this {format} file is animated; extract one frame first: ffmpeg -i FILE -frames:v 1 frame.png")]
    Animated {
        /// How the file is coded.
        format: Format,
    },
    /// The colours cannot be converted to sRGB: convert the file with a colour-managed program, or ignore profiles.
    #[error("the colours cannot be converted to sRGB ({reason}); convert the file to sRGB first, or ignore profiles")]
    Colour {
        /// What stands in the way.
        reason: String,
    },
    /// Made for HDR: map its tones to those of a page.
    #[error("this file is made for HDR, with the transfer curve {curve}; map its tones to SDR first: {command}")]
    MadeForHdr {
        /// Its transfer curve.
        curve: &'static str,
        /// What does that.
        command: &'static str,
    },
    /// Larger than the limits: scale it down, crop it, or raise `bytes_max`.
    #[error("an image of {size} would need {needed} bytes where {allowed} are allowed; crop it or raise the limit")]
    TooLarge {
        /// Its size.
        size: Size,
        /// The bytes that its samples need.
        needed: u64,
        /// The bytes that were allowed.
        allowed: u64,
    },
    /// Not an image that can be held: no pixels, or too many.
    #[error(transparent)]
    Refused(#[from] MakeImageError),
    /// The system has no memory left: free some, or read fewer images at once.
    #[error("no memory for {bytes} bytes; free some, or load fewer images at once")]
    OutOfMemory {
        /// What was asked for.
        bytes: u64,
    },
    /// The file ends too early: copy or fetch it again.
    #[error("this {format} file ends too early; copy or fetch it again")]
    Truncated {
        /// How the file is coded.
        format: Format,
    },
    /// The data make no sense: encode the file again.
    #[error("this {format} file is damaged ({reason}); encode or fetch it again")]
    Damaged {
        /// How the file is coded.
        format: Format,
        /// What the decoder said.
        reason: String,
    },
}

fn convert(name: &str) -> &'static str {
    match name {
        "AVIF" => "avifdec --depth 16 FILE out.png, or ffmpeg -i FILE -pix_fmt rgb48 out.png",
        "HEIC" => "heif-convert FILE out.png, or ffmpeg -i FILE out.png",
        // Its samples are light; what is brighter than white is cut off.
        "OpenEXR" => "ffmpeg -apply_trc iec61966_2_1 -i FILE -pix_fmt rgb48 out.png",
        _ => "magick FILE out.png",
    }
}

impl DecodeError {
    /// Whether its message says which file it is about.
    pub fn names_file(&self) -> bool {
        matches!(self, Self::Unreadable { .. } | Self::NoFile { .. } | Self::FileTooLarge { .. })
    }

    /// An error of the image crate.
    pub(super) fn of_image(format: Format, size: Size, error: &image::ImageError) -> Self {
        match error {
            image::ImageError::Unsupported(what) => Self::Unsupported { format, feature: what.to_string() },
            image::ImageError::Limits(_) => Self::over_the_limit(format, size),
            error => Self::of_decoder(format, error),
        }
    }

    /// Any error of a decoder: an end of the data is told apart from nonsense.
    pub(super) fn of_decoder(format: Format, error: &(dyn Error + 'static)) -> Self {
        let mut chain = std::iter::successors(Some(error), |&error| error.source());
        let ended = |error: &(dyn Error + 'static)| {
            error.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof)
        };
        match chain.any(ended) {
            true => Self::Truncated { format },
            false => Self::Damaged { format, reason: error.to_string() },
        }
    }

    /// A decoder wanted more memory for itself than it was given.
    pub(super) fn over_the_limit(format: Format, size: Size) -> Self {
        let feature = format!("its {size} pixels need more memory than the limit for one image");
        Self::Unsupported { format, feature }
    }
}
