//! The size that `scale` is asked for: `1280x720`, `50%`, `1280x-1`, or side by side as ffmpeg's users do: `iw/2:-2`.

use super::super::expression::{Expression, Sides};
use super::super::geometry::side;
use crate::frames::chain::{Args, number};
use crate::frames::operation::OperationError;
use crate::image::Size;

/// A size, or how it follows from that of the picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    /// This part of both sides: 1 is all.
    Share(f64),
    /// These sides.
    Sides(Side, Side),
}

/// A side of a size.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Side {
    /// This many pixels.
    Is(Expression),
    /// As the picture's shape has it, the nearest multiple of so many pixels.
    InShape(u32),
}

/// What a side that keeps the shape may be a multiple of at most.
const MULTIPLE_MAX: u32 = 256;

impl Side {
    fn parse(text: &str) -> Result<Self, OperationError> {
        match text.strip_prefix('-').map(|multiple| multiple.parse()) {
            Some(Ok(multiple)) if (1..=MULTIPLE_MAX).contains(&multiple) => Ok(Self::InShape(multiple)),
            Some(Ok(multiple)) => Err(OperationError::because(format_args!("-{multiple} is no side"))),
            _ => Expression::parse(text).map(Self::Is),
        }
    }
}

impl Target {
    /// Takes `WxH`, `N%` or `W:H`; `w=` and `h=` name sides.
    pub(super) fn take(args: &mut Args<'_>) -> Result<Self, OperationError> {
        let named = args.take_named("w");
        let first = match named {
            Some(width) => width,
            None => args.require("size")?,
        };
        let at_once = if named.is_none() { Self::parse(first)? } else { None };
        if let Some(target) = at_once {
            return Ok(target);
        }
        let refused = || {
            OperationError::because(format_args!(
                "'{first}' is no size; write 1280x720, 1280x-1, -1x720, 50%, or W:H as iw/2:ih/2"
            ))
        };
        let height = args.take_named("h").or_else(|| args.take("height")).ok_or_else(refused)?;
        Self::sides(first, height).ok_or_else(refused)
    }

    /// Reads `N%` or `WxH`; `None` if it is one side of a size.
    fn parse(text: &str) -> Result<Option<Self>, OperationError> {
        if let Some(percent) = text.strip_suffix('%') {
            let share = number("the share in per cent", percent, 0.01..=100_000.0)? / 100.0;
            return Ok(Some(Self::Share(share)));
        }
        // There is an x in `max`, too.
        Ok(text.match_indices('x').find_map(|(at, _)| Self::sides(&text[..at], &text[at + 1..])))
    }

    fn sides(width: &str, height: &str) -> Option<Self> {
        let (width, height) = (Side::parse(width).ok()?, Side::parse(height).ok()?);
        let literal = |side: &Side| match side {
            Side::Is(expression) => expression.literal(),
            Side::InShape(_) => None,
        };
        let can_be = |side: &Side| literal(side).is_none_or(|side| side >= 1.0);
        let one_is_given = matches!(width, Side::Is(_)) || matches!(height, Side::Is(_));
        (one_is_given && can_be(&width) && can_be(&height)).then_some(Self::Sides(width, height))
    }

    /// Whether a side follows from the other.
    pub(super) fn keeps_shape(&self) -> bool {
        !matches!(self, Self::Sides(Side::Is(_), Side::Is(_)))
    }

    /// The size that a picture of size `whole` gets. A side that was not written is the nearest that has a whole number of
    /// chroma samples: even where there are half as many, because much software takes no odd ones.
    pub(super) fn size(&self, whole: Size, (across, down): (u32, u32)) -> Result<Size, OperationError> {
        let (width, height) = (f64::from(whole.width), f64::from(whole.height));
        let given = |of: &Expression| side(of, Sides { input: whole, output: None });
        let in_shape = |side: f64, multiple: u32, step: u32| {
            let multiple = if multiple.is_multiple_of(step) { multiple } else { multiple * step };
            rounded(side, multiple)
        };
        Ok(match self {
            Self::Share(share) => Size { width: rounded(width * share, across), height: rounded(height * share, down) },
            Self::Sides(Side::Is(width), Side::Is(height)) => Size { width: given(width)?, height: given(height)? },
            Self::Sides(Side::Is(wanted), Side::InShape(multiple)) => {
                let wanted = given(wanted)?;
                Size { width: wanted, height: in_shape(f64::from(wanted) / width * height, *multiple, down) }
            }
            Self::Sides(Side::InShape(multiple), Side::Is(wanted)) => {
                let wanted = given(wanted)?;
                Size { width: in_shape(f64::from(wanted) / height * width, *multiple, across), height: wanted }
            }
            Self::Sides(Side::InShape(_), Side::InShape(_)) => whole,
        })
    }
}

/// A size beyond what an integer holds becomes the largest, which no format takes.
fn rounded(side: f64, step: u32) -> u32 {
    let step = f64::from(step);
    ((side / step).round().max(1.0) * step) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    fn target(text: &str) -> Result<Target, OperationError> {
        let mut args = Args::new(text.split(':'));
        let target = Target::take(&mut args)?;
        args.finish().map(|()| target)
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for wrong in ["", "9", "-1x-1", "0x5", "0%", "%", "4x4+y", "x", "-0x4", "9:lanczos", "9:0", "-1:-1", "w=5"] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sides_that_were_not_written_suit_the_chroma_grid() {
        let whole = size(1366, 768);
        let of = |text: &str, steps| target(text).unwrap().size(whole, steps).unwrap();
        assert_eq!(of("50%", (1, 1)), size(683, 384));
        assert_eq!(of("50%", (2, 2)), size(684, 384));
        assert_eq!(of("1000x-1", (1, 1)), size(1000, 562));
        assert_eq!(of("-1x99", (2, 1)), size(176, 99));
        assert_eq!(of("0.01%", (2, 2)), size(2, 2));
        assert_eq!(of("683x5", (2, 2)), size(683, 5));
    }

    #[test]
    fn sides_may_be_sums_and_stand_side_by_side() {
        let of = |text: &str| target(text).unwrap().size(size(1366, 768), (1, 1)).unwrap();
        assert_eq!(of("1280:720"), size(1280, 720));
        assert_eq!(of("iw/2:ih/2"), size(683, 384));
        assert_eq!(of("iw/2xih/2"), size(683, 384));
        assert_eq!(of("max(ih,iw)x4"), size(1366, 4));
        assert_eq!(of("1000:-8"), size(1000, 560));
        assert_eq!(of("w=100:h=-1"), size(100, 56));
        assert!(target("iw-1366:4").unwrap().size(size(1366, 768), (1, 1)).is_err());
    }
}
