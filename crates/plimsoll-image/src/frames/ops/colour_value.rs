//! A colour as operations write it, `grey` or `ff8000`, and the numbers that stand for it in the planes of a picture.

use crate::frames::convert::Affine;
use crate::frames::format::Format;
use crate::frames::operation::OperationError;

/// A colour: red, green and blue from 0 to 1, as they are coded.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct ColourValue {
    red: f64,
    green: f64,
    blue: f64,
}

impl ColourValue {
    pub(super) const BLACK: Self = Self::grey(0.0);

    const fn grey(level: f64) -> Self {
        Self { red: level, green: level, blue: level }
    }

    /// Reads a name or `RRGGBB`.
    pub(super) fn parse(text: &str) -> Result<Self, OperationError> {
        match text {
            "black" => Ok(Self::BLACK),
            "grey" => Ok(Self::grey(0.5)),
            "white" => Ok(Self::grey(1.0)),
            _ => Self::parse_hexadecimal(text).ok_or_else(|| {
                OperationError::because(format_args!(
                    "'{text}' is no colour; write black, grey, white or RRGGBB, as ff8000"
                ))
            }),
        }
    }

    fn parse_hexadecimal(text: &str) -> Option<Self> {
        let digits = text.len() == 6 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let [_, red, green, blue] = u32::from_str_radix(text, 16).ok().filter(|_| digits)?.to_be_bytes();
        let [red, green, blue] = [red, green, blue].map(|code| f64::from(code) / 255.0);
        Some(Self { red, green, blue })
    }

    /// Whether it is the same whatever the matrix.
    pub(super) fn is_grey(self) -> bool {
        self.red == self.green && self.green == self.blue
    }

    /// The number for each plane of a picture of this format: 0 is the lowest code, 1 the highest. Where there is luma
    /// only, the first counts.
    pub(super) fn planes(self, format: Format) -> [f32; 3] {
        Affine::from_rgb(format).of([self.red, self.green, self.blue]).map(|number| number as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::format::{Colour, Matrix, Range, Sampling, Siting, Yuv};
    use crate::image::Size;

    fn codes(colour: &str, depth: u8, of: Colour) -> Vec<i64> {
        let format = Format::new(Size { width: 2, height: 2 }, depth, of).unwrap();
        let planes = ColourValue::parse(colour).unwrap().planes(format);
        let shown = &planes[..format.plane_sizes().len()];
        shown.iter().map(|number| (f64::from(*number) * f64::from(format.code_max())).round() as i64).collect()
    }

    fn yuv(matrix: Matrix, range: Range) -> Colour {
        Colour::Yuv(Yuv { matrix, range, sampling: Sampling::S420, siting: Siting::Left })
    }

    /// The 8-bit codes of the 100 % colour bars of BT.601 and BT.709.
    #[test]
    fn known_codes() {
        let (sd, hd) = (yuv(Matrix::Bt601, Range::Limited), yuv(Matrix::Bt709, Range::Limited));
        assert_eq!(codes("black", 8, hd), [16, 128, 128]);
        assert_eq!(codes("white", 8, hd), [235, 128, 128]);
        assert_eq!(codes("black", 10, hd), [64, 512, 512]);
        assert_eq!(codes("ff0000", 8, sd), [81, 90, 240]);
        assert_eq!(codes("00ff00", 8, sd), [145, 54, 34]);
        assert_eq!(codes("0000ff", 8, sd), [41, 240, 110]);
        assert_eq!(codes("ff0000", 8, hd), [63, 102, 240]);
        assert_eq!(codes("black", 8, yuv(Matrix::Bt709, Range::Full)), [0, 128, 128]);
        assert_eq!(codes("ff8000", 16, Colour::Rgb), [65_535, 128 * 257, 0]);
        assert_eq!(codes("white", 12, Colour::Mono(Range::Limited)), [235 * 16]);
    }

    #[test]
    fn what_is_no_colour_is_refused() {
        for wrong in ["", "blueish", "fff", "ff80000", "+f8000", "#ff8000"] {
            assert!(ColourValue::parse(wrong).is_err(), "{wrong}");
        }
    }
}
