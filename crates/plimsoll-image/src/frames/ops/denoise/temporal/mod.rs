//! `denoise=temporal`: each pixel the mean of those in its place in the frames around, which count less the more the
//! pixels about them differ. All planes, each by its own samples.
//!
//! A frame counts exp(-d² / STRENGTH²), d² being the mean of the squared differences of 3 x 3 pixels: one pixel's noise
//! does not decide, and where something moved, or the scene was cut, the other frame counts next to nothing.

mod passes;
mod weigh;

use std::f64::consts::LOG2_E;

use self::passes::{FirstPass, LastPass, NextPass};
use crate::frames::chain::Args;
use crate::frames::graph::{Graph, Plane};
use crate::frames::operation::{Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

/// Pixels that are compared.
const COMPARED: f64 = 9.0;

#[derive(Debug)]
pub(super) struct Temporal {
    frames: usize,
    strength: f64,
}

impl Temporal {
    pub(super) fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
        let frames = args.number("frames", 1..=3, 1)?;
        let strength = args.number("strength", 0.001..=1.0, 0.04)?;
        Ok(Box::new(Self { frames, strength }))
    }

    /// A plane and those in its place in other frames, of which there is at least one, as one plane.
    fn mean(&self, graph: &mut Graph, own: Plane, others: impl IntoIterator<Item = Plane>) -> Plane {
        let Size { width, height } = graph.size_of(own);
        let strength = (-LOG2_E / (COMPARED * self.strength * self.strength)) as f32;
        let mut sums: Option<(Plane, Plane)> = None;
        for other in others {
            let planes = match sums {
                None => {
                    let pass = FirstPass { width, height, strength, padding: 0 };
                    graph.pass_with(pass, Vec::new(), &[own, other])
                }
                Some((sum, weight)) => {
                    let pass = NextPass { width, height, strength, padding: 0 };
                    graph.pass_with(pass, Vec::new(), &[own, other, sum, weight])
                }
            };
            sums = Some((planes[0], planes[1]));
        }
        sums.map_or(own, |(sum, weight)| {
            let pass = LastPass { width, height, padding: [0; 2] };
            graph.pass_with(pass, Vec::new(), &[own, sum, weight])[0]
        })
    }
}

impl Operation for Temporal {
    /// The only frame of a stream stays as it is.
    fn plan(&self, _: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        Ok(picture)
    }

    fn frames_around(&self) -> usize {
        self.frames
    }

    fn plan_among(&self, graph: &mut Graph, picture: Picture, others: &[Picture]) -> Result<Picture, OperationError> {
        let format = picture.format;
        Ok(picture.each(graph, format, |graph, plane, own| {
            self.mean(graph, own, others.iter().map(|other| other.planes[plane]))
        }))
    }
}
