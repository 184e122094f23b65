//! Sizes and positions as operations write them: `1280x720`, `640x480+16+8`, or side by side as ffmpeg's users do:
//! `iw/2:ih/2:10:10`.

use super::expression::{Expression, Sides};
use crate::frames::chain::Args;
use crate::frames::operation::OperationError;
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
    pub(super) fn within(self, whole: Size, part: Size) -> Result<(u32, u32), OperationError> {
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
            false => Err(OperationError::because(format_args!("{part}+{left}+{top} does not fit in {whole}"))),
        }
    }
}

/// A rectangle, as it is written.
#[derive(Debug, PartialEq)]
pub(super) struct Area {
    width: Expression,
    height: Expression,
    /// Its first column and row; in the middle, if none is written.
    position: Option<(Expression, Expression)>,
    /// Whether it was written side by side.
    pub(super) is_side_by_side: bool,
}

impl Area {
    /// Takes `WxH`, `WxH+X+Y`, or `W:H` and then `X:Y` if that follows. `w=`, `h=`, `x=` and `y=` name them.
    pub(super) fn take(args: &mut Args<'_>) -> Result<Self, OperationError> {
        let named = args.take_named("w");
        let first = match named {
            Some(width) => width,
            None => args.require("size")?,
        };
        if named.is_none()
            && let Some(area) = Self::parse(first)
        {
            return Ok(area);
        }
        let height = args.take_named("h").or_else(|| args.take("height")).ok_or_else(|| {
            OperationError::because(format_args!(
                "'{first}' is no size; write 640x480, 640x480+16+8, or W:H as iw/2:ih/2"
            ))
        })?;
        let (width, height) = (Expression::parse(first)?, Expression::parse(height)?);
        let across = args.take_named("x").or_else(|| args.take_if(|text| Expression::parse(text).is_ok()));
        let down = args.take_named("y").or_else(|| args.take_if(|text| Expression::parse(text).is_ok()));
        let position = match (across, down) {
            (None, None) => None,
            (Some(across), Some(down)) => Some((Expression::parse(across)?, Expression::parse(down)?)),
            _ => return Err(OperationError::because("a position has two numbers, X:Y")),
        };
        Ok(Self { width, height, position, is_side_by_side: true })
    }

    /// Reads `WxH` or `WxH+X+Y`, in plain numbers.
    fn parse(text: &str) -> Option<Self> {
        let (size, position) = parse_size(text).ok()?;
        let number = |number: u32| Expression::parse(&number.to_string()).ok();
        let position = match position {
            Position::Middle => None,
            Position::At(left, top) => Some((number(left)?, number(top)?)),
        };
        Some(Self { width: number(size.width)?, height: number(size.height)?, position, is_side_by_side: false })
    }

    pub(super) fn has_position(&self) -> bool {
        self.position.is_some()
    }

    /// Its size for a picture of this size.
    pub(super) fn size(&self, input: Size) -> Result<Size, OperationError> {
        let sides = Sides { input, output: None };
        let side = |of: &Expression| side(of, sides);
        Ok(Size { width: side(&self.width)?, height: side(&self.height)? })
    }

    /// Where it lies. Places that are worked out are rounded to those of chroma samples; numbers are meant as they are.
    pub(super) fn position(&self, picture: &Picture, size: Size) -> Result<Position, OperationError> {
        let Some((across, down)) = &self.position else { return Ok(Position::Middle) };
        let sides = Sides { input: picture.size(), output: Some(size) };
        let steps = picture.steps(picture.planes.len() - 1);
        let place = |of: &Expression, step: u32| {
            let place = of.of(sides)?;
            let refused = || OperationError::because(format_args!("{of:?} is {place}, and no place is outside"));
            let place = u32::try_from(place).ok().filter(|place| *place <= SIDE_MAX).ok_or_else(refused)?;
            Ok(if of.literal().is_some() { place } else { place / step * step })
        };
        Ok(Position::At(place(across, steps.0)?, place(down, steps.1)?))
    }
}

/// The side of a size.
pub(super) fn side(of: &Expression, sides: Sides) -> Result<u32, OperationError> {
    let side = of.of(sides)?;
    let refused = || OperationError::because(format_args!("{of:?} is {side}, and a side has 1 to {SIDE_MAX} pixels"));
    u32::try_from(side).ok().filter(|side| (1..=SIDE_MAX).contains(side)).ok_or_else(refused)
}

/// Where a pixel of the whole lies in each plane of a picture that is cut or laid there.
pub(super) fn in_planes(picture: &Picture, left: u32, top: u32) -> Result<Vec<(u32, u32)>, OperationError> {
    let steps: Vec<(u32, u32)> = (0..picture.planes.len()).map(|plane| picture.steps(plane)).collect();
    if steps.iter().any(|(across, down)| !left.is_multiple_of(*across) || !top.is_multiple_of(*down)) {
        return Err(OperationError::because(format_args!(
            "+{left}+{top} lies between chroma samples; use even numbers, or yuv=…:444 before it"
        )));
    }
    Ok(steps.into_iter().map(|(across, down)| (left / across, top / down)).collect())
}

/// Reads `WxH`, where no position has a meaning.
pub(super) fn parse_plain_size(text: &str) -> Result<Size, OperationError> {
    match parse_size(text) {
        Ok((size, Position::Middle)) => Ok(size),
        _ => Err(OperationError::because(format_args!("'{text}' is no size; write 640x480"))),
    }
}

/// Reads `WxH` or `WxH+X+Y`.
pub(super) fn parse_size(text: &str) -> Result<(Size, Position), OperationError> {
    let refused = || OperationError::because(format_args!("'{text}' is no size; write 640x480 or 640x480+16+8"));
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
    fn rectangles_are_read_in_both_ways() {
        let area = |text: &str| {
            let mut args = Args::new(text.split(':'));
            let area = Area::take(&mut args)?;
            args.finish().map(|()| area)
        };
        let whole = Size { width: 100, height: 80 };
        for (text, size) in [("64x48", (64, 48)), ("iw/2:ih/3", (50, 26)), ("w=10:h=iw-ih:x=1:y=2", (10, 20))] {
            assert_eq!(area(text).unwrap().size(whole), Ok(Size { width: size.0, height: size.1 }), "{text}");
        }
        assert!(area("64x48+1+2").unwrap().has_position() && area("64:48:1:2").unwrap().has_position());
        assert!(!area("64:48").unwrap().has_position());
        for wrong in ["64", "64:48:1", "64:black", "x:y"] {
            assert!(area(wrong).is_err(), "{wrong}");
        }
        assert!(area("iw-100:4").unwrap().size(whole).is_err());
    }

    #[test]
    fn a_part_lies_inside() {
        let (whole, part) = (Size { width: 9, height: 7 }, Size { width: 3, height: 3 });
        assert_eq!(Position::Middle.within(whole, part), Ok((2, 2)));
        assert!(Position::At(7, 0).within(whole, part).is_err());
        assert!(Position::At(u32::MAX, 0).within(whole, part).is_err());
    }
}
