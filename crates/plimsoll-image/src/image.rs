//! An image in memory: RGB with the primaries of sRGB. Cheap to clone; never changes.
//! Never decodes files. Invariant: no side is zero, and there are as many samples as the size says.

use std::fmt;
use std::sync::Arc;

use bytemuck::cast_slice;
use plimsoll_core::ContentKey;
use plimsoll_runtime::Content;
use twox_hash::XxHash3_128;

use crate::transfer;

/// Pixels in each direction.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Size {
    /// Pixels in all.
    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// The same size with each side at least this long.
    pub(crate) fn at_least(self, side: u32) -> Self {
        Self { width: self.width.max(side), height: self.height.max(side) }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}x{}", self.width, self.height))
    }
}

/// How the samples of an image are stored.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum SampleKind {
    /// Eight bits, with the transfer curve of sRGB.
    Rgb8,
    /// Sixteen bits, with the transfer curve of sRGB.
    Rgb16,
    /// Floats in proportion to light: 0 is black, 1 is white.
    Linear,
}

/// The samples of an image, shared as they were made: a slice behind a counter would be a copy, which may not fit.
#[derive(Clone, PartialEq)]
pub enum Samples {
    /// `R, G, B, R, G, B, …`
    Rgb8(Arc<Vec<u8>>),
    /// `R, G, B, R, G, B, …`
    Rgb16(Arc<Vec<u16>>),
    /// The whole red plane, then green, then blue.
    Linear(Arc<Vec<f32>>),
}

impl std::fmt::Debug for Samples {
    /// How many, not which: an image has millions.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, count) = match self {
            Self::Rgb8(samples) => ("Rgb8", samples.len()),
            Self::Rgb16(samples) => ("Rgb16", samples.len()),
            Self::Linear(samples) => ("Linear", samples.len()),
        };
        write!(f, "{name}({count} samples)")
    }
}

/// What a warm session is made for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Pixels in each direction.
    pub size: Size,
    /// How samples are stored.
    pub kind: SampleKind,
}

/// Why there is no such image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MakeImageError {
    /// A side is zero.
    #[error("an image of {0} has no pixels")]
    Empty(Size),
    /// More than [`Image::PIXELS_MAX`].
    #[error("an image of {0} is larger than the {max} pixels that are taken at most", max = Image::PIXELS_MAX)]
    TooLarge(Size),
    /// The samples are not three for each pixel.
    #[error("{got} samples do not make an image of {size}, which has {wanted}")]
    Samples {
        /// The image's size.
        size: Size,
        /// Three for each pixel.
        wanted: u64,
        /// How many there were.
        got: usize,
    },
    /// A linear sample is not a number, or infinite.
    #[error("sample {0} is not a finite number")]
    NotFinite(usize),
}

/// An image in memory: RGB with the primaries of sRGB.
///
/// ```
/// use plimsoll_image::{Image, Size};
/// let size = Size { width: 2, height: 1 };
/// let image = Image::rgb8(size, [255, 0, 0, 0, 0, 255])?;
/// assert_eq!(image.linear_planes(), [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), plimsoll_image::MakeImageError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Image {
    size: Size,
    samples: Samples,
}

impl Image {
    /// Pixels in one image at most: 16384 x 16384. A plane of floats is then 1 GiB, and indices fit in 32 bits.
    pub const PIXELS_MAX: u64 = 1 << 28;

    /// An image of 8-bit sRGB samples, `R, G, B, R, G, B, …`
    ///
    /// # Errors
    /// [`MakeImageError`] if the size and the samples do not make an image.
    pub fn rgb8(size: Size, samples: impl Into<Vec<u8>>) -> Result<Self, MakeImageError> {
        let samples = samples.into();
        check(size, samples.len())?;
        Ok(Self { size, samples: Samples::Rgb8(Arc::new(samples)) })
    }

    /// An image of 16-bit sRGB samples, `R, G, B, R, G, B, …`
    ///
    /// # Errors
    /// As [`Image::rgb8`].
    pub fn rgb16(size: Size, samples: impl Into<Vec<u16>>) -> Result<Self, MakeImageError> {
        let samples = samples.into();
        check(size, samples.len())?;
        Ok(Self { size, samples: Samples::Rgb16(Arc::new(samples)) })
    }

