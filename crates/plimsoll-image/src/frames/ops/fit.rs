//! `fit`: the picture in a size of another shape, its own shape kept.

use super::colour_value::ColourValue;
use super::crop::cropped;
use super::geometry::{Area, Position};
use super::pad::padded;
use super::scale::{FILTERS, Filter, scaled};
use super::yuv::is_new;
use crate::frames::carry::Carried;
use crate::frames::chain::{Args, one_of};
use crate::frames::format::Format;
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About = About {
    name: "fit",
    usage: "fit=WxH|W:H[:letterbox|inside|cover][:FILTER][:COLOUR]",
    what: "the picture in its own shape within a size: with bars (letterbox, black), without, or cut so that it fills it; \
           filters as for scale, colours as for pad",
    parse,
};

/// What becomes of the difference between two shapes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Way {
    /// Bars on two sides.
    Letterbox,
    /// The size is smaller in one direction.
    Inside,
    /// The picture is cut on two sides.
    Cover,
}

const WAYS: [(&str, Way); 3] = [("letterbox", Way::Letterbox), ("inside", Way::Inside), ("cover", Way::Cover)];

#[derive(Debug)]
struct Fit {
    area: Area,
    way: Way,
    filter: Filter,
    colour: ColourValue,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let area = Area::take(args)?;
    if area.has_position() {
        return Err(OperationError::because("a picture that fits lies in the middle; leave the position out"));
    }
    let (mut way, mut filter, mut colour) = (None, None, None);
    // Any of them may be left out: the words tell which is which.
    while let Some(word) = args.take("way") {
        if is_new(word, &WAYS, way) {
            way = Some(one_of("way", word, &WAYS)?);
        } else if is_new(word, FILTERS, filter) {
            filter = Some(one_of("filter", word, FILTERS)?);
        } else if colour.is_none() {
            colour = Some(ColourValue::parse(word).map_err(|_| {
                OperationError::because(format_args!(
                    "'{word}' is no way to fit, no filter and no colour (black, RRGGBB)"
                ))
            })?);
        } else {
            return Err(OperationError::because(format_args!("'{word}' is too much")));
        }
    }
    let way = way.unwrap_or(Way::Letterbox);
    if colour.is_some() && way != Way::Letterbox {
        return Err(OperationError::because("only a letterbox has bars with a colour"));
    }
    let (filter, colour) = (filter.unwrap_or(Filter::Bicubic), colour.unwrap_or(ColourValue::BLACK));
    Ok(Box::new(Fit { area, way, filter, colour }))
}

impl Operation for Fit {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let within = self.area.size(picture.size())?;
        let steps = picture.steps(picture.planes.len() - 1);
        let picture = scaled(graph, picture.clone(), self.scaled_size(picture.size(), within, steps), self.filter)?;
        match self.way {
            _ if picture.size() == within => Ok(picture),
            Way::Inside => Ok(picture),
            Way::Letterbox => padded(graph, picture, within, Position::Middle, self.colour),
            Way::Cover => cropped(graph, picture, within, Position::Middle),
        }
    }

    fn carry(&self, stream: &mut Carried, before: Format) -> Result<(), OperationError> {
        if !self.colour.is_grey() {
            stream.uses_coding(before);
        }
        Ok(())
    }
}

impl Fit {
    /// The size of the picture in its own shape, in whole chroma samples where it does not touch the edge.
    fn scaled_size(&self, picture: Size, within: Size, (across, down): (u32, u32)) -> Size {
        let ratio = |within: u32, side: u32| f64::from(within) / f64::from(side);
        let (wide, tall) = (ratio(within.width, picture.width), ratio(within.height, picture.height));
        let covers = self.way == Way::Cover;
        let factor = if covers { wide.max(tall) } else { wide.min(tall) };
        let side = |side: u32, within: u32, step: u32| {
            let wanted = ((f64::from(side) * factor / f64::from(step)).round() as u32).max(1) * step;
            if covers { wanted.max(within) } else { wanted.min(within) }
        };
        Size { width: side(picture.width, within.width, across), height: side(picture.height, within.height, down) }
    }
}
