//! Sizes and positions as operations write them: `1280x720`, `640x480+16+8`.

use crate::frames::operation::Refused;
use crate::frames::picture::Picture;
use crate::image::Size;

/// Pixels in one direction at most: what a size or a place in a chain may say.
pub(super) const SIDE_MAX: u32 = 1 << 20;

/// Where a part lies in a whole.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// In its middle, at even places, so that chroma samples stay with their luma.
    Middle,
    /// This many pixels from its left and top edge.
    At(u32, u32),
}

impl Position {
    /// The first column and row of a part that must lie inside.
    pub(super) fn within(self, whole: Size, part: Size) -> Result<(u32, u32), Refused> {
        let (left, top) = match self {
            Self::At(left, top) => (left, top),
            Self::Middle => {
                let middle = |whole: u32, part: u32| whole.saturating_sub(part) / 2 / 2 * 2;
                (middle(whole.width, part.width), middle(whole.height, part.height))
            }
        };
        let fits = |first: u32, part: u32, whole: u32| first.checked_add(part).is_some_and(|end| end <= whole);
        match fits(left, part.width, whole.width) && fits(top, part.height, whole.height) {
            true => Ok((left, top)),
            false => Err(Refused::because(format_args!("{part}+{left}+{top} does not fit in {whole}"))),
        }
    }
}

/// Where a pixel of the whole lies in each plane of a picture that is cut or laid there.
pub(super) fn in_planes(picture: &Picture, left: u32, top: u32) -> Result<Vec<(u32, u32)>, Refused> {
    let steps: Vec<(u32, u32)> = (0..picture.planes.len()).map(|plane| picture.steps(plane)).collect();
    if steps.iter().any(|(across, down)| !left.is_multiple_of(*across) || !top.is_multiple_of(*down)) {
        return Err(Refused::because(format_args!(
            "+{left}+{top} lies between chroma samples; use even numbers, or yuv=…:444 before it"
        )));
    }
    Ok(steps.into_iter().map(|(across, down)| (left / across, top / down)).collect())
}

/// Reads `WxH`, where no position has a meaning.
pub(super) fn parse_plain_size(text: &str) -> Result<Size, Refused> {
    match parse_size(text) {
        Ok((size, Position::Middle)) => Ok(size),
        _ => Err(Refused::because(format_args!("'{text}' is no size; write 640x480"))),
    }
}

/// Reads `WxH` or `WxH+X+Y`.
pub(super) fn parse_size(text: &str) -> Result<(Size, Position), Refused> {
    let refused = || Refused::because(format_args!("'{text}' is no size; write 640x480 or 640x480+16+8"));
    let (size, position) = text.split_once('+').map_or((text, None), |(size, position)| (size, Some(position)));
    let (width, height) = size.split_once('x').ok_or_else(refused)?;
    let side = |text: &str| text.parse().ok().filter(|side| (1..=SIDE_MAX).contains(side)).ok_or_else(refused);
    let size = Size { width: side(width)?, height: side(height)? };
    let Some(position) = position else { return Ok((size, Position::Middle)) };
    let (left, top) = position.split_once('+').ok_or_else(refused)?;
    let place = |text: &str| text.parse().ok().filter(|place| *place <= SIDE_MAX).ok_or_else(refused);
    Ok((size, Position::At(place(left)?, place(top)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_positions_are_read() {
        let size = Size { width: 64, height: 48 };
        assert_eq!(parse_size("64x48"), Ok((size, Position::Middle)));
        assert_eq!(parse_size("64x48+1+2"), Ok((size, Position::At(1, 2))));
        for wrong in ["", "64", "0x1", "64x48+1", "-1x4", "64x99999999"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_plain_size("64x48"), Ok(size));
        assert!(parse_plain_size("64x48+1+2").is_err());
    }

    #[test]
    fn a_part_lies_inside() {
        let (whole, part) = (Size { width: 9, height: 7 }, Size { width: 3, height: 3 });
        assert_eq!(Position::Middle.within(whole, part), Ok((2, 2)));
        assert!(Position::At(7, 0).within(whole, part).is_err());
        assert!(Position::At(u32::MAX, 0).within(whole, part).is_err());
    }
}
