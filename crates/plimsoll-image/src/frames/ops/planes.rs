//! Which planes of a picture an operation changes.

use crate::frames::chain::{Args, one_of};
use crate::frames::format::{Colour, Format};
use crate::frames::operation::OperationError;
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
    pub(super) fn parse(args: &mut Args<'_>) -> Result<Self, OperationError> {
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
