//! `blur`: a Gaussian, first across and then down; a wide one by way of fewer samples (`wide.rs`).

mod passes;
mod weigh;
mod wide;

use self::passes::{AcrossPass, DownPass};
use self::wide::{WIDE_MIN, Wide};
use crate::frames::chain::{Args, number};
use crate::frames::graph::{Graph, Plane};
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About = About {
    name: "blur",
    usage: "blur=SIGMA",
    what: "a Gaussian blur; SIGMA is its deviation in pixels, 0.1 to 64",
    parse,
};

/// The narrowest blur still does a little, the widest reaches 256 rows up and down.
const SIGMAS: std::ops::RangeInclusive<f64> = 0.1..=64.0;

#[derive(Debug)]
struct Blur {
    sigma: f64,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    Ok(Box::new(Blur { sigma: parse_sigma(args)? }))
}

/// The deviation of a blur, which must be written.
pub(super) fn parse_sigma(args: &mut Args<'_>) -> Result<f64, OperationError> {
    number("sigma", args.require("sigma")?, SIGMAS)
}

impl Operation for Blur {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let gaussians: Vec<Gaussian> =
            (0..picture.planes.len()).map(|plane| Gaussian::of(&picture, plane, self.sigma)).collect();
        let format = picture.format;
        Ok(picture.each(graph, format, |graph, plane, input| gaussians[plane].blurred(graph, input)))
    }
}

/// A blur of one plane: the deviations in its samples.
pub(super) struct Gaussian {
    across: f64,
    down: f64,
    depth: u8,
}

impl Gaussian {
    /// A blur of a plane that looks the same in the picture, however many samples the plane has.
    pub(super) fn of(picture: &Picture, plane: usize, sigma: f64) -> Self {
        let (across, down) = picture.steps(plane);
        Self { across: sigma / f64::from(across), down: sigma / f64::from(down), depth: picture.format.depth() }
    }

    /// The plane, blurred. Wide blurs lie around narrow ones, which then have fewer samples.
    pub(super) fn blurred(&self, graph: &mut Graph, input: Plane) -> Plane {
        let Size { width, height } = graph.size_of(input);
        let wide = |sigma: f64, side: u32| (sigma >= WIDE_MIN).then(|| Wide::new(side, sigma, self.depth));
        let (across, down) = (wide(self.across, width), wide(self.down, height));
        let mut plane = input;
        plane = down.iter().fold(plane, |plane, down| down.shrink_down(graph, plane));
        plane = match &across {
            Some(across) => {
                let shrunk = across.shrink_across(graph, plane);
                across.grow_across(graph, shrunk)
            }
            None => self.narrow_across(graph, plane),
        };
        match &down {
            Some(down) => down.grow_down(graph, plane),
            None => self.narrow_down(graph, plane),
        }
    }

    fn narrow_across(&self, graph: &mut Graph, input: Plane) -> Plane {
        let (Size { width, height }, weights) = (graph.size_of(input), weights(self.across, self.depth));
        let pass = AcrossPass { width, height, reach: weights.len() as u32 - 1, padding: 0 };
        graph.pass_with(pass, weights, &[input])[0]
    }

    fn narrow_down(&self, graph: &mut Graph, input: Plane) -> Plane {
        let (Size { width, height }, weights) = (graph.size_of(input), weights(self.down, self.depth));
        let pass = DownPass { width, height, reach: weights.len() as u32 - 1, padding: 0 };
        graph.pass_with(pass, weights, &[input])[0]
    }
}

/// The weights of a Gaussian by distance; all taps together make 1.
///
/// It is cut off at three deviations for samples of 8 bits, at four for more. Beside a step from black to white that
/// leaves out 0.34 of a code at 8 bits and 0.13 at 12, less than rounding; three deviations would leave out 5.5 at 12
/// bits, and four take a third more taps.
fn weights(sigma: f64, depth: u8) -> Vec<f32> {
    let deviations = if depth > 8 { 4.0 } else { 3.0 };
    let reach = (deviations * sigma).ceil() as i32;
    let bell: Vec<f64> = (0..=reach).map(|away| (-0.5 * (f64::from(away) / sigma).powi(2)).exp()).collect();
    let all = 2.0 * bell.iter().sum::<f64>() - bell[0];
    bell.into_iter().map(|weight| (weight / all) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_make_one_and_have_the_deviation() {
        for sigma in [0.05, 0.5, 1.0, 2.0, 7.3, 64.0] {
            let weights = weights(sigma, 16);
            let both = |of: &dyn Fn(f64) -> f64| -> f64 {
                (1..).zip(&weights[1..]).map(|(k, weight)| 2.0 * of(f64::from(k)) * f64::from(*weight)).sum()
            };
            assert!((f64::from(weights[0]) + both(&|_| 1.0) - 1.0).abs() < 1e-6, "{sigma}");
            let deviation = both(&|k| k * k).sqrt();
            // Below half a pixel the samples of a bell are no bell any more.
            assert!(sigma < 1.0 || (deviation / sigma - 1.0).abs() < 1e-3, "{sigma}: {deviation}");
        }
    }
}
