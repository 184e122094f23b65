//! `overlay`: an image laid over every frame.
//!
//! The image's colours are taken as the picture's own red, green and blue are: no primaries are converted. A backslash
//! takes the meaning from a `:`, a `,` or an `=` in its path. Modes other than `normal` mix red, green and blue; to pictures
//! with chroma is added what that changes, so that what the image does not cover stays as it is.

mod add;
mod layer;
mod pass;
mod patch;

use std::path::Path;

use self::add::AddPass;
use self::layer::Layer;
use self::pass::{Mode, OverlayPass};
use self::patch::patches;
use super::geometry::SIDE_MAX;
use crate::frames::carry::Carried;
use crate::frames::chain::{Args, unescaped};
use crate::frames::convert::{differences_to_yuv, to_colour, to_rgb};
use crate::frames::format::{Colour, Format, Range, Yuv};
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About = About {
    name: "overlay",
    usage: "overlay=FILE[:+X+Y|POSITION][:opacity=SHARE][:mode=normal|multiply|screen|add|subtract|darken|lighten|\
            difference|overlay]",
    what: "an image with its transparency over every frame; positions are top-left, top, …, middle, …, bottom-right",
    parse,
};

/// How far from the picture's corner an image may lie.
const OFFSET_MAX: i64 = SIDE_MAX as i64;

#[derive(Debug)]
struct Overlay {
    layer: Layer,
    at: At,
    opacity: f64,
    mode: Mode,
}

/// Where an image lies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum At {
    /// Its first pixel, counted from the picture's; it may lie outside.
    Offset(i64, i64),
    /// Across and down: as many halves of the room that is left, before it.
    Halves(i64, i64),
}

impl At {
    const NAMES: [(&str, Self); 9] = [
        ("top-left", Self::Halves(0, 0)),
        ("top", Self::Halves(1, 0)),
        ("top-right", Self::Halves(2, 0)),
        ("left", Self::Halves(0, 1)),
        ("middle", Self::Halves(1, 1)),
        ("right", Self::Halves(2, 1)),
        ("bottom-left", Self::Halves(0, 2)),
        ("bottom", Self::Halves(1, 2)),
        ("bottom-right", Self::Halves(2, 2)),
    ];

    fn parse(text: &str) -> Result<Self, OperationError> {
        let named = Self::NAMES.iter().find(|(name, _)| *name == text).map(|(_, at)| *at);
        named.or_else(|| Self::parse_offset(text)).ok_or_else(|| {
            let names = Self::NAMES.map(|(name, _)| name).join(", ");
            OperationError::because(format_args!("'{text}' is no position; write +16+8, -4+0, or one of {names}"))
        })
    }

    /// Two numbers with their signs.
    fn parse_offset(text: &str) -> Option<Self> {
        let second = text.rfind(['+', '-']).filter(|at| *at > 0 && text.starts_with(['+', '-']))?;
        let (across, down) = text.split_at(second);
        let offset = |text: &str| text.parse().ok().filter(|offset| (-OFFSET_MAX..=OFFSET_MAX).contains(offset));
        Some(Self::Offset(offset(across)?, offset(down)?))
    }

    fn first_pixel(self, picture: Size, layer: Size) -> (i64, i64) {
        let halves = |count: i64, whole: u32, part: u32| (count * (i64::from(whole) - i64::from(part))).div_euclid(2);
        match self {
            Self::Offset(across, down) => (across, down),
            Self::Halves(across, down) => {
                (halves(across, picture.width, layer.width), halves(down, picture.height, layer.height))
            }
        }
    }
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let file = unescaped(args.require("file")?);
    let at = args.take("at").map_or(Ok(At::Offset(0, 0)), At::parse)?;
    let opacity = args.number("opacity", 0.0..=1.0, 1.0)?;
    let mode = args.one_of("mode", &Mode::WORDS, Mode::Normal)?;
    // Last, so that what is written wrong is found before a large file is read.
    Ok(Box::new(Overlay { layer: Layer::read(Path::new(&file))?, at, opacity, mode }))
}

