//! A chain planned for frames of one format: programs of passes, and the format that comes out.
//! Never touches a device. A chain that looks at other frames has two parts: what is done to each frame by itself
//! (once a frame and device, kept there), and what is done to a frame among its neighbours.

use super::chain::{Chain, Link};
use super::format::Format;
use super::graph::{Graph, Plane, PlaneList};
use super::operation::OperationError;
use super::picture::Picture;

/// Why a chain cannot be done to frames of some format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation} cannot be done to frames of {format}: {why}")]
pub struct PlanError {
    /// The operation as it was written.
    pub operation: String,
    /// The frames as they arrive at it.
    pub format: Format,
    /// Why not.
    pub why: OperationError,
}

/// A graph with both its ends.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) graph: Graph,
    /// The format of the frame whose planes are the graph's sources; `None` if planes are handed in.
    pub(crate) from: Option<Format>,
    /// The planes that are the result.
    pub(crate) results: PlaneList,
    /// The format of the frame they make; `None` if they stay planes.
    pub(crate) to: Option<Format>,
}

/// A chain for frames of one format.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) output: Format,
    /// For a chain that looks at other frames: what is done to each frame by itself before, from a frame to planes.
    first: Option<Program>,
    /// Everything; or the rest, from the planes of the frame and of the others to a frame.
    last: Program,
    /// The rest for the only frame of a stream.
    last_alone: Option<Program>,
}

impl Program {
    /// Leaves out passes that lead to no result.
    fn new(graph: Graph, from: Option<Format>, mut results: PlaneList, to: Option<Format>) -> Self {
        let graph = graph.leading_to(&mut results);
        Self { graph, from, results, to }
    }
}

impl Chain {
    /// The format of the frames that come out, if frames of this format go in.
    ///
    /// # Errors
    /// [`PlanError`] if an operation cannot be done to them.
    pub fn output(&self, input: Format) -> Result<Format, PlanError> {
        Plan::new(self, input).map(|plan| plan.output)
    }
}

impl Plan {
    pub(crate) fn new(chain: &Chain, input: Format) -> Result<Self, PlanError> {
        match chain.links().iter().position(|link| link.operation.frames_around() > 0) {
            None => Self::alone(chain, input),
            Some(at) => Self::among(chain, input, at),
        }
    }

    /// What is done last: everything, or what follows the first part.
    pub(crate) fn last(&self, has_others: bool) -> &Program {
        self.last_alone.as_ref().filter(|_| !has_others).unwrap_or(&self.last)
    }

    /// What is done to each frame by itself before it is looked at among others; `None` if it is not.
    pub(crate) fn first(&self) -> Option<&Program> {
        self.first.as_ref()
    }

    fn alone(chain: &Chain, input: Format) -> Result<Self, PlanError> {
        let mut graph = Graph::default();
        let mut picture = sources(&mut graph, input);
        for at in 0..chain.links().len() {
            picture = apply(chain, at, &mut graph, picture, &[])?;
        }
        let Picture { format: output, planes: results } = picture;
        let last = Program::new(graph, Some(input), results, Some(output));
        Ok(Self { output, first: None, last, last_alone: None })
    }

    fn among(chain: &Chain, input: Format, at: usize) -> Result<Self, PlanError> {
        let mut graph = Graph::default();
        let mut picture = sources(&mut graph, input);
        for before in 0..at {
            picture = apply(chain, before, &mut graph, picture, &[])?;
        }
        let (results, places) = distinct(&picture.planes);
        let between = Between { format: picture.format, places };
        let first = Program::new(graph, Some(input), results, None);
        let others = 2 * chain.links()[at].operation.frames_around();
        let (last, output) = rest_of(chain, &between, at, others)?;
        let (last_alone, _) = rest_of(chain, &between, at, 0)?;
        Ok(Self { output, first: Some(first), last, last_alone: Some(last_alone) })
    }
}

/// A picture between the two parts of a chain.
struct Between {
    format: Format,
    /// For each plane of the picture, which of the planes that are kept it is.
    places: Vec<usize>,
}

