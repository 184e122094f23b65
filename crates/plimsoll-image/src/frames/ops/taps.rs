//! The taps of a filter over a small window as a table that its kernel and its twin read: three numbers each, columns to
//! the right, rows down, and a weight.
//! Invariant: there is at least one tap, and none lies outside the reach.

use super::edges::Padded;

/// Numbers of a tap in a table.
const NUMBERS: usize = 3;

/// What is seen at some distance, and how much it counts.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Tap {
    pub(super) right: i32,
    pub(super) down: i32,
    pub(super) weight: f32,
}

/// How far the taps see, across and down.
pub(super) fn reach(taps: &[Tap]) -> (u32, u32) {
    let furthest = |of: fn(&Tap) -> i32| taps.iter().map(|tap| of(tap).unsigned_abs()).max().unwrap_or(0);
    (furthest(|tap| tap.right), furthest(|tap| tap.down))
}

/// The taps as a table.
pub(super) fn table(taps: &[Tap]) -> Vec<f32> {
    taps.iter().flat_map(|tap| [tap.right as f32, tap.down as f32, tap.weight]).collect()
}

/// Each tap's weight with what it sees from the pixels of row `y`.
pub(super) fn seen<'a>(table: &[f32], padded: &'a Padded, y: u32) -> Vec<(f32, &'a [f32])> {
    let (taps, _) = table.as_chunks::<NUMBERS>();
    taps.iter().map(|[right, down, weight]| (*weight, padded.seen(y, (*right as i32, *down as i32)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::graph::Rows;
    use crate::image::Size;

    #[test]
    fn a_table_gives_back_its_taps() {
        let taps = [Tap { right: -1, down: 0, weight: 0.5 }, Tap { right: 0, down: 2, weight: 3.0 }];
        assert_eq!(reach(&taps), (1, 2));
        let plane = [1.0, 2.0, 3.0];
        let padded = Padded::new(&Rows::new(&plane, 1), Size { width: 1, height: 3 }, 0..1, (1, 2));
        assert_eq!(seen(&table(&taps), &padded, 0), [(0.5, &[1.0, 1.0, 1.0][..]), (3.0, &[3.0, 3.0])]);
    }
}