impl Operation for Overlay {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let (format, whole, layer) = (picture.format, picture.size(), self.layer.size);
        let first = self.at.first_pixel(whole, layer);
        let outside = |first: i64, part: u32, whole: u32| first >= whole.into() || first + i64::from(part) <= 0;
        if outside(first.0, layer.width, whole.width) || outside(first.1, layer.height, whole.height) {
            let (left, top) = first;
            return Err(OperationError::because(format_args!(
                "an image of {layer} at {left:+}{top:+} lies wholly outside"
            )));
        }
        if let (Colour::Yuv(yuv), false) = (format.colour(), self.mode == Mode::Normal) {
            return Ok(self.added(graph, picture, yuv, first));
        }
        let mixed_in = format.with_colour(self.mixed_in(format.colour()));
        let Some(mut patches) = patches(&self.layer, first, self.opacity, mixed_in) else { return Ok(picture) };
        let picture = to_colour(graph, picture, mixed_in.colour());
        let picture = picture.each(graph, mixed_in, |graph, plane, input| {
            let patch = &mut patches[plane];
            let pass = OverlayPass::new(graph.size_of(input), patch, self.mode);
            graph.pass_with(pass, std::mem::take(&mut patch.samples).into_flattened(), &[input])[0]
        });
        Ok(to_colour(graph, picture, format.colour()))
    }

    fn carry(&self, stream: &mut Carried, before: Format) -> Result<(), OperationError> {
        stream.uses_coding(before);
        Ok(())
    }
}

impl Overlay {
    /// The colour model in which the image and a picture are mixed. Modes other than `normal` take 0 as black and 1 as
    /// white.
    fn mixed_in(&self, colour: Colour) -> Colour {
        match colour {
            Colour::Mono(_) if self.mode != Mode::Normal => Colour::Mono(Range::Full),
            colour => colour,
        }
    }

    /// A picture with chroma, and what the image changes of its red, green and blue. Chroma samples of which it covers no
    /// pixel stay, though their filter would reach some.
    fn added(&self, graph: &mut Graph, picture: Picture, yuv: Yuv, first: (i64, i64)) -> Picture {
        let format = picture.format;
        let rgb = format.with_colour(Colour::Rgb);
        let Some(mut patches) = patches(&self.layer, first, self.opacity, rgb) else { return picture };
        let (columns, rows) = patches[0].covers();
        let changed = to_rgb(graph, picture.clone()).each(graph, rgb, |graph, plane, input| {
            let patch = &mut patches[plane];
            let pass = OverlayPass::differences(graph.size_of(input), patch, self.mode);
            graph.pass_with(pass, std::mem::take(&mut patch.samples).into_flattened(), &[input])[0]
        });
        let differences = differences_to_yuv(graph, changed, yuv);
        picture.each(graph, format, |graph, plane, input| {
            let (across, down) = format.steps(plane);
            let columns = columns.start / across..columns.end.div_ceil(across);
            let rows = rows.start / down..rows.end.div_ceil(down);
            let pass = AddPass::new(graph.size_of(input), columns, rows);
            graph.pass_with(pass, Vec::new(), &[input, differences.planes[plane]])[0]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read() {
        assert_eq!(At::parse("+3-40"), Ok(At::Offset(3, -40)));
        assert_eq!(At::parse("-0+7"), Ok(At::Offset(0, 7)));
        assert_eq!(At::parse("bottom"), Ok(At::Halves(1, 2)));
        for wrong in ["", "3+4", "+3", "+3+", "+a+1", "centre", "+9999999+0", "é+1"] {
            assert!(At::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_places() {
        let (picture, layer) = (Size { width: 10, height: 9 }, Size { width: 3, height: 12 });
        assert_eq!(At::Halves(2, 0).first_pixel(picture, layer), (7, 0));
        assert_eq!(At::Halves(1, 1).first_pixel(picture, layer), (3, -2));
    }
}
