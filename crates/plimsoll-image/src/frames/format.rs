//! What the samples of a frame stand for: size, depth, colour model, chroma sampling and siting.
//! Never holds pixels. Invariant: no side is zero, and the depth is one that samples of one or two bytes hold.

use std::fmt;

use crate::image::{Image, Size};

/// How red, green and blue make up luma: the coefficients of a standard.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// ITU-R BT.601, as in standard definition.
    Bt601,
    /// ITU-R BT.709, as in high definition.
    Bt709,
    /// ITU-R BT.2020 with non-constant luminance, as in ultra-high definition.
    Bt2020,
}

/// Which codes stand for black and white.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Range {
    /// 16 to 235 for luma and 16 to 240 for chroma, at eight bits; four times that at ten.
    Limited,
    /// All codes.
    Full,
}

/// How many chroma samples there are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// Half as many in both directions.
    S420,
    /// Half as many in each row.
    S422,
    /// As many as luma samples.
    S444,
}

/// Where chroma samples lie among luma samples, if there are fewer of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Siting {
    /// On the luma sample to the left, between rows: MPEG-2 and most video since.
    Left,
    /// In the middle of the luma samples: JPEG and MPEG-1.
    Centre,
    /// On the first luma sample: ultra-high definition discs, PAL-DV.
    TopLeft,
}

/// How colours are coded as luma and two chroma planes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Yuv {
    /// How red, green and blue make up luma.
    pub matrix: Matrix,
    /// Which codes stand for black and white.
    pub range: Range,
    /// How many chroma samples there are.
    pub sampling: Sampling,
    /// Where they lie.
    pub siting: Siting,
}

/// The colour model of a frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Colour {
    /// `R, G, B, R, G, B, …`, all codes used.
    Rgb,
    /// The whole luma plane, then the two chroma planes.
    Yuv(Yuv),
    /// Luma only.
    Mono(Range),
}

/// What the samples of a frame stand for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    size: Size,
    depth: u8,
    colour: Colour,
}

/// Why there is no such format.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A side is zero, or there are too many pixels.
    #[error("frames of {0} cannot be: sides are at least 1 and there are at most {max} pixels", max = Image::PIXELS_MAX)]
    Size(Size),
    /// Not 8 to 16 bits.
    #[error("samples of {0} bits cannot be read; 8 to 16 can")]
    Depth(u8),
}

impl Format {
    /// A format.
    ///
    /// # Errors
    /// [`FormatError`] if a side is zero, the frame is too large, or the depth is not 8 to 16 bits.
    pub fn new(size: Size, depth: u8, colour: Colour) -> Result<Self, FormatError> {
        if size.pixels() == 0 || size.pixels() > Image::PIXELS_MAX {
            return Err(FormatError::Size(size));
        }
        if !(8..=16).contains(&depth) {
            return Err(FormatError::Depth(depth));
        }
        Ok(Self { size, depth, colour })
    }

    /// Pixels in each direction.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Whether samples lie in the same places: the colour model and the chroma sampling are the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self.colour, other.colour) {
            (Colour::Rgb, Colour::Rgb) | (Colour::Mono(_), Colour::Mono(_)) => true,
            (Colour::Yuv(own), Colour::Yuv(other)) => own.sampling == other.sampling,
            _ => false,
        }
    }

    /// Bits of a sample.
    pub fn depth(&self) -> u8 {
        self.depth
    }

    /// The colour model.
    pub fn colour(&self) -> Colour {
        self.colour
    }

    /// The same samples in another size.
    ///
    /// # Errors
    /// As [`Format::new`].
    pub fn with_size(self, size: Size) -> Result<Self, FormatError> {
        Self::new(size, self.depth, self.colour)
    }

    /// The same size in another colour model.
    #[must_use]
    pub fn with_colour(self, colour: Colour) -> Self {
        Self { colour, ..self }
    }

    /// The highest code.
    pub fn code_max(&self) -> u16 {
        (u32::MAX >> (32 - u32::from(self.depth))) as u16
    }

    /// Bytes of a sample: two, low byte first, above eight bits.
    pub fn sample_bytes(&self) -> usize {
        if self.depth > 8 { 2 } else { 1 }
    }

    /// The size of each plane. Red, green and blue count as planes, though they lie interleaved.
    pub fn plane_sizes(&self) -> Vec<Size> {
        match self.colour {
            Colour::Mono(_) => vec![self.size],
            Colour::Rgb => vec![self.size; 3],
            Colour::Yuv(yuv) => {
                let chroma = yuv.sampling.chroma_size(self.size);
                vec![self.size, chroma, chroma]
            }
        }
    }

    /// Luma samples for each sample of a plane, across and down: 1 but for chroma planes.
    pub(crate) fn steps(&self, plane: usize) -> (u32, u32) {
        match self.colour {
            Colour::Yuv(yuv) if plane > 0 => yuv.sampling.steps(),
            _ => (1, 1),
        }
    }

    /// Bytes of a frame.
    pub fn frame_bytes(&self) -> usize {
        let samples: u64 = self.plane_sizes().iter().map(|size| size.pixels()).sum();
        samples as usize * self.sample_bytes()
    }
}

