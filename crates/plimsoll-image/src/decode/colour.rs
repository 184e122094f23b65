//! From the colours of a file to sRGB. What already is sRGB is left alone, bit for bit.
//! Never reads files; what a profile means is decided in `profile`.

use moxcms::{ColorProfile, DataColorSpace, Layout, Transform16BitExecutor, TransformOptions};

use super::error::DecodeError;
use super::hdr::HdrCurve;
use super::profile;
use super::raster::{Channels, Depth, Raster, reserved, zeroed};

/// Whether embedded colour profiles count.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profiles {
    /// Colours are converted to sRGB; what cannot be converted is refused.
    #[default]
    Honour,
    /// Samples are taken as if they were sRGB, whatever the file says.
    Ignore,
}

/// What a file says about its colours.
pub(super) enum Colour {
    /// Nothing, or that they are sRGB.
    Srgb,
    /// They were something else, and the decoder gives sRGB.
    Converted,
    /// An ICC profile.
    Icc(Vec<u8>),
    /// Something that could be made into a profile.
    Described(Box<ColorProfile>),
    /// Something that cannot be converted, and why.
    Strange(&'static str),
    /// They are made for HDR.
    Hdr(HdrCurve),
}

impl Colour {
    pub(super) fn of_icc(profile: Option<Vec<u8>>) -> Self {
        profile.map_or(Self::Srgb, Self::Icc)
    }
}

/// A way to sRGB.
pub(super) struct Conversion {
    from: Box<ColorProfile>,
}

impl Conversion {
    /// The conversion that a file needs, if any.
    pub(super) fn plan(colour: Colour, channels: Channels, profiles: Profiles) -> Result<Option<Self>, DecodeError> {
        let from = match (profiles, colour) {
            (Profiles::Ignore, _) | (_, Colour::Srgb | Colour::Converted) => return Ok(None),
            (_, Colour::Strange(reason)) => return Err(refused(reason)),
            (_, Colour::Hdr(curve)) => return Err(curve.refused()),
            (_, Colour::Described(profile)) => profile,
            (_, Colour::Icc(bytes)) => Box::new(profile::of_icc(&bytes).map_err(refused)?),
        };
        if let Some(curve) = HdrCurve::of_profile(&from) {
            return Err(curve.refused());
        }
        match from.color_space {
            DataColorSpace::Gray if !channels.grey() => Err(refused("a grey profile for a colour image")),
            DataColorSpace::Rgb | DataColorSpace::Gray if profile::is_srgb(&from) => Ok(None),
            DataColorSpace::Rgb | DataColorSpace::Gray => Ok(Some(Self { from })),
            _ => Err(refused("a profile that is neither for RGB nor for grey")),
        }
    }

    /// The same picture in sRGB: grey becomes RGB, alpha stays as it is.
    pub(super) fn apply(&self, raster: Raster) -> Result<Raster, DecodeError> {
        let grey = self.from.color_space == DataColorSpace::Gray;
        let (source, channels) = match (grey, raster.channels.alpha()) {
            (true, false) => (Layout::Gray, Channels::Rgb),
            (true, true) => (Layout::GrayAlpha, Channels::Rgba),
            (false, false) => (Layout::Rgb, Channels::Rgb),
            (false, true) => (Layout::Rgba, Channels::Rgba),
        };
        let target = if channels.alpha() { Layout::Rgba } else { Layout::Rgb };
        let srgb = ColorProfile::new_srgb();
        // Fixed point keeps 13 bits, too few for 16-bit samples.
        let options = TransformOptions { prefer_fixed_point: false, ..TransformOptions::default() };
        let raster = if grey { raster } else { spread(raster)? };
        let pixels = raster.size.pixels() as usize;
        // Eight bits go through sixteen: tables made for eight are up to one step off in the dark.
        let way = self.from.create_transform_16bit(source, &srgb, target, options).map_err(refused)?;
        let samples = match raster.samples {
            Depth::Eight(samples) => Depth::Eight(through_16_bits(&*way, &samples, raster.channels, channels, pixels)?),
            Depth::Sixteen(samples) => {
                let mut to = zeroed(pixels * channels.count())?;
                way.transform(&samples, &mut to).map_err(refused)?;
                Depth::Sixteen(to)
            }
        };
        Ok(Raster { size: raster.size, channels, samples })
    }
}

/// Pixels that are converted at once: small enough to stay in a cache.
const PIXELS_AT_ONCE: usize = 4096;

fn through_16_bits(
    way: &Transform16BitExecutor,
    from: &[u8],
    from_channels: Channels,
    to_channels: Channels,
    pixels: usize,
) -> Result<Vec<u8>, DecodeError> {
    let (from_count, to_count) = (from_channels.count(), to_channels.count());
    let mut to = zeroed::<u8>(pixels * to_count)?;
    let mut wide = vec![0; PIXELS_AT_ONCE * from_count];
    let mut converted = vec![0; PIXELS_AT_ONCE * to_count];
    for (from, to) in from.chunks(PIXELS_AT_ONCE * from_count).zip(to.chunks_mut(PIXELS_AT_ONCE * to_count)) {
        let (wide, converted) = (&mut wide[..from.len()], &mut converted[..to.len()]);
        wide.iter_mut().zip(from).for_each(|(wide, &sample)| *wide = u16::from(sample) * 257);
        way.transform(wide, converted).map_err(refused)?;
        to.iter_mut().zip(converted).for_each(|(to, &mut sample)| *to = ((u32::from(sample) + 128) / 257) as u8);
    }
    Ok(to)
}

/// Grey as RGB, for profiles that describe RGB.
fn spread(raster: Raster) -> Result<Raster, DecodeError> {
    let (channels, samples) = match (raster.channels, raster.samples) {
        (Channels::Grey, Depth::Eight(samples)) => (Channels::Rgb, Depth::Eight(tripled(&samples)?)),
        (Channels::Grey, Depth::Sixteen(samples)) => (Channels::Rgb, Depth::Sixteen(tripled(&samples)?)),
        (Channels::GreyAlpha, Depth::Eight(samples)) => (Channels::Rgba, Depth::Eight(tripled_beside_alpha(&samples)?)),
        (Channels::GreyAlpha, Depth::Sixteen(samples)) => {
            (Channels::Rgba, Depth::Sixteen(tripled_beside_alpha(&samples)?))
        }
        rest => rest,
    };
    Ok(Raster { size: raster.size, channels, samples })
}

pub(super) fn tripled<T: Copy>(samples: &[T]) -> Result<Vec<T>, DecodeError> {
    let mut pixels = reserved(samples.len() * 3)?;
    pixels.extend(samples.iter().flat_map(|&grey| [grey; 3]));
    Ok(pixels)
}

fn tripled_beside_alpha<T: Copy>(samples: &[T]) -> Result<Vec<T>, DecodeError> {
    let mut pixels = reserved(samples.len() * 2)?;
    pixels.extend(samples.as_chunks::<2>().0.iter().flat_map(|&[grey, alpha]| [grey, grey, grey, alpha]));
    Ok(pixels)
}

fn refused(reason: impl ToString) -> DecodeError {
    DecodeError::Colour { reason: reason.to_string() }
}
