//! Between numbers of chroma samples, at the places where they truly lie.
//!
//! Finer: straight lines between the two nearest samples. Coarser: a triangle two luma samples wide to each side, which
//! is [1 2 1]/4 where a chroma sample lies on a luma sample and [1 3 3 1]/8 where it lies between two. Both leave
//! slopes as they are.

use super::resample::{Axis, ResamplePass, Step};
use crate::frames::format::{Colour, Sampling, Siting, Yuv};
use crate::frames::graph::{Graph, Plane};
use crate::frames::picture::Picture;
use crate::image::Size;

/// Where chroma samples lie in one direction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// On each luma sample.
    Every,
    /// On the first of each two.
    First,
    /// Between each two.
    Between,
}

pub(super) fn places(yuv: Yuv, axis: Axis) -> Places {
    match (axis, yuv.sampling, yuv.siting) {
        (_, Sampling::S444, _) | (Axis::Down, Sampling::S422, _) => Places::Every,
        (Axis::Across, _, Siting::Left | Siting::TopLeft) | (Axis::Down, _, Siting::TopLeft) => Places::First,
        (Axis::Across, _, Siting::Centre) | (Axis::Down, _, Siting::Left | Siting::Centre) => Places::Between,
    }
}

/// The picture with as many chroma samples, and where, as `to` says. Matrix and range stay.
pub(super) fn resampled(graph: &mut Graph, picture: Picture, to: Yuv) -> Picture {
    let Colour::Yuv(from) = picture.format.colour() else { return picture };
    let to = Yuv { sampling: to.sampling, siting: to.siting, ..from };
    let chroma = to.sampling.chroma_size(picture.size());
    let format = picture.format.with_colour(Colour::Yuv(to));
    picture.each(graph, format, |graph, number, plane| match number {
        0 => plane,
        _ => {
            let plane = along(graph, plane, from, to, Axis::Down, chroma);
            along(graph, plane, from, to, Axis::Across, chroma)
        }
    })
}

fn along(graph: &mut Graph, plane: Plane, from: Yuv, to: Yuv, axis: Axis, chroma: Size) -> Plane {
    let Some(step) = step(places(from, axis), places(to, axis)) else { return plane };
    let input = graph.size_of(plane);
    let output = match axis {
        Axis::Across => Size { width: chroma.width, ..input },
        Axis::Down => Size { height: chroma.height, ..input },
    };
    graph.pass(ResamplePass::new(input, output, axis, step), plane)
}

/// What leads from places to others; nothing if they are the same.
pub(super) fn step(from: Places, to: Places) -> Option<Step> {
    use Places::{Between, Every, First};
    match (from, to) {
        (Every, Every) | (First, First) | (Between, Between) => None,
        (First, Every) => Some(Step::Double([0.0, 1.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0])),
        (Between, Every) => Some(Step::Double([0.25, 0.75, 0.0, 0.0], [0.0, 0.75, 0.25, 0.0])),
        (Every, First) => Some(Step::Halve([0.25, 0.5, 0.25, 0.0])),
        (Every, Between) => Some(Step::Halve([0.125, 0.375, 0.375, 0.125])),
        // Half a luma sample is a quarter of the way to the next chroma sample.
        (First, Between) => Some(Step::Move([0.0, 0.75, 0.25, 0.0])),
        (Between, First) => Some(Step::Move([0.25, 0.75, 0.0, 0.0])),
    }
}