impl Between {
    fn sources(&self, graph: &mut Graph) -> Picture {
        let mut kept = PlaneList::new();
        for (place, size) in self.places.iter().zip(self.format.plane_sizes()) {
            if *place == kept.len() {
                kept.push(graph.source(size));
            }
        }
        Picture { format: self.format, planes: self.places.iter().map(|place| kept[*place]).collect() }
    }
}

/// Each of some planes once, and where each of them is then: a picture may name one plane several times.
fn distinct(planes: &[Plane]) -> (PlaneList, Vec<usize>) {
    let mut kept = PlaneList::new();
    let mut place = |plane: &Plane| {
        kept.iter().position(|other| other == plane).unwrap_or_else(|| {
            kept.push(*plane);
            kept.len() - 1
        })
    };
    let places = planes.iter().map(&mut place).collect();
    (kept, places)
}

/// What is done to a frame among others, and the format that comes out.
fn rest_of(chain: &Chain, between: &Between, at: usize, others: usize) -> Result<(Program, Format), PlanError> {
    let mut graph = Graph::default();
    let picture = between.sources(&mut graph);
    let others: Vec<Picture> = (0..others).map(|_| between.sources(&mut graph)).collect();
    let mut picture = apply(chain, at, &mut graph, picture, &others)?;
    for after in at + 1..chain.links().len() {
        picture = apply(chain, after, &mut graph, picture, &[])?;
    }
    let Picture { format: output, planes: results } = picture;
    Ok((Program::new(graph, None, results, Some(output)), output))
}

/// One operation by itself on a picture of this format: its passes, and the format that comes out.
pub(crate) fn by_itself(link: &Link, format: Format) -> Result<(Graph, Format), PlanError> {
    let mut graph = Graph::default();
    let picture = sources(&mut graph, format);
    let others: Vec<Picture> = (0..2 * link.operation.frames_around()).map(|_| sources(&mut graph, format)).collect();
    let planned = link.operation.plan_among(&mut graph, picture, &others);
    let Picture { format: after, mut planes } =
        planned.map_err(|why| PlanError { operation: link.text.clone(), format, why })?;
    Ok((graph.leading_to(&mut planes), after))
}

fn sources(graph: &mut Graph, format: Format) -> Picture {
    let planes = format.plane_sizes().into_iter().map(|size| graph.source(size)).collect();
    Picture { format, planes }
}

fn apply(
    chain: &Chain,
    at: usize,
    graph: &mut Graph,
    picture: Picture,
    others: &[Picture],
) -> Result<Picture, PlanError> {
    let (link, format) = (&chain.links()[at], picture.format);
    let planned = link.operation.plan_among(graph, picture, others);
    planned.map_err(|why| PlanError { operation: link.text.clone(), format, why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::format::Colour;
    use crate::image::Size;

    #[test]
    fn passes_that_lead_nowhere_are_left_out() {
        let format = Format::new(Size { width: 8, height: 4 }, 8, Colour::Rgb).unwrap();
        let chain = "yuv=709:full:420,blur=1,mono".parse().unwrap();
        let plan = Plan::new(&chain, format).unwrap();
        // Three sources, one mix, the blur of luma across and down.
        assert_eq!(plan.last(false).graph.nodes().len(), 3 + 1 + 2);
    }

    #[test]
    fn a_plane_that_a_picture_names_thrice_is_kept_once() {
        let format = Format::new(Size { width: 4, height: 2 }, 8, Colour::Rgb).unwrap();
        let mut graph = Graph::default();
        let Picture { planes, .. } = sources(&mut graph, format);
        let (kept, places) = distinct(&[planes[1], planes[2], planes[1]]);
        assert_eq!((&*kept, &*places), (&planes[1..], &[0, 1, 0][..]));
        let mut rest = Graph::default();
        let picture = Between { format, places }.sources(&mut rest);
        assert_eq!(rest.nodes().len(), 2);
        assert_eq!(picture.planes[0], picture.planes[2]);
        assert_ne!(picture.planes[0], picture.planes[1]);
    }
}