    /// An image of linear light, as a red, a green and a blue plane one after the other.
    ///
    /// # Errors
    /// As [`Image::rgb8`]; also if a sample is not finite.
    pub fn linear(size: Size, planes: impl Into<Vec<f32>>) -> Result<Self, MakeImageError> {
        let planes = planes.into();
        check(size, planes.len())?;
        match planes.iter().position(|sample| !sample.is_finite()) {
            Some(at) => Err(MakeImageError::NotFinite(at)),
            None => Ok(Self { size, samples: Samples::Linear(Arc::new(planes)) }),
        }
    }

    /// Pixels in each direction.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The samples.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Its size and the kind of its samples.
    pub fn shape(&self) -> Shape {
        Shape { size: self.size, kind: self.samples.kind() }
    }

    /// Linear light: the whole red plane, then green, then blue.
    pub fn linear_planes(&self) -> Vec<f32> {
        match &self.samples {
            Samples::Rgb8(samples) => planes_of(samples, |sample| transfer::linear_of_8_bit()[usize::from(sample)]),
            Samples::Rgb16(samples) => planes_of(samples, |sample| transfer::linear_of_16_bit()[usize::from(sample)]),
            Samples::Linear(planes) => planes.to_vec(),
        }
    }

    /// Samples with the transfer curve of sRGB, 0 to 1: the whole red plane, then green, then blue.
    pub fn coded_planes(&self) -> Vec<f32> {
        match &self.samples {
            Samples::Rgb8(samples) => planes_of(samples, |sample| f32::from(sample) / 255.0),
            Samples::Rgb16(samples) => planes_of(samples, |sample| f32::from(sample) / 65535.0),
            Samples::Linear(planes) => planes.iter().map(|&light| transfer::coded(light)).collect(),
        }
    }

    /// Eight bits with the transfer curve of sRGB, `R, G, B, R, G, B, …`: for showing, not for comparing.
    pub fn to_rgb8(&self) -> Vec<u8> {
        if let Samples::Rgb8(samples) = &self.samples {
            return samples.to_vec();
        }
        let pixels = 0..self.size.pixels() as usize;
        let samples = pixels.flat_map(|pixel| [0, 1, 2].map(|channel| self.coded_sample(pixel, channel)));
        samples.map(|coded| (coded * 255.0).round() as u8).collect()
    }

    /// The image with each side at least this long: its last row and column are repeated. Metrics that look at blocks of
    /// pixels see small images so.
    pub(crate) fn at_least(&self, side: u32) -> Self {
        let size = self.size.at_least(side);
        if size == self.size {
            return self.clone();
        }
        let samples = match &self.samples {
            Samples::Rgb8(samples) => Samples::Rgb8(Arc::new(extended(samples, 3, self.size, size))),
            Samples::Rgb16(samples) => Samples::Rgb16(Arc::new(extended(samples, 3, self.size, size))),
            Samples::Linear(planes) => {
                let planes = planes.chunks_exact(planes.len() / 3);
                Samples::Linear(Arc::new(planes.flat_map(|plane| extended(plane, 1, self.size, size)).collect()))
            }
        };
        Self { size, samples }
    }

    /// One sample with the transfer curve of sRGB, 0 to 1. Pixels count row by row.
    pub(crate) fn coded_sample(&self, pixel: usize, channel: usize) -> f64 {
        match &self.samples {
            Samples::Rgb8(samples) => f64::from(samples[pixel * 3 + channel]) / 255.0,
            Samples::Rgb16(samples) => f64::from(samples[pixel * 3 + channel]) / 65535.0,
            Samples::Linear(planes) => f64::from(transfer::coded(planes[channel * (planes.len() / 3) + pixel])),
        }
    }

    /// Linear light, `R, G, B, R, G, B, …`
    pub fn linear_pixels(&self) -> Vec<[f32; 3]> {
        match &self.samples {
            Samples::Rgb8(samples) => pixels_of(samples, |sample| transfer::linear_of_8_bit()[usize::from(sample)]),
            Samples::Rgb16(samples) => pixels_of(samples, |sample| transfer::linear_of_16_bit()[usize::from(sample)]),
            Samples::Linear(planes) => {
                let (red, rest) = planes.split_at(planes.len() / 3);
                let (green, blue) = rest.split_at(red.len());
                red.iter().zip(green).zip(blue).map(|((&red, &green), &blue)| [red, green, blue]).collect()
            }
        }
    }
}

