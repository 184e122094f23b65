//! Chroma of pictures that are mirrored or turned, kept under its luma.
//!
//! A mirrored chroma grid is the same grid again where samples lie between two luma samples of an even side, or on the
//! first of two of an odd side. Elsewhere its samples are moved to where the format says that they lie: by a cubic where
//! that is half the way to the next (two flips then give back almost the same frame), by straight lines where a turn makes
//! it a quarter.

use super::chroma::{Places, places, step};
use super::resample::{Axis, ResamplePass, Step};
use crate::frames::format::Yuv;
use crate::frames::graph::{Graph, Plane};
use crate::image::Size;

/// What is done to a picture.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Orientation {
    /// The order of columns is reversed.
    pub(crate) mirrors_across: bool,
    /// The order of rows is reversed.
    pub(crate) mirrors_down: bool,
    /// Columns become rows, and rows columns, after that.
    pub(crate) exchanges: bool,
}

/// Samples to the middle between each and the next.
const HALF_LATER: Step = Step::Move([-0.0625, 0.5625, 0.5625, -0.0625]);

/// A chroma plane of a picture whose luma has this size, through passes that do this to it.
pub(crate) fn oriented(
    graph: &mut Graph,
    plane: Plane,
    (yuv, luma): (Yuv, Size),
    orientation: Orientation,
    pass: impl FnOnce(&mut Graph, Plane) -> Plane,
) -> Plane {
    let moves = [Axis::Across, Axis::Down].map(|axis| Moves::of(yuv, luma, orientation, axis));
    let moved = |graph: &mut Graph, plane: Plane, step: Option<(Axis, Step)>| {
        let Some((axis, step)) = step else { return plane };
        let size = graph.size_of(plane);
        graph.pass(ResamplePass::new(size, size, axis, step), plane)
    };
    let plane = moves.iter().fold(plane, |plane, of| moved(graph, plane, of.before));
    let plane = pass(graph, plane);
    moves.iter().fold(plane, |plane, of| moved(graph, plane, of.after))
}

/// How samples move along one direction of the input, before the picture is mirrored or turned and after that.
struct Moves {
    before: Option<(Axis, Step)>,
    after: Option<(Axis, Step)>,
}

impl Moves {
    fn of(yuv: Yuv, luma: Size, orientation: Orientation, axis: Axis) -> Self {
        let becomes = match (axis, orientation.exchanges) {
            (Axis::Across, false) | (Axis::Down, true) => Axis::Across,
            (Axis::Down, false) | (Axis::Across, true) => Axis::Down,
        };
        let (mirrors, side) = match axis {
            Axis::Across => (orientation.mirrors_across, luma.width),
            Axis::Down => (orientation.mirrors_down, luma.height),
        };
        let (from, to) = (places(yuv, axis), places(yuv, becomes));
        let change = step(from, to);
        match (is_same_mirrored(from, side) || !mirrors, change) {
            (true, None) => Self { before: None, after: None },
            (true, Some(change)) => Self { before: None, after: Some((becomes, change)) },
            // Mirrored in other places it is the same grid.
            (false, Some(change)) => Self { before: Some((axis, change)), after: None },
            (false, None) if from == Places::First => Self { before: Some((axis, HALF_LATER)), after: None },
            (false, None) => Self { before: None, after: Some((becomes, HALF_LATER)) },
        }
    }
}

/// Whether samples in these places, over so many luma samples, lie in these places when they are mirrored.
fn is_same_mirrored(places: Places, side: u32) -> bool {
    match places {
        Places::Every => true,
        Places::First => !side.is_multiple_of(2),
        Places::Between => side.is_multiple_of(2),
    }
}
