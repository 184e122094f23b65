//! What filters see beyond the edge of a plane: its first or last row and column again.
//! Never filters. Invariant: what a padded row holds does not depend on the band it was padded for.

use std::ops::Range;

use crate::frames::graph::Rows;
use crate::image::Size;

/// The input rows that output rows are made of, by a filter that sees `reach` rows up and down.
pub(super) fn rows_around(rows: Range<u32>, reach: u32, height: u32) -> Range<u32> {
    rows.start.saturating_sub(reach)..rows.end.saturating_add(reach).min(height)
}

/// The row that is seen `away` rows from row `y`.
pub(super) fn row_seen(y: u32, away: i32, height: u32) -> u32 {
    y.saturating_add_signed(away).min(height - 1)
}

/// A row with its first and last sample again `reach` times before and after it.
pub(super) fn pad_into(padded: &mut Vec<f32>, row: &[f32], reach: usize) {
    padded.clear();
    extend_padded(padded, row, reach);
}

fn extend_padded(padded: &mut Vec<f32>, row: &[f32], reach: usize) {
    padded.extend(std::iter::repeat_n(row[0], reach));
    padded.extend_from_slice(row);
    padded.extend(std::iter::repeat_n(row[row.len() - 1], reach));
}

/// Rows of a plane, padded on all sides.
pub(super) struct Padded {
    samples: Vec<f32>,
    first: u32,
    reach: (u32, u32),
    width: usize,
}

impl Padded {
    /// All that a filter sees from these rows, if it sees so many columns and rows.
    pub(super) fn new(input: &Rows<'_>, size: Size, rows: Range<u32>, (across, down): (u32, u32)) -> Self {
        let width = (size.width + 2 * across) as usize;
        let count = rows.len() + 2 * down as usize;
        let mut samples = Vec::with_capacity(width * count);
        for at in 0..count {
            let y = row_seen(rows.start, at as i32 - down as i32, size.height);
            extend_padded(&mut samples, input.row(y), across as usize);
        }
        Self { samples, first: rows.start, reach: (across, down), width }
    }

    /// What is seen from each pixel of row `y`, at this distance: as many samples as a row has, and those further right.
    pub(super) fn seen(&self, y: u32, (right, down): (i32, i32)) -> &[f32] {
        let row = (y - self.first + self.reach.1).saturating_add_signed(down) as usize;
        let column = self.reach.0.saturating_add_signed(right) as usize;
        &self.samples[row * self.width..][column..self.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 2, height: 3 };

    #[test]
    fn edges_repeat() {
        let plane = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let padded = Padded::new(&Rows::new(&plane, 2), SIZE, 1..3, (1, 2));
        assert_eq!(padded.seen(1, (-1, -2)), [1.0, 1.0, 2.0, 2.0]);
        assert_eq!(padded.seen(1, (0, 0)), [3.0, 4.0, 4.0]);
        assert_eq!(padded.seen(2, (1, 2)), [6.0, 6.0]);
    }

    #[test]
    fn no_row_outside_is_asked_for() {
        assert_eq!(rows_around(0..2, 5, 3), 0..3);
        assert_eq!(rows_around(10..12, 3, 100), 7..15);
        assert_eq!([row_seen(1, -4, 3), row_seen(1, 0, 3), row_seen(1, 4, 3)], [0, 1, 2]);
    }
}
