//! `hue`: colours turned around grey, and more or less of them. Luma stays.
//!
//! Chroma is turned about its middle, whatever its sampling; red, green and blue are turned as BT.709's chroma is.

mod pass;

use self::pass::HuePass;
use crate::frames::chain::{Args, number};
use crate::frames::convert::{Coding, mixed_with_hue};
use crate::frames::format::Colour;
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;

pub(super) const ABOUT: About = About {
    name: "hue",
    usage: "hue=DEGREES[:SATURATION]",
    what: "colours turned around grey by DEGREES, towards where red becomes yellow; and times SATURATION (1)",
    parse,
};

/// Turns either way at most.
const DEGREES_MAX: f64 = 36_000.0;
/// More would only leave the purest colours.
const SATURATION_MAX: f64 = 10.0;

/// Colours turned, and made more or less.
#[derive(Debug)]
pub(super) struct Hue {
    pub(super) degrees: f64,
    pub(super) saturation: f64,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let degrees = args.take_named("h").or_else(|| args.take("degrees"));
    let degrees = degrees.map(|text| number("degrees", text, -DEGREES_MAX..=DEGREES_MAX)).transpose()?;
    let saturation = args.take_named("s").or_else(|| args.take("saturation"));
    let saturation = saturation.map(parse_saturation).transpose()?;
    if degrees.is_none() && saturation.is_none() {
        return Err(OperationError::because("degrees are missing"));
    }
    Ok(Box::new(Hue { degrees: degrees.unwrap_or(0.0), saturation: saturation.unwrap_or(1.0) }))
}

pub(super) fn parse_saturation(text: &str) -> Result<f64, OperationError> {
    number("saturation", text, 0.0..=SATURATION_MAX)
}

impl Operation for Hue {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let (sin, cos) = self.degrees.to_radians().sin_cos();
        let (cos, sin) = (cos * self.saturation, sin * self.saturation);
        let format = picture.format;
        match format.colour() {
            Colour::Mono(_) => Ok(picture),
            Colour::Rgb => Ok(mixed_with_hue(graph, picture, cos, sin)),
            Colour::Yuv(_) => {
                let (size, middle) = (graph.size_of(picture.planes[1]), Coding::of(format, 1).offset);
                let pass = HuePass::new(size, cos, sin, middle);
                let chroma = graph.pass_with(pass, Vec::new(), &picture.planes[1..]);
                let planes = picture.planes[..1].iter().copied().chain(chroma).collect();
                Ok(Picture { format, planes })
            }
        }
    }
}
