//! Samples as a decoder gives them: before colours are converted, transparency is filled and the image is turned.

use bytemuck::allocation::try_zeroed_vec;
use bytemuck::{Pod, cast_slice_mut};
use image::metadata::Orientation;

use crate::Size;

use super::colour::Colour;
use super::error::DecodeError;

/// What the samples of a pixel are, in order.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Channels {
    Grey = 1,
    GreyAlpha = 2,
    Rgb = 3,
    Rgba = 4,
}

impl Channels {
    pub(super) fn count(self) -> usize {
        self as usize
    }

    pub(super) fn alpha(self) -> bool {
        matches!(self, Self::GreyAlpha | Self::Rgba)
    }

    pub(super) fn grey(self) -> bool {
        matches!(self, Self::Grey | Self::GreyAlpha)
    }
}

/// A file whose header was read and whose size passed the limits.
pub(super) struct Opened<'a> {
    pub facts: Facts,
    /// Reads the pixels.
    pub pixels: Box<dyn FnOnce() -> Result<Raster, DecodeError> + 'a>,
}

/// What a header says.
pub(super) struct Facts {
    /// As stored.
    pub size: Size,
    /// Bits of a sample in the file.
    pub bits: u8,
    pub channels: Channels,
    pub colour: Colour,
    /// How the stored image is to be turned.
    pub orientation: Orientation,
}

/// Samples as stored, pixel by pixel.
pub(super) struct Raster {
    pub size: Size,
    pub channels: Channels,
    pub samples: Depth,
}

/// Samples of either depth.
pub(super) enum Depth {
    Eight(Vec<u8>),
    Sixteen(Vec<u16>),
}

impl Raster {
    /// A raster whose samples, in the machine's byte order, are written by `read`.
    pub(super) fn read<E>(
        size: Size,
        channels: Channels,
        sixteen: bool,
        read: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Self, DecodeError>
    where
        DecodeError: From<E>,
    {
        let count = size.pixels() as usize * channels.count();
        let samples = if sixteen {
            let mut samples = zeroed::<u16>(count)?;
            read(cast_slice_mut(&mut samples))?;
            Depth::Sixteen(samples)
        } else {
            let mut samples = zeroed::<u8>(count)?;
            read(&mut samples)?;
            Depth::Eight(samples)
        };
        Ok(Self { size, channels, samples })
    }
}

/// Zeros, or an error where the system has no memory. Straight from the system they are not touched before they are
/// written: a file that turns out damaged never costs the whole size.
pub(super) fn zeroed<T: Pod>(count: usize) -> Result<Vec<T>, DecodeError> {
    try_zeroed_vec(count).map_err(|()| out_of_memory::<T>(count))
}

/// An empty vector with memory for so many, or an error where the system has none.
pub(super) fn reserved<T>(count: usize) -> Result<Vec<T>, DecodeError> {
    let mut samples = Vec::new();
    samples.try_reserve_exact(count).map_err(|_| out_of_memory::<T>(count))?;
    Ok(samples)
}

fn out_of_memory<T>(count: usize) -> DecodeError {
    DecodeError::OutOfMemory { bytes: (count as u64).saturating_mul(size_of::<T>() as u64) }
}