impl Samples {
    /// How they are stored.
    pub fn kind(&self) -> SampleKind {
        match self {
            Self::Rgb8(_) => SampleKind::Rgb8,
            Self::Rgb16(_) => SampleKind::Rgb16,
            Self::Linear(_) => SampleKind::Linear,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Rgb8(samples) => samples,
            Self::Rgb16(samples) => cast_slice(samples),
            Self::Linear(planes) => cast_slice(planes),
        }
    }
}

impl Content for Image {
    fn key(&self) -> ContentKey {
        let mut hash = XxHash3_128::new();
        hash.write(&self.size.width.to_le_bytes());
        hash.write(&self.size.height.to_le_bytes());
        hash.write(&[self.samples.kind() as u8]);
        hash.write(self.samples.bytes());
        ContentKey(hash.finish_128())
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} {:?})", self.size, self.samples.kind())
    }
}

fn check(size: Size, got: usize) -> Result<(), MakeImageError> {
    let wanted = size.pixels().saturating_mul(3);
    match size.pixels() {
        0 => Err(MakeImageError::Empty(size)),
        pixels if pixels > Image::PIXELS_MAX => Err(MakeImageError::TooLarge(size)),
        _ if wanted != got as u64 => Err(MakeImageError::Samples { size, wanted, got }),
        _ => Ok(()),
    }
}

/// Pixels of `each` samples, the last row and column repeated up to a new size.
fn extended<T: Copy>(samples: &[T], each: usize, from: Size, to: Size) -> Vec<T> {
    let pixel = |x: u32, y: u32| {
        let at = y.min(from.height - 1) as usize * from.width as usize + x.min(from.width - 1) as usize;
        &samples[at * each..][..each]
    };
    (0..to.height).flat_map(|y| (0..to.width).flat_map(move |x| pixel(x, y))).copied().collect()
}

fn pixels_of<T: Copy>(samples: &[T], value: impl Fn(T) -> f32) -> Vec<[f32; 3]> {
    let (pixels, _) = samples.as_chunks::<3>();
    pixels.iter().map(|pixel| pixel.map(&value)).collect()
}

fn planes_of<T: Copy>(pixels: &[T], value: impl Fn(T) -> f32) -> Vec<f32> {
    let plane = |channel: usize| pixels.chunks_exact(3).map(move |pixel| pixel[channel]);
    (0..3).flat_map(plane).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 2, height: 1 };

    #[test]
    fn what_is_no_image_is_refused() {
        assert_eq!(
            Image::rgb8(Size { width: 0, height: 3 }, []),
            Err(MakeImageError::Empty(Size { width: 0, height: 3 }))
        );
        let huge = Size { width: u32::MAX, height: u32::MAX };
        assert_eq!(Image::rgb8(huge, []), Err(MakeImageError::TooLarge(huge)));
        assert_eq!(Image::rgb16(SIZE, [0; 5]), Err(MakeImageError::Samples { size: SIZE, wanted: 6, got: 5 }));
        assert_eq!(Image::linear(SIZE, [0.0, 1.0, f32::NAN, 0.0, 0.0, 0.0]), Err(MakeImageError::NotFinite(2)));
    }

    #[test]
    fn every_kind_holds_the_same_light() {
        let eight = Image::rgb8(SIZE, [0, 51, 255, 102, 204, 153]).unwrap();
        let sixteen = Image::rgb16(SIZE, [0, 51 * 257, 65535, 102 * 257, 204 * 257, 153 * 257]).unwrap();
        let linear = Image::linear(SIZE, eight.linear_planes()).unwrap();
        assert_eq!(eight.linear_planes(), sixteen.linear_planes());
        assert_eq!(eight.linear_pixels(), linear.linear_pixels());
        for (a, b) in eight.coded_planes().iter().zip(linear.coded_planes()) {
            assert!((a - b).abs() < 1e-6);
        }
        assert_ne!(eight.key(), sixteen.key());
    }

    #[test]
    fn small_images_are_extended_by_their_edges() {
        let planes = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let extended = Image::linear(SIZE, planes).unwrap().at_least(3).linear_planes();
        assert_eq!(extended[..9], [1.0, 2.0, 2.0, 1.0, 2.0, 2.0, 1.0, 2.0, 2.0]);
        let coded = Image::rgb8(SIZE, [1, 2, 3, 4, 5, 6]).unwrap().at_least(2);
        assert!(coded.samples() == &Samples::Rgb8(vec![1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6].into()));
    }
}
