//! A frame as an operation sees it while a chain is planned: a format, and planes of numbers from 0 (the lowest code)
//! to 1 (the highest).

use super::format::Format;
use super::graph::{Graph, Plane, PlaneList};
use crate::image::Size;

/// A picture in a graph.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    /// What the planes stand for. Interleaving is over: red, green and blue are planes.
    pub(crate) format: Format,
    /// One plane, or three of the sizes that the format says.
    pub(crate) planes: PlaneList,
}

impl Picture {
    /// The picture with each plane through passes of its own. `pass` sees the plane and its number; `format` is what
    /// comes out.
    pub(crate) fn each(
        self,
        graph: &mut Graph,
        format: Format,
        mut pass: impl FnMut(&mut Graph, usize, Plane) -> Plane,
    ) -> Self {
        let planes: PlaneList =
            self.planes.iter().enumerate().map(|(number, plane)| pass(graph, number, *plane)).collect();
        debug_assert!(planes.iter().zip(format.plane_sizes()).all(|(plane, size)| graph.size_of(*plane) == size));
        Self { format, planes }
    }

    /// Luma samples for each sample of a plane, across and down: 1 but for chroma planes.
    pub(crate) fn steps(&self, plane: usize) -> (u32, u32) {
        self.format.steps(plane)
    }

    /// Pixels in each direction.
    pub(crate) fn size(&self) -> Size {
        self.format.size()
    }
}
