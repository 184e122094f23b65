//! Which rows of a level a kernel works on, and which of them its buffers hold.

use std::ops::Range;

use crate::image::Size;

/// Rows of a level, in buffers that begin with one of its rows.
#[derive(Copy, Clone, Debug)]
pub(super) struct Window {
    /// The level's size.
    pub(super) size: Size,
    /// The row of the level that the buffers begin with.
    pub(super) first: u32,
    /// The first row to work on.
    pub(super) from: u32,
    /// How many rows to work on.
    pub(super) rows: u32,
}

impl Window {
    /// All of a level.
    pub(super) fn whole(size: Size) -> Self {
        Self { size, first: 0, from: 0, rows: size.height }
    }

    /// Some rows, in buffers that begin with `first`.
    pub(super) fn part(size: Size, first: u32, rows: Range<u32>) -> Self {
        Self { size, first, from: rows.start, rows: rows.len() as u32 }
    }
}
