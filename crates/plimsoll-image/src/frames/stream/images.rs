//! Frames from image files, and back: what a sequence of images is made of.
//! Never numbers or lists files. Invariant: a name holds a whole file, or what it held before.

use std::path::{Path, PathBuf};

use crate::decode::{self, Background, DecodeError, DecodeOptions};
use crate::encode::{self, EncodeError, JpegQuality};
use crate::frames::frame::{Frame, MakeFrameError};

/// Why an image file gave no frame, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadImageError {
    /// The file cannot be read; the cause names it.
    #[error(transparent)]
    File(DecodeError),
    /// The file gives no image.
    #[error("{}: {cause}", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: DecodeError,
    },
    /// The image gives no frame.
    #[error("{}: {cause}", path.display())]
    Frame {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: MakeFrameError,
    },
}

/// The frame in an image file: RGB of 8 bits, or of 16 for files that hold more, as sRGB and upright, on white where it
/// is transparent ([`decode`](mod@crate::decode) has the limits and the details).
///
/// # Errors
/// [`ReadImageError`], which names the file.
pub fn read_image(path: &Path) -> Result<Frame, ReadImageError> {
    let bytes = decode::read(path).map_err(ReadImageError::File)?;
    let decoded = decode::decode(&bytes, &DecodeOptions::default());
    let decoded = decoded.map_err(|cause| ReadImageError::Decode { path: path.to_owned(), cause })?;
    drop(bytes);
    Frame::from_image(&decoded.image).map_err(|cause| ReadImageError::Frame { path: path.to_owned(), cause })
}

/// Whether an image file is transparent in places, so that the frame that was read of it is not all of it.
pub fn is_transparent(path: &Path, on_white: &Frame) -> bool {
    let black = DecodeOptions { background: Background::BLACK, ..DecodeOptions::default() };
    let on_black = decode::read(path).ok().and_then(|bytes| decode::decode(&bytes, &black).ok());
    on_black.and_then(|decoded| Frame::from_image(&decoded.image).ok()).is_some_and(|on_black| on_black != *on_white)
}

/// Writes a frame as an image file, coded as the name's ending says: PNG, PPM, TIFF, WebP, QOI, BMP, or JPEG of this
/// quality.
///
/// # Errors
/// [`EncodeError`], among them [`MakeFrameError::NoImage`] for frames that are not RGB of 8 or 16 bits.
pub fn write_image(path: &Path, frame: &Frame, quality: JpegQuality) -> Result<(), EncodeError> {
    encode::write(path, frame, quality)
}
