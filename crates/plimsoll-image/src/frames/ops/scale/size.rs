//! The size that `scale` is asked for: `1280x720`, `50%`, `1280x-1`, `-1x720`.

use super::super::geometry::parse_plain_size;
use crate::frames::chain::number;
use crate::frames::operation::Refused;
use crate::image::Size;

/// A size, or how it follows from that of the picture.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Target {
    /// This one.
    Exactly(Size),
    /// This part of both sides: 1 is all.
    Share(f64),
    /// This width, in the picture's shape.
    Width(u32),
    /// This height, in the picture's shape.
    Height(u32),
}

impl Target {
    pub(super) fn parse(text: &str) -> Result<Self, Refused> {
        if let Some(percent) = text.strip_suffix('%') {
            return Ok(Self::Share(number("the share in per cent", percent, 0.01..=100_000.0)? / 100.0));
        }
        let side = |text: &str| parse_plain_size(&format!("{text}x{text}")).map(|size| size.width);
        let target = match text.split_once('x') {
            Some((width, "-1")) => side(width).map(Self::Width),
            Some(("-1", height)) => side(height).map(Self::Height),
            _ => parse_plain_size(text).map(Self::Exactly),
        };
        target
            .map_err(|_| Refused::because(format_args!("'{text}' is no size; write 1280x720, 1280x-1, -1x720 or 50%")))
    }

    /// The size that a picture of size `whole` gets. A side that was not written is the nearest that has a whole number of
    /// chroma samples: even where there are half as many, because much software takes no odd ones.
    pub(super) fn size(self, whole: Size, (across, down): (u32, u32)) -> Size {
        let (width, height) = (f64::from(whole.width), f64::from(whole.height));
        let (width, height) = match self {
            Self::Exactly(size) => return size,
            Self::Share(share) => (rounded(width * share, across), rounded(height * share, down)),
            Self::Width(wanted) => (f64::from(wanted), rounded(f64::from(wanted) / width * height, down)),
            Self::Height(wanted) => (rounded(f64::from(wanted) / height * width, across), f64::from(wanted)),
        };
        // A size beyond what an integer holds becomes the largest, which no format takes.
        Size { width: width as u32, height: height as u32 }
    }
}

fn rounded(side: f64, step: u32) -> f64 {
    let step = f64::from(step);
    (side / step).round().max(1.0) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(Target::parse("1280x720"), Ok(Target::Exactly(size(1280, 720))));
        assert_eq!(Target::parse("1280x-1"), Ok(Target::Width(1280)));
        assert_eq!(Target::parse("-1x720"), Ok(Target::Height(720)));
        assert_eq!(Target::parse("50%"), Ok(Target::Share(0.5)));
        for wrong in ["", "9", "-1x-1", "0x5", "0%", "%", "4x4+1+1", "-1x4+1+1", "x", "-2x4"] {
            assert!(Target::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sides_that_were_not_written_suit_the_chroma_grid() {
        let whole = size(1366, 768);
        let of = |text: &str, steps| Target::parse(text).unwrap().size(whole, steps);
        assert_eq!(of("50%", (1, 1)), size(683, 384));
        assert_eq!(of("50%", (2, 2)), size(684, 384));
        assert_eq!(of("1000x-1", (1, 1)), size(1000, 562));
        assert_eq!(of("-1x99", (2, 1)), size(176, 99));
        assert_eq!(of("0.01%", (2, 2)), size(2, 2));
        assert_eq!(of("683x5", (2, 2)), size(683, 5));
    }
}
