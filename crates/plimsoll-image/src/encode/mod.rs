//! From a frame to an image file: the bytes, and how they reach their name.
//! Never converts samples: only RGB frames of 8 or 16 bits are images. Says nothing about colour in the file, as ffmpeg
//! does, so that programs take it for sRGB.
//! Invariant: a name holds a whole file, or what it held before.

mod encoding;
mod error;
mod place;

use std::io::{Seek, Write};
use std::path::Path;

use bytemuck::cast_slice;
use image::codecs::{bmp, qoi, tiff, webp};
use image::{ExtendedColorType, ImageEncoder, ImageResult};
use jpeg_encoder::{ColorType, Encoder, EncodingError, SamplingFactor};

use crate::Size;
use crate::frames::{Colour, Frame, MakeFrameError};

pub use encoding::Encoding;
pub use error::EncodeError;

/// How good a JPEG is, from 1 to 100.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct JpegQuality(u8);

impl JpegQuality {
    /// A quality; `None` if it is not from 1 to 100.
    pub fn new(quality: u8) -> Option<Self> {
        (1..=100).contains(&quality).then_some(Self(quality))
    }
}

impl Default for JpegQuality {
    /// Whoever asks for JPEG wants small files, but frames that still look like frames.
    fn default() -> Self {
        Self(95)
    }
}

/// Writes a frame as an image file, coded as the name's ending says. The file appears under its name when it is whole.
///
/// # Errors
/// [`EncodeError`]: which one says what to do next.
pub fn write(path: &Path, frame: &Frame, quality: JpegQuality) -> Result<(), EncodeError> {
    let encoding = Encoding::of_path(path)?;
    check(frame, encoding)?;
    place::whole(path, |file| encode(frame, encoding, quality, file))
}

/// The bytes of an image file.
///
/// # Errors
/// [`EncodeError`]: which one says what to do next.
pub fn encode(
    frame: &Frame,
    encoding: Encoding,
    quality: JpegQuality,
    mut out: impl Write + Seek,
) -> Result<(), EncodeError> {
    check(frame, encoding)?;
    match encoding {
        Encoding::Png => write_png(frame, out),
        Encoding::Ppm => write_ppm(frame, out).map_err(EncodeError::Write),
        Encoding::Tiff => by_image(frame, encoding, tiff::TiffEncoder::new(out)),
        Encoding::WebP => by_image(frame, encoding, webp::WebPEncoder::new_lossless(out)),
        Encoding::Qoi => by_image(frame, encoding, qoi::QoiEncoder::new(out)),
        Encoding::Bmp => by_image(frame, encoding, bmp::BmpEncoder::new(&mut out)),
        Encoding::Jpeg => write_jpeg(frame, quality, out),
    }
}

/// Before a file is begun.
fn check(frame: &Frame, encoding: Encoding) -> Result<(), EncodeError> {
    let format = frame.format();
    match (format.colour(), format.depth()) {
        (Colour::Rgb, 8) => Ok(()),
        (Colour::Rgb, 16) if encoding.holds_16_bits() => Ok(()),
        (Colour::Rgb, 16) => Err(EncodeError::EightBitsOnly(encoding)),
        _ => Err(MakeFrameError::NoImage(format).into()),
    }
}

/// Quickly, since frames come many a second: 13 ms and 3.3 MB for a drawn one of 1920 x 1080, where the crate's own choice
/// takes 620 ms to make 2.7 MB of it.
fn write_png(frame: &Frame, out: impl Write) -> Result<(), EncodeError> {
    let Size { width, height } = frame.format().size();
    let mut encoder = png::Encoder::new(out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(if frame.format().depth() > 8 { png::BitDepth::Sixteen } else { png::BitDepth::Eight });
    encoder.set_compression(png::Compression::Fast);
    let written = encoder.write_header().and_then(|mut writer| {
        match frame.format().depth() {
            8 => writer.write_image_data(frame.bytes())?,
            _ => writer.write_image_data(&high_byte_first(frame.bytes()))?,
        }
        writer.finish()
    });
    written.map_err(|error| match error {
        png::EncodingError::IoError(error) => EncodeError::Write(error),
        error => EncodeError::Encoder { encoding: Encoding::Png, reason: error.to_string() },
    })
}

/// With colour as fine as brightness: whoever wants it coarser has a chain for that.
fn write_jpeg(frame: &Frame, quality: JpegQuality, out: impl Write) -> Result<(), EncodeError> {
    let Size { width, height } = frame.format().size();
    let refused = |reason: String| EncodeError::Encoder { encoding: Encoding::Jpeg, reason };
    let side = |pixels: u32| u16::try_from(pixels).map_err(|_| refused(format!("{pixels} pixels are more than 65535")));
    let mut encoder = Encoder::new(out, quality.0);
    encoder.set_sampling_factor(SamplingFactor::R_4_4_4);
    encoder.encode(frame.bytes(), side(width)?, side(height)?, ColorType::Rgb).map_err(|error| match error {
        EncodingError::IoError(error) => EncodeError::Write(error),
        error => refused(error.to_string()),
    })
}

fn write_ppm(frame: &Frame, mut out: impl Write) -> std::io::Result<()> {
    let Size { width, height } = frame.format().size();
    write!(out, "P6\n{width} {height}\n{}\n", frame.format().code_max())?;
    match frame.format().depth() {
        8 => out.write_all(frame.bytes()),
        _ => out.write_all(&high_byte_first(frame.bytes())),
    }
}

fn high_byte_first(bytes: &[u8]) -> Vec<u8> {
    let mut swapped = bytes.to_vec();
    swapped.as_chunks_mut::<2>().0.iter_mut().for_each(|sample| sample.reverse());
    swapped
}

/// Through the image crate, which takes samples of 16 bits as the machine has them.
fn by_image(frame: &Frame, encoding: Encoding, encoder: impl ImageEncoder) -> Result<(), EncodeError> {
    let Size { width, height } = frame.format().size();
    let written: ImageResult<()> = match frame.format().depth() {
        8 => encoder.write_image(frame.bytes(), width, height, ExtendedColorType::Rgb8),
        _ => {
            let (samples, _) = frame.bytes().as_chunks::<2>();
            let samples: Vec<u16> = samples.iter().map(|sample| u16::from_le_bytes(*sample)).collect();
            encoder.write_image(cast_slice(&samples), width, height, ExtendedColorType::Rgb16)
        }
    };
    written.map_err(|error| match error {
        image::ImageError::IoError(error) => EncodeError::Write(error),
        error => EncodeError::Encoder { encoding, reason: error.to_string() },
    })
}
