//! What a chain makes of what a stream says about its frames: the shape of pixels, fields, and what had to be guessed.
//! Never touches samples. Invariant: no guess that would damage frames passes unseen, and no row of one field is mixed
//! with one of the other.

use super::chain::Chain;
use super::format::{Colour, Format};
use super::graph::{Graph, Node};
use super::operation::OperationError;
use super::plan::{PlanError, by_itself};
use super::stream::{Guessed, Interlacing, Ratio, StreamHeader};
use crate::image::Size;

/// A stream after a chain.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Carried {
    /// What to say about the frames that come out.
    pub header: StreamHeader,
    /// Which guesses about the frames that go in the result depends on: tell them to whoever reads it.
    pub relied_on: Guessed,
}

impl Chain {
    /// What becomes of a stream that says this about its frames.
    ///
    /// # Errors
    /// [`PlanError`] if an operation cannot be done to such frames, would mix the rows of two fields, or needs what was
    /// only guessed.
    pub fn carry(&self, stream: StreamHeader) -> Result<Carried, PlanError> {
        let mut carried = Carried { header: stream, relied_on: Guessed::default() };
        for link in self.links() {
            let before = carried.header.format;
            let refused = |why| PlanError { operation: link.text.clone(), format: before, why };
            let (graph, after) = by_itself(link, before)?;
            if carried.header.interlacing.has_fields() && !graph.nodes().iter().all(keeps_fields) {
                return Err(refused(mixes_fields(&graph)));
            }
            carried.header.format = after;
            link.operation.carry(&mut carried, before).map_err(refused)?;
            // Only luma and chroma have a matrix.
            carried.header.guessed.matrix &= matches!(after.colour(), Colour::Yuv(_));
        }
        Ok(carried)
    }
}

impl Carried {
    /// The operation mixes colours of a picture with luma and chroma as its matrix and range say.
    pub(crate) fn uses_coding(&mut self, before: Format) {
        let guessed = self.header.guessed;
        match before.colour() {
            Colour::Yuv(_) => {
                self.relied_on.matrix |= guessed.matrix;
                self.relied_on.range |= guessed.range;
            }
            Colour::Mono(_) => self.relied_on.range |= guessed.range,
            Colour::Rgb => {}
        }
    }

    /// The operation would damage colours whose matrix was guessed wrong.
    pub(crate) fn needs_matrix(&mut self, before: Format) -> Result<(), OperationError> {
        let Colour::Yuv(yuv) = before.colour() else { return Ok(()) };
        if self.header.guessed.matrix {
            return Err(OperationError::because(format_args!(
                "the stream does not say the matrix of its colours, and {} is only a guess from its size; say it with \
                 --matrix 2020 (most HDR video), or assume=2020 before it",
                yuv.matrix
            )));
        }
        Ok(())
    }

    /// The operation made another size of the same picture.
    pub(crate) fn stretch(&mut self, from: Size) {
        let to = self.header.format.size();
        let across = u128::from(from.width) * u128::from(to.height);
        let down = u128::from(from.height) * u128::from(to.width);
        self.header.aspect = self
            .header
            .aspect
            .map(|aspect| reduced(u128::from(aspect.numerator) * across, u128::from(aspect.denominator) * down));
    }

    /// The operation turned the picture by a quarter.
    pub(crate) fn turn(&mut self) {
        let turned = |Ratio { numerator, denominator }| Ratio { numerator: denominator, denominator: numerator };
        self.header.aspect = self.header.aspect.map(turned);
    }
}

/// The ratio in its smallest numbers; the nearest that can be written, if they are too large.
fn reduced(numerator: u128, denominator: u128) -> Ratio {
    let (mut a, mut b) = (numerator, denominator);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    let (mut numerator, mut denominator) = (numerator / a.max(1), denominator / a.max(1));
    while numerator.max(denominator) > u128::from(u32::MAX) {
        (numerator, denominator) = (numerator / 2, denominator / 2);
    }
    Ratio { numerator: numerator.max(1) as u32, denominator: denominator.max(1) as u32 }
}

/// Whether each row comes from at most one row, of its own field.
fn keeps_fields(node: &Node) -> bool {
    let Node::Pass { pass, .. } = node else { return true };
    (0..pass.output().height).all(|y| {
        let reach = pass.reach(y..y + 1);
        reach.is_empty() || (reach.len() == 1 && reach.start % 2 == y % 2)
    })
}

fn mixes_fields(graph: &Graph) -> OperationError {
    let moved = graph.nodes().iter().all(|node| match node {
        Node::Source { .. } => true,
        Node::Pass { pass, .. } => (0..pass.output().height).all(|y| pass.reach(y..y + 1).len() <= 1),
    });
    let what = if moved { "would exchange the two fields" } else { "mixes rows of two fields" };
    OperationError::because(format_args!(
        "the stream is interlaced, and this {what}; deinterlace it before (ffmpeg: -vf bwdif), or put assume=progressive \
         before it if its header is wrong"
    ))
}

impl Interlacing {
    /// Whether rows of a frame belong to two moments.
    fn has_fields(self) -> bool {
        match self {
            Self::TopFirst | Self::BottomFirst | Self::Mixed => true,
            Self::Progressive | Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_in_their_smallest_numbers() {
        let ratio = |numerator, denominator| Ratio { numerator, denominator };
        assert_eq!(reduced(720 * 16, 576 * 20), ratio(1, 1));
        assert_eq!(reduced(64 * 6, 45 * 4), ratio(32, 15));
        let huge = reduced(u128::MAX / 3 * 2, u128::MAX / 3);
        assert_eq!(huge, ratio(2, 1));
        let odd = reduced((1 << 100) + 1, 1 << 99);
        assert!((f64::from(odd.numerator) / f64::from(odd.denominator) - 2.0).abs() < 1e-6, "{odd:?}");
    }
}
