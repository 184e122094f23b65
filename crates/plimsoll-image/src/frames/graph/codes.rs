//! What a pass does to codes as they lie in a frame, where numbers need not be computed with: the CPU rung then leaves
//! them codes (`host/`). Never changes what a pass means: it says the same as its rows do, in fewer words.

use std::ops::Range;

use crate::image::Size;

/// What a pass of one plane does to codes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OnCodes<'a> {
    /// Samples go elsewhere and stay what they are; what is left of the plane is `fill`.
    Move {
        /// Where they go.
        how: Move,
        /// The number of all others.
        fill: f32,
    },
    /// Each sample becomes what it becomes, wherever it lies. Rows of any length may be asked for.
    Map,
    /// Only these rows change, each by itself.
    Rows(Range<u32>),
    /// Samples are weighted sums of neighbours along one direction.
    Windows(Windows<'a>),
}

/// Where samples go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// A rectangle of this size, from a place in the input to a place in the output.
    Window { from: (u32, u32), to: (u32, u32), size: Size },
    /// Left and right exchanged, top and bottom, or both.
    Mirror { across: bool, down: bool },
    /// A quarter turn.
    Turn { clockwise: bool },
}

/// Windows of samples and their weights, for each column or each row of the output.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Windows<'a> {
    /// Whether samples of a column are summed, not of a row.
    pub(crate) down: bool,
    /// Samples of each window.
    pub(crate) taps: u32,
    /// The first sample of each window as the bits of an integer, then the weights of each window.
    pub(crate) table: &'a [f32],
}
