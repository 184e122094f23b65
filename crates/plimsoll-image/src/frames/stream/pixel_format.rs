//! The names that ffmpeg has for formats of raw frames. Never guesses: an unknown name is refused with the known ones.

use super::y4m::likely_matrix;
use crate::frames::format::{Colour, Format, FormatError, Range, Sampling, Siting, Yuv};
use crate::image::Size;

/// Why a name gave no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParsePixelFormatError {
    /// Nothing is known by this name: convert with `ffmpeg -pix_fmt`.
    #[error(
        "raw frames of '{0}' are not read; those of rgb24, rgb48le, gray, gray9le to gray16le, yuv420p, yuv422p, \
         yuv444p and their 9 to 16 bit forms (yuv420p10le), nv12, nv21, bgr24, rgba, bgra, argb, abgr, rgba64le and gbrp \
         are"
    )]
    Name(String),
    /// Frames like that cannot be held.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// The format that ffmpeg calls by this name: `rgb24`, `rgb48le`, `gray`, `yuv420p`, `yuv422p10le`, …
///
/// Colours as ffmpeg takes them without being told: YUV in limited range with chroma to the left and the
/// [likely matrix](likely_matrix), grey in full range.
///
/// # Errors
/// [`ParsePixelFormatError`].
pub fn pixel_format(name: &str, size: Size) -> Result<Format, ParsePixelFormatError> {
    let unknown = || ParsePixelFormatError::Name(name.to_owned());
    let (colour, depth) = match name {
        "rgb24" => (Colour::Rgb, 8),
        "rgb48le" => (Colour::Rgb, 16),
        _ => planar(name, size).ok_or_else(unknown)?,
    };
    Ok(Format::new(size, depth, colour)?)
}

/// Luma, with or without chroma planes.
fn planar(name: &str, size: Size) -> Option<(Colour, u8)> {
    let yuv = |sampling| {
        Colour::Yuv(Yuv { matrix: likely_matrix(size), range: Range::Limited, sampling, siting: Siting::Left })
    };
    let kinds = [
        ("gray", Colour::Mono(Range::Full)),
        ("yuv420p", yuv(Sampling::S420)),
        ("yuv422p", yuv(Sampling::S422)),
        ("yuv444p", yuv(Sampling::S444)),
    ];
    kinds.into_iter().find_map(|(prefix, colour)| Some((colour, depth(name.strip_prefix(prefix)?)?)))
}

/// Nothing for 8 bits, `10le` for ten.
fn depth(suffix: &str) -> Option<u8> {
    if suffix.is_empty() {
        return Some(8);
    }
    (9..=16).find(|depth| suffix == format!("{depth}le"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 3, height: 3 };

    #[test]
    fn names_give_formats() {
        let bytes = |name| pixel_format(name, SIZE).map(|format| (format.depth(), format.frame_bytes()));
        assert_eq!(bytes("rgb24"), Ok((8, 27)));
        assert_eq!(bytes("rgb48le"), Ok((16, 54)));
        assert_eq!(bytes("gray"), Ok((8, 9)));
        assert_eq!(bytes("gray14le"), Ok((14, 18)));
        assert_eq!(bytes("yuv420p"), Ok((8, 17)));
        assert_eq!(bytes("yuv422p10le"), Ok((10, 42)));
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["", "rgb", "yuv420", "yuv420p10", "yuv420p10be", "yuv444p8le", "gray17le", "yuva444p"] {
            assert_eq!(pixel_format(name, SIZE), Err(ParsePixelFormatError::Name(name.to_owned())), "{name}");
        }
        let none = Size { width: 0, height: 1 };
        assert_eq!(pixel_format("gray", none), Err(FormatError::Size(none).into()));
    }
}
