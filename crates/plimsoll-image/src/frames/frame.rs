//! A frame: samples as they come from a stream and go to one. Cheap to clone; never changes.
//! Never decodes files. Invariant: there are as many bytes as the format says.

use std::fmt;
use std::sync::Arc;

use super::format::{Colour, Format, FormatError};
use super::spare::Spare;
use crate::image::{Image, MakeImageError, Samples};

/// A frame.
///
/// Bytes lie as in a raw stream: `R, G, B, R, G, B, …`, or the whole luma plane and then the two chroma planes, without
/// padding; two bytes a sample, low byte first, above eight bits.
///
/// ```
/// use plimsoll_image::Size;
/// use plimsoll_image::frames::{Colour, Format, Frame};
/// let format = Format::new(Size { width: 2, height: 1 }, 8, Colour::Rgb)?;
/// let frame = Frame::new(format, vec![255, 0, 0, 0, 0, 255])?;
/// assert_eq!(frame.bytes().len(), format.frame_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    format: Format,
    bytes: Arc<Owned>,
}

/// Bytes whose memory other frames of the stream may have afterwards.
struct Owned {
    bytes: Vec<u8>,
    /// Where frames of a stream leave their memory.
    spare: Option<Arc<Spare>>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(spare) = &self.spare {
            spare.leave(std::mem::take(&mut self.bytes));
        }
    }
}

impl PartialEq for Owned {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Owned {}

/// Why there is no such frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MakeFrameError {
    /// The bytes are not as many as the format says.
    #[error("{got} bytes do not make a frame of {format}, which has {wanted}", wanted = format.frame_bytes())]
    Bytes {
        /// The frame's format.
        format: Format,
        /// How many there were.
        got: usize,
    },
    /// Its format cannot be.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Only RGB frames of 8 or 16 bits are images.
    #[error("a frame of {0} is no image yet; end the chain with rgb, and depth=8 or depth=16")]
    NoImage(Format),
    /// The image cannot be.
    #[error(transparent)]
    Image(#[from] MakeImageError),
}

impl Frame {
    /// A frame of these samples.
    ///
    /// # Errors
    /// [`MakeFrameError::Bytes`] if there are more or fewer bytes than the format says.
    pub fn new(format: Format, bytes: Vec<u8>) -> Result<Self, MakeFrameError> {
        Self::of_stream(format, bytes, None)
    }

    /// A frame of a stream, whose memory its next frames may have afterwards.
    ///
    /// # Errors
    /// As [`Frame::new`].
    pub(super) fn of_stream(format: Format, bytes: Vec<u8>, spare: Option<Arc<Spare>>) -> Result<Self, MakeFrameError> {
        if bytes.len() != format.frame_bytes() {
            return Err(MakeFrameError::Bytes { format, got: bytes.len() });
        }
        Ok(Self { format, bytes: Arc::new(Owned { bytes, spare }) })
    }

    /// Where frames of the same stream leave their memory.
    pub(super) fn spare(&self) -> Option<&Arc<Spare>> {
        self.bytes.spare.as_ref()
    }

    /// The same samples, without a copy, as those of another format.
    ///
    /// # Errors
    /// As [`Frame::new`].
    pub(crate) fn with_format(&self, format: Format) -> Result<Self, MakeFrameError> {
        match self.bytes().len() == format.frame_bytes() {
            true => Ok(Self { format, bytes: Arc::clone(&self.bytes) }),
            false => Err(MakeFrameError::Bytes { format, got: self.bytes().len() }),
        }
    }

    /// What its samples stand for.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Its samples, as in a raw stream.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes.bytes
    }

    /// Its samples; without a copy if nobody else holds the frame.
    pub fn into_bytes(self) -> Vec<u8> {
        match Arc::try_unwrap(self.bytes) {
            Ok(mut own) => std::mem::take(&mut own.bytes),
            Err(shared) => shared.bytes.clone(),
        }
    }

    /// The frame of an image: RGB of 8 bits, or of 16 for images that hold more.
    ///
    /// # Errors
    /// Never, for an image that could be made.
    pub fn from_image(image: &Image) -> Result<Self, MakeFrameError> {
        match image.samples() {
            Samples::Rgb8(samples) => Self::new(Format::new(image.size(), 8, Colour::Rgb)?, samples.to_vec()),
            Samples::Rgb16(samples) => {
                let bytes = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
                Self::new(Format::new(image.size(), 16, Colour::Rgb)?, bytes)
            }
            Samples::Linear(_) => {
                let coded = image.coded_planes();
                let (pixels, code) = (coded.len() / 3, |value: f32| (value * 65535.0).round() as u16);
                let bytes = (0..pixels).flat_map(|at| [0, 1, 2].map(|plane| code(coded[plane * pixels + at])));
                let bytes = bytes.flat_map(u16::to_le_bytes).collect();
                Self::new(Format::new(image.size(), 16, Colour::Rgb)?, bytes)
            }
        }
    }

    /// The image of an RGB frame of 8 or 16 bits.
    ///
    /// # Errors
    /// [`MakeFrameError::NoImage`] for other frames.
    pub fn to_image(&self) -> Result<Image, MakeFrameError> {
        let size = self.format.size();
        match (self.format.colour(), self.format.depth()) {
            (Colour::Rgb, 8) => Ok(Image::rgb8(size, self.bytes())?),
            (Colour::Rgb, 16) => {
                let (samples, _) = self.bytes().as_chunks::<2>();
                let samples: Vec<u16> = samples.iter().map(|sample| u16::from_le_bytes(*sample)).collect();
                Ok(Image::rgb16(size, samples)?)
            }
            _ => Err(MakeFrameError::NoImage(self.format)),
        }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({})", self.format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Size;

    const SIZE: Size = Size { width: 2, height: 1 };

    #[test]
    fn images_come_and_go_unchanged() {
        let eight = Image::rgb8(SIZE, [1, 2, 3, 4, 5, 6]).unwrap();
        assert!(Frame::from_image(&eight).unwrap().to_image().unwrap() == eight);
        let sixteen = Image::rgb16(SIZE, [1, 256, 3, 4, 5, 65535]).unwrap();
        assert!(Frame::from_image(&sixteen).unwrap().to_image().unwrap() == sixteen);
    }

    #[test]
    fn a_wrong_number_of_bytes_is_refused() {
        let format = Format::new(SIZE, 8, Colour::Rgb).unwrap();
        assert_eq!(Frame::new(format, vec![0; 5]), Err(MakeFrameError::Bytes { format, got: 5 }));
    }
}
