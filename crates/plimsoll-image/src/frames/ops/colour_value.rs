//! A colour as operations write it, `grey` or `ff8000`, and the numbers that stand for it in the planes of a picture.

use crate::frames::format::{Colour, Format, Range};
use crate::frames::operation::Refused;

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
    pub(super) fn parse(text: &str) -> Result<Self, Refused> {
        match text {
            "black" => Ok(Self::BLACK),
            "grey" => Ok(Self::grey(0.5)),
            "white" => Ok(Self::grey(1.0)),
            _ => Self::parse_hexadecimal(text).ok_or_else(|| {
                Refused::because(format_args!("'{text}' is no colour; write black, grey, white or RRGGBB, as ff8000"))
            }),
        }
    }

    fn parse_hexadecimal(text: &str) -> Option<Self> {
        let digits = text.len() == 6 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let [_, red, green, blue] = u32::from_str_radix(text, 16).ok().filter(|_| digits)?.to_be_bytes();
        let [red, green, blue] = [red, green, blue].map(|code| f64::from(code) / 255.0);
        Some(Self { red, green, blue })
    }

    /// The number for each plane of a picture of this format: 0 is the lowest code, 1 the highest.
    pub(super) fn planes(self, format: Format) -> Vec<f32> {
        let Self { red, green, blue } = self;
        let coding = Coding::of(format);
        match format.colour() {
            Colour::Rgb => vec![red as f32, green as f32, blue as f32],
            // There is nothing to tell which shares of red, green and blue a grey picture was made of; those of high
            // definition are the usual ones.
            Colour::Mono(range) => vec![coding.luma(range, self.luma(0.2126, 0.0722))],
            Colour::Yuv(yuv) => {
                let (red_share, blue_share) = yuv.matrix.red_and_blue();
                let luma = self.luma(red_share, blue_share);
                let chroma = |primary: f64, share: f64| (primary - luma) / (2.0 * (1.0 - share));
                let chroma = [chroma(blue, blue_share), chroma(red, red_share)];
                let [blue_difference, red_difference] = chroma.map(|chroma| coding.chroma(yuv.range, chroma));
                vec![coding.luma(yuv.range, luma), blue_difference, red_difference]
            }
        }
    }

    fn luma(self, red_share: f64, blue_share: f64) -> f64 {
        red_share * self.red + (1.0 - red_share - blue_share) * self.green + blue_share * self.blue
    }
}

/// How levels become numbers at some depth.
struct Coding {
    code_max: f64,
    /// Codes for each code of eight bits.
    step: f64,
}

impl Coding {
    fn of(format: Format) -> Self {
        Self { code_max: f64::from(format.code_max()), step: f64::from(1_u32 << (format.depth() - 8)) }
    }

    /// The number for a luma from 0 to 1.
    fn luma(&self, range: Range, luma: f64) -> f32 {
        match range {
            Range::Full => luma as f32,
            Range::Limited => ((16.0 + 219.0 * luma) * self.step / self.code_max) as f32,
        }
    }

    /// The number for a chroma from -0.5 to 0.5.
    fn chroma(&self, range: Range, chroma: f64) -> f32 {
        let code = match range {
            Range::Full => 128.0 * self.step + chroma * self.code_max,
            Range::Limited => (128.0 + 224.0 * chroma) * self.step,
        };
        (code / self.code_max) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::format::{Matrix, Sampling, Siting, Yuv};
    use crate::image::Size;

    fn codes(colour: &str, depth: u8, of: Colour) -> Vec<i64> {
        let format = Format::new(Size { width: 2, height: 2 }, depth, of).unwrap();
        let planes = ColourValue::parse(colour).unwrap().planes(format);
        planes.iter().map(|number| (f64::from(*number) * f64::from(format.code_max())).round() as i64).collect()
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