impl Sampling {
    /// The size of a chroma plane. An odd last column or row has a chroma sample of its own.
    pub fn chroma_size(self, luma: Size) -> Size {
        let (across, down) = self.steps();
        Size { width: luma.width.div_ceil(across), height: luma.height.div_ceil(down) }
    }

    /// Luma samples for each chroma sample, across and down.
    pub fn steps(self) -> (u32, u32) {
        match self {
            Self::S420 => (2, 2),
            Self::S422 => (2, 1),
            Self::S444 => (1, 1),
        }
    }
}

impl Matrix {
    /// The shares of red and blue in luma; green has the rest.
    pub fn red_and_blue(self) -> (f64, f64) {
        match self {
            Self::Bt601 => (0.299, 0.114),
            Self::Bt709 => (0.2126, 0.0722),
            Self::Bt2020 => (0.2627, 0.0593),
        }
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bt601 => "601",
            Self::Bt709 => "709",
            Self::Bt2020 => "2020",
        })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Limited => "limited",
            Self::Full => "full",
        })
    }
}

impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::S420 => "420",
            Self::S422 => "422",
            Self::S444 => "444",
        })
    }
}

impl fmt::Display for Siting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Left => "left",
            Self::Centre => "centre",
            Self::TopLeft => "topleft",
        })
    }
}

/// For people: `1920x1080 yuv420 709 limited, 8 bit`.
impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, depth, colour } = self;
        match colour {
            Colour::Rgb => write!(f, "{size} rgb, {depth} bit"),
            Colour::Mono(range) => write!(f, "{size} mono {range}, {depth} bit"),
            Colour::Yuv(Yuv { matrix, range, sampling, .. }) => {
                write!(f, "{size} yuv{sampling} {matrix} {range}, {depth} bit")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yuv(sampling: Sampling) -> Colour {
        Colour::Yuv(Yuv { matrix: Matrix::Bt709, range: Range::Limited, sampling, siting: Siting::Left })
    }

    #[test]
    fn odd_sides_have_a_chroma_sample_of_their_own() {
        let size = Size { width: 5, height: 3 };
        let bytes = |colour, depth| Format::new(size, depth, colour).unwrap().frame_bytes();
        assert_eq!(bytes(yuv(Sampling::S420), 8), 15 + 2 * 6);
        assert_eq!(bytes(yuv(Sampling::S422), 8), 15 + 2 * 9);
        assert_eq!(bytes(yuv(Sampling::S444), 10), 2 * 45);
        assert_eq!(bytes(Colour::Rgb, 8), 45);
        assert_eq!(bytes(Colour::Mono(Range::Full), 16), 30);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let none = Size { width: 0, height: 9 };
        assert_eq!(Format::new(none, 8, Colour::Rgb), Err(FormatError::Size(none)));
        let size = Size { width: 1, height: 1 };
        assert_eq!(Format::new(size, 17, Colour::Rgb), Err(FormatError::Depth(17)));
        assert_eq!(Format::new(size, 10, Colour::Rgb).unwrap().code_max(), 1023);
    }
}
