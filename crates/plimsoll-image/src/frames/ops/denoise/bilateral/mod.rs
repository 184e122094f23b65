//! `denoise=bilateral`: each pixel the mean of those around it, which count less the further away and the more different
//! they are, so that edges stay. All planes, each by its own samples; chroma sees as far in the picture as luma.

mod pass;

use std::f64::consts::LOG2_E;

use self::pass::BilateralPass;
use crate::frames::chain::Args;
use crate::frames::graph::Graph;
use crate::frames::operation::{Operation, OperationError};
use crate::frames::ops::taps::{self, Tap};
use crate::frames::picture::Picture;
use crate::image::Size;

/// How many deviations away pixels still count: there their weight is e^-2, a seventh.
const DEVIATIONS: f64 = 2.0;

#[derive(Debug)]
pub(super) struct Bilateral {
    space: f64,
    tone: f64,
}

impl Bilateral {
    pub(super) fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
        // The widest sees 7 pixels to each side: 149 taps.
        let space = args.number("space", 0.5..=3.5, 1.5)?;
        let tone = args.number("tone", 0.001..=1.0, 0.05)?;
        Ok(Box::new(Self { space, tone }))
    }
}

impl Operation for Bilateral {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let whole = picture.clone();
        Ok(picture.each(graph, whole.format, |graph, plane, input| {
            let (across, down) = whole.steps(plane);
            let taps = taps_within(self.space / f64::from(across), self.space / f64::from(down));
            let (reach_across, reach_down) = taps::reach(&taps);
            let Size { width, height } = graph.size_of(input);
            let pass = BilateralPass {
                width,
                height,
                taps: taps.len() as u32,
                tone: exponent(self.tone) as f32,
                reach_across,
                reach_down,
                padding: [0; 2],
            };
            graph.pass_with(pass, taps::table(&taps), &[input])[0]
        }))
    }
}

/// What a distance squared is multiplied by to give the power of two that a Gaussian of this deviation has there.
fn exponent(deviation: f64) -> f64 {
    -LOG2_E / (2.0 * deviation * deviation)
}

/// What lies within an ellipse about a pixel, row by row, weighed by a power of two.
fn taps_within(across: f64, down: f64) -> Vec<Tap> {
    let reach = |deviation: f64| (DEVIATIONS * deviation).floor() as i32;
    let tap = |(right, down_by): (i32, i32)| {
        let distance = (f64::from(right) / across).powi(2) + (f64::from(down_by) / down).powi(2);
        (distance <= DEVIATIONS * DEVIATIONS).then(|| Tap {
            right,
            down: down_by,
            weight: (exponent(1.0) * distance) as f32,
        })
    };
    let rows = -reach(down)..=reach(down);
    rows.flat_map(|y| (-reach(across)..=reach(across)).map(move |x| (x, y))).filter_map(tap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_lie_in_an_ellipse_about_the_pixel() {
        assert_eq!(taps_within(1.5, 1.5).len(), 29);
        assert_eq!(taps::reach(&taps_within(3.5, 1.75)), (7, 3));
        let middle = Tap { right: 0, down: 0, weight: -0.0 };
        assert_eq!(taps_within(0.25, 0.25), [middle]);
    }
}
