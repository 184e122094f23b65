//! Which planes of a picture an operation changes, and which codes have a meaning of their own.

use crate::frames::chain::{Args, one_of};
use crate::frames::format::{Colour, Format, Range, Yuv};
use crate::frames::operation::Refused;
use crate::frames::picture::Picture;

/// Which planes are changed. Red, green and blue are always changed together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Planes {
    /// Chroma is left as it is.
    Luma,
    /// Every plane.
    All,
}

impl Planes {
    /// Reads `planes=luma` or `planes=all`; luma, if nothing is written.
    pub(super) fn parse(args: &mut Args<'_>) -> Result<Self, Refused> {
        let words = [("luma", Self::Luma), ("all", Self::All)];
        args.take_named("planes").map_or(Ok(Self::Luma), |text| one_of("planes", text, &words))
    }

    /// Whether this plane is changed.
    pub(super) fn include(self, picture: &Picture, plane: usize) -> bool {
        self == Self::All || !is_chroma(picture.format, plane)
    }
}

/// Whether a plane holds chroma.
pub(super) fn is_chroma(format: Format, plane: usize) -> bool {
    plane > 0 && matches!(format.colour(), Colour::Yuv(_))
}

/// The chroma of greys.
pub(super) fn chroma_middle(format: Format) -> f32 {
    share(128, format)
}

/// The numbers of black and white in a plane that is not chroma.
pub(super) fn black_and_white(format: Format) -> (f32, f32) {
    match format.colour() {
        Colour::Yuv(Yuv { range: Range::Limited, .. }) | Colour::Mono(Range::Limited) => {
            (share(16, format), share(235, format))
        }
        _ => (0.0, 1.0),
    }
}

/// A code of eight bits as a number at the format's depth.
fn share(code: u32, format: Format) -> f32 {
    (f64::from(code << (format.depth() - 8)) / f64::from(format.code_max())) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Size;

    #[test]
    fn meanings_keep_their_codes_at_every_depth() {
        let size = Size { width: 2, height: 2 };
        for (depth, codes) in [(8, [128, 16, 235]), (10, [512, 64, 940])] {
            let format = Format::new(size, depth, Colour::Mono(Range::Limited)).unwrap();
            let (black, white) = black_and_white(format);
            let got = [chroma_middle(format), black, white].map(|share| (share * f32::from(format.code_max())).round());
            assert_eq!(got.map(|code| code as i32), codes, "{depth} bits");
        }
        assert_eq!(black_and_white(Format::new(size, 8, Colour::Rgb).unwrap()), (0.0, 1.0));
    }
}
